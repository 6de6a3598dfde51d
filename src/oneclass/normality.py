"""What is normal at one moment: the rows of the window and the function fitted to them. Immutable; scores, and never changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from oneclass.errors import KernelOverflowError
from oneclass.factor import Factor, block_size
from oneclass.parameters import Parameters
from oneclass.threads import one_blas_thread
from oneclass.threshold import p_values
from oneclass.types import Bools, Floats, Ints
from oneclass.window import Ring

_BLOCK_NUMBERS = 65536
"""Kernel values computed at a time when scoring: half a megabyte, which stays in the cache."""


class Framework(Protocol):
    """What tells the two models apart: the targets T that f(x) = k(x)ᵀβ is fitted to, and the distance made of a residual."""

    def targets(self, rows: Floats) -> Floats:
        """T for these rows: (n,) ones or (n, d) the rows themselves."""
        ...

    def outputs(self, kernel: Floats, beta: Floats) -> Floats:
        """f of each row from its kernel values, by operations that do not depend on how many rows are asked for."""
        ...

    def residuals(self, rows: Floats, outputs: Floats) -> Floats:
        """T - f of each row."""
        ...

    def distances(self, residuals: Floats) -> Floats:
        """d of each row from its residual, shape (n,)."""
        ...


class Judgement(NamedTuple):
    """Distances of some rows, by whom, and, if they are to be learnt, k of each row with the window's slots and with each other."""

    by: "Normality"
    distances: Floats
    kernel: Floats | None

    def of(self, chosen: Bools) -> "Judgement":
        """The same for some of the rows."""
        if self.kernel is None:
            return Judgement(self.by, self.distances[chosen], None)
        columns = np.concatenate([np.ones(self.by.ring.size, dtype=bool), chosen])
        return Judgement(self.by, self.distances[chosen], self.kernel[chosen][:, columns])

    def without_kernel(self) -> "Judgement":
        """The same without the kernel values, which are many."""
        return Judgement(self.by, self.distances, None)

    @property
    def knows_p_values(self) -> bool:
        """Whether p-values cost nothing more than looking them up."""
        return self.by.left_out is not None

    @property
    def threshold(self) -> float:
        """The largest distance that is no alarm."""
        return self.by.threshold

    @property
    def alarms(self) -> Bools:
        """Whether each row lies beyond the threshold."""
        return self.distances > self.by.threshold

    @property
    def p_values(self) -> Floats:
        """The p-value of each row; may have to factorise (see `Normality.left_out_ascending`)."""
        return p_values(self.by.left_out_ascending, self.distances)


@dataclass(frozen=True, eq=False)
class Normality:
    """The decision phase of the paper, equations (25), (26), (28) and (36), (37), for one state of the window."""

    framework: Framework
    parameters: Parameters
    ring: Ring
    rows: Floats  # in slots, raw
    scaled: Floats  # in slots, as the kernel sees them
    ridge: Floats  # in slots
    beta: Floats  # in slots
    threshold: float
    left_out: Floats | None  # leave-one-out distances, ascending, where they were computed along the way

    @property
    def window(self) -> Floats:
        """The raw rows, oldest first."""
        return self.rows[self.ring.by_age]

    @cached_property
    def accepted(self) -> Ints:
        """The slots whose rows are no alarm themselves; all of them if every row is one."""
        accepted = np.flatnonzero(~self.judge(self.rows).alarms)
        return accepted if len(accepted) else np.arange(self.ring.size)

    @cached_property
    def left_out_ascending(self) -> Floats:
        """The leave-one-out distances, sorted. Where the threshold did not need them they cost a factorisation when first read."""
        if self.left_out is not None:
            return self.left_out
        factor = Factor(block_size(self.ring.capacity))
        with one_blas_thread():  # verdicts may be read long after the call that gave them
            factor.write(slice(0, self.ring.size), self.parameters.kernel(self.scaled, self.scaled))
            factor.factorise(self.ridge)
            return np.sort(leave_one_out(self.framework, self.beta, factor.inverse_diagonal()))

    def judge(self, rows: Floats, *, to_learn: bool = False) -> Judgement:
        """The distance of each row; its bits depend on the row and the window alone, not on the rows beside it.

        `to_learn` says that these very rows are learnt next: then their kernel values, also against each other, are kept for that.
        """
        if to_learn and len(rows) <= self._block_rows and self.parameters.kernel.is_pairwise:
            scaled = self.parameters.scaled(rows)
            kernel = self.parameters.kernel(scaled, np.concatenate([self.scaled, scaled]))
            return Judgement(self, self._distances(scaled, kernel[:, : self.ring.size], 0), kernel)
        distances = np.empty(len(rows))
        # Block by block: memory stays flat however many rows are asked for.
        for part in self._parts(len(rows)):
            scaled = self.parameters.scaled(rows[part])
            distances[part] = self._distances(scaled, self.parameters.kernel(scaled, self.scaled), part.start)
        return Judgement(self, distances, None)

    def outputs(self, scaled: Floats) -> Floats:
        """f(x) of rows as the kernel sees them, eq. (25) and (36)."""
        parts = [self.parameters.kernel(scaled[part], self.scaled) for part in self._parts(len(scaled))]
        return np.concatenate([self.framework.outputs(kernel, self.beta) for kernel in parts])

    def _distances(self, scaled: Floats, kernel: Floats, first: int) -> Floats:
        if not self.parameters.kernel.is_bounded:
            require_finite(kernel, first)
        return self.framework.distances(self.framework.residuals(scaled, self.framework.outputs(kernel, self.beta)))

    def _parts(self, count: int) -> Iterator[slice]:
        step = self._block_rows
        for start in range(0, count, step):
            yield slice(start, min(start + step, count))

    @property
    def _block_rows(self) -> int:
        # A function kernel may round differently with the number of rows; asked for one at a time, it cannot.
        return max(1, _BLOCK_NUMBERS // self.ring.size) if self.parameters.kernel.is_pairwise else 1


def per_row(numbers: Floats, beta: Floats) -> Floats:
    """Each row of β, one number or d, times a number of its own."""
    return np.asarray((numbers * beta.T).T)


def in_window(framework: Framework, ridge: Floats, beta: Floats) -> Floats:
    """The training distances in slots. T - Kβ = ridge·β holds exactly, without the cancellation of 1 - Kβ."""
    return framework.distances(per_row(ridge, beta))


def leave_one_out(framework: Framework, beta: Floats, inverse_diagonal: Floats) -> Floats:
    """The distance each row would have from the model without it: the residual is exactly β_i / P_ii."""
    return framework.distances(per_row(1.0 / inverse_diagonal, beta))


def require_finite(kernel: Floats, first: int = 0) -> None:
    """Raise KernelOverflowError if a kernel value is not finite, naming the row to blame: the one with most of them."""
    bad = np.count_nonzero(~np.isfinite(kernel), axis=1)
    if bad.any():
        raise KernelOverflowError(first + int(np.argmax(bad)))


@contextmanager
def counted_from(places: Callable[[int], int]) -> Iterator[None]:
    """Rows of an error inside are told by their places in what the caller handed in."""
    try:
        yield
    except KernelOverflowError as error:
        raise KernelOverflowError(places(error.row)) from None
