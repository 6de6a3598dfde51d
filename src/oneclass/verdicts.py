"""What a watcher says of rows: one entry per row, as columns."""

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Verdicts:
    """One entry per row, in columns of equal length.

    `row` counts the rows of the watcher's life from 0; `score` is the distance d(x) of the paper, **higher is more abnormal**;
    `alarm` is score > threshold; `state` is "warming" (score, threshold and p_value are NaN, alarm is False) or "watching".
    `p_value` is computed when it is first read where the threshold did not need it.
    """

    row: Ints
    score: Floats
    threshold: Floats
    alarm: Bools
    state: NDArray[np.str_]
    known: Floats  # p-values, NaN where they are not known yet
    pending: tuple[tuple[int, Evidence], ...] = ()  # place of the first row, and who can tell the p-values of the rows from there

    @cached_property
    def p_value(self) -> Floats:
        """The share of normal rows expected to lie as far out as this one; small is abnormal."""
        values = self.known.copy()
        for start, evidence in self.pending:
            part = evidence.p_values
            values[start : start + len(part)] = part
        return values

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The columns by name, as a data frame takes them."""
        return {name: getattr(self, name) for name in ("row", "score", "threshold", "p_value", "alarm", "state")}

    def __len__(self) -> int:
        return len(self.row)
