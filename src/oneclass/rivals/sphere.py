"""The smallest sphere around the images of most rows: what is asked for, and what has been found. Immutable; scores."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from oneclass.errors import InvalidParameterError
from oneclass.kernels import Kernel
from oneclass.normality import require_finite
from oneclass.parameters import Parameters, Request, request
from oneclass.rivals.dual import Solution, blocks_of
from oneclass.rivals.rival import in_blocks
from oneclass.types import Floats
from oneclass.validation import checked_number

_ONE_AT_A_TIME = 2**62


@dataclass(frozen=True)
class Terms:
    """The parameters of a sphere as the user asked for them, checked."""

    request: Request
    C: float | None  # None: 1 / (n · alarm_rate)

    def C_for(self, count: int) -> float:
        """C in force for so many rows: what was asked for or, where the weights could not add up to 1 under it, 1/n."""
        asked = 1.0 / (count * self.request.alarm_rate) if self.C is None else self.C
        return max(asked, 1.0 / count)

    def require_feasible(self, count: int) -> None:
        """Raise if no weights of so many rows, at most C each, add up to 1."""
        if self.C is not None and self.C * count < 1.0:
            raise InvalidParameterError(
                f"C={self.C:g} with {count} rows: weights of at most C add up to {self.C * count:g} at most, and must add up to 1. "
                f"Choose C of at least 1/{count} = {1.0 / count:.3g}, or 'auto'"
            )

    def parameters_for(self, rows: Floats) -> Parameters:
        """Kernel, scale and C for these rows."""
        return replace(self.request.parameters_for(rows), C=self.C_for(len(rows)))


def terms(*, kernel: object, width: object, C: object, alarm_rate: object, window: object = None) -> Terms:
    """The public parameters, checked; InvalidParameterError says which one is wrong, and what it may be."""
    is_auto = isinstance(C, str) and C == "auto"
    hint = "the largest weight a row may have, at least 1/n, or 'auto': 1/(n·alarm_rate)"
    number = None if is_auto else checked_number("C", C, hint=hint)
    asked = request(kernel=kernel, width=width, C="auto", alarm_rate=alarm_rate, threshold="training", window=window)
    found = Terms(asked, number)
    if asked.window is not None:
        found.require_feasible(asked.window)
    return found


@dataclass(frozen=True, eq=False)
class Sphere:
    """A centre, sum_i a_i φ(x_i), and the square of a radius; d(x) = ||φ(x) - centre||²."""

    parameters: Parameters
    support: Floats  # the rows with weight, as the kernel sees them
    weights: Floats
    norm: float  # ||centre||²
    threshold: float  # the square of the radius

    def distances(self, rows: Floats) -> Floats:
        """d of raw rows, shape (n,): to rounding at least 0; its bits do not depend on the rows beside it."""
        return self.distances_of_scaled(self.parameters.scaled(rows))

    def distances_of_scaled(self, scaled: Floats) -> Floats:
        """d of rows as the kernel sees them."""
        return measured(self._of_block, scaled, self.parameters.kernel, len(self.support))

    def _of_block(self, scaled: Floats) -> Floats:
        return self.distances_from(self.parameters.kernel(scaled, self.support), self.parameters.kernel.diagonal(scaled))

    def distances_from(self, kernel: Floats, diagonal: Floats) -> Floats:
        """d of rows of which k(row, support), shape (n, support), and k(row, row) are known."""
        # One dot product a row, so that no other row has a say in its rounding.
        return np.asarray(diagonal - 2.0 * np.vecdot(kernel, self.weights) + self.norm)


def measured(measure: Callable[[Floats], Floats], scaled: Floats, kernel: Kernel, support: int) -> Floats:
    """`measure` of each row, block by block; KernelError names the first that is not finite, for there the kernel is not."""
    # A function kernel may round differently with the number of rows; asked for one at a time, it cannot.
    numbers_per_row = support if kernel.is_pairwise else _ONE_AT_A_TIME
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = in_blocks(measure, scaled, numbers_per_row)
    require_finite(numbers[:, None])
    return numbers


def sphere_of(parameters: Parameters, scaled: Floats, K: Floats, solution: Solution) -> Sphere:
    """The sphere that a solution of the dual describes, through the rows on it; K: the kernel of all rows, (n, n)."""
    chosen = np.flatnonzero(solution.weights)
    weights = solution.weights[chosen]
    # a'(h + diag K)/2 = a'Ka: what the dual has computed already.
    norm = float(np.vecdot(weights, solution.gradient[chosen] + K.diagonal()[chosen])) / 2.0
    sphere = Sphere(parameters, scaled[chosen], weights, norm, norm + solution.level)
    on_it = solution.on_the_sphere
    if not len(on_it):
        return sphere
    # As they are scored, so that no row on the sphere, nor a copy of one, is an alarm by rounding.
    if parameters.kernel.is_pairwise:
        diagonal = parameters.kernel.diagonal(scaled[on_it])
        parts = [sphere.distances_from(part, diagonal[at : at + len(part)]) for at, part in blocks_of(K, on_it, chosen)]
        distances = np.concatenate(parts)
    else:
        distances = sphere.distances_of_scaled(scaled[on_it])
    return replace(sphere, threshold=float(distances.max()))
