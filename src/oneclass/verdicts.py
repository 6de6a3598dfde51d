"""What a watcher says of rows: one entry per row, as columns."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oneclass.types import Bools, Floats, Ints


class Evidence(Protocol):
    """Whatever can tell the p-values of some rows."""

    @property
    def p_values(self) -> Floats:
        """The p-value of each row."""
        ...


def with_p_values(known: Floats, pending: Iterable[tuple[int, Evidence]]) -> Floats:
    """A copy of `known` with the p-values of the rows from each of these places."""
    values = known.copy()
    for start, evidence in pending:
        part = evidence.p_values
        values[start : start + len(part)] = part
    return values


@dataclass(frozen=True, eq=False)
class Verdicts:
    """One entry per row, in columns of equal length.

    `row` counts the rows of the watcher's life from 0; `score` is the distance d(x) of the paper, **higher is more abnormal**;
    `alarm` is score > threshold; `state` is "warming" (score, threshold and p_value are NaN, alarm is False) or "watching".
    `p_value` is computed when it is first read where the threshold did not need it; until then a window per chunk is kept for it.
    """

    row: Ints
    score: Floats
    threshold: Floats
    alarm: Bools
    state: NDArray[np.str_]
    known: Floats = field(repr=False)  # p-values, NaN where they are not known yet
    # The place of the first row, and who can tell the p-values of the rows from there.
    pending: tuple[tuple[int, Evidence], ...] = field(default=(), repr=False)

    @cached_property
    def p_value(self) -> Floats:
        """The share of normal rows expected to lie as far out as this one; small is abnormal."""
        values = with_p_values(self.known, self.pending)
        object.__setattr__(self, "pending", ())  # each held the rows of a window
        return values

    def __reduce__(self) -> tuple[type, tuple[NDArray[Any], ...]]:
        """For pickle and copies: the p-values themselves instead of all that can tell them."""
        return type(self), (self.row, self.score, self.threshold, self.alarm, self.state, self.p_value)

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The columns by name, as a data frame takes them."""
        return {name: getattr(self, name) for name in ("row", "score", "threshold", "p_value", "alarm", "state")}

    def __len__(self) -> int:
        return len(self.row)
