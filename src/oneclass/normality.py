"""What is normal at one moment: the rows of the window and the function fitted to them. Immutable; scores, and never changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from oneclass.errors import KernelError
from oneclass.factor import Factor, block_size
from oneclass.parameters import Parameters
from oneclass.threshold import p_values
from oneclass.types import Bools, Floats
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

    def distances(self, residuals: Floats) -> Floats:
        """d of each row from T - f, shape (n,)."""
        ...


@dataclass(frozen=True)
class Judgement:
    """Distances of some rows, by whom, and their kernel values if they were few enough to keep for learning the same rows."""

    by: "Normality"
    distances: Floats
    kernel: Floats | None

    def of(self, chosen: Bools) -> "Judgement":
        """The same for some of the rows."""
        return Judgement(self.by, self.distances[chosen], None if self.kernel is None else self.kernel[chosen])

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
    beta: Floats  # in slots
    threshold: float
    left_out: Floats | None  # leave-one-out distances, ascending, where they were computed along the way

    @property
    def ridge(self) -> Floats:
        """The diagonal added to K, one number per slot; rows of different weight will differ here."""
        return np.full(self.ring.size, 1.0 / self.parameters.C)

    @property
    def window(self) -> Floats:
        """The raw rows, oldest first."""
        return self.rows[self.ring.by_age]

    @property
    def in_window(self) -> Floats:
        """The training distances in slots. T - Kβ = ridge·β holds exactly, without the cancellation of 1 - Kβ."""
        return self.framework.distances(per_row(self.ridge, self.beta))

    @cached_property
    def left_out_ascending(self) -> Floats:
        """The leave-one-out distances, sorted. Where the threshold did not need them they cost a factorisation when first read."""
        if self.left_out is not None:
            return self.left_out
        factor = Factor(block_size(self.ring.capacity))
        factor.write(slice(0, self.ring.size), self.parameters.kernel(self.scaled, self.scaled))
        factor.factorise(self.ridge)
        return np.sort(leave_one_out(self.framework, self.beta, factor.inverse_diagonal()))

    def judge(self, rows: Floats) -> Judgement:
        """The distance of each row; its bits depend on the row and the window alone, not on the rows beside it."""
        distances = np.empty(len(rows))
        kernel = None
        for part in self._parts(len(rows)):
            kernel = self._score(rows[part], distances[part], part.start)
        whole = len(rows) <= self._block_rows and self.parameters.kernel.is_pairwise
        return Judgement(self, distances, kernel if whole else None)

    def outputs(self, scaled: Floats) -> Floats:
        """f(x) of rows as the kernel sees them, eq. (25) and (36)."""
        parts = [self.parameters.kernel(scaled[part], self.scaled) for part in self._parts(len(scaled))]
        return np.concatenate([self.framework.outputs(kernel, self.beta) for kernel in parts])

    def _score(self, rows: Floats, distances: Floats, first: int) -> Floats:
        scaled = self.parameters.scaled(rows)
        kernel = self.parameters.kernel(scaled, self.scaled)
        with np.errstate(over="ignore", invalid="ignore"):  # looked at in the next lines
            outputs = self.framework.outputs(kernel, self.beta)
            distances[:] = self.framework.distances(self.framework.targets(scaled) - outputs)
        if not np.isfinite(distances).all():
            require_finite(kernel, first)
        return kernel

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


def leave_one_out(framework: Framework, beta: Floats, inverse_diagonal: Floats) -> Floats:
    """The distance each row would have from the model without it: the residual is exactly β_i / P_ii."""
    return framework.distances(per_row(1.0 / inverse_diagonal, beta))


def require_finite(kernel: Floats, first: int = 0) -> None:
    """Raise KernelError naming the first row with a kernel value that is not finite."""
    bad = ~np.isfinite(kernel).all(axis=1)
    if bad.any():
        row = first + int(np.argmax(bad))
        raise KernelError(
            f"the kernel overflows at row {row}: k(x, y) is not finite. Scale the features, or choose a bounded kernel: 'rbf'"
        )
