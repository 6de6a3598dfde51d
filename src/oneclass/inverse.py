"""The explicit inverse of a matrix whose rows live in the slots of a ring, for chunks of few rows.

Overwriting one row and column of Φ = K + diag(ridge) changes P = Φ⁻¹ by a matrix of rank two: a few n² flops against n³/3 for a
factorisation. The symmetric form used here, in one triangle, does not drift like the paper's recursion (docs/mathematics.md). But P
is the memory of its own path: unlike a factor it must be saved, and it is computed afresh after every turn of the ring.
Knows nothing of kernels or alarms.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from oneclass.symmetric import Symmetric, symmetric_product
from oneclass.types import Floats

STEEP_FROM = 100.0
REFINED_UP_TO = 512
"""Where k(x, x) is more than 100 times the ridge, P link is refined against Φ before it is used, up to windows of 512 rows.

P is right to eps · cond(Φ), and each update multiplies that by the condition once more, unless its one product with P is right to
more digits than P is. At n = 150, C = 1e4 and a fifth of copies, the worst error of θ over 2000 rows fell from 7e-7 to 6e-10, for a
third more time a row (24 to 32 µs). At n = 1000 two more walks through memory a row would halve the speed.
"""
REFINE_ABOVE = 1e-13
GIVE_UP_ABOVE = 1e-6
SETTLE_EVERY = 8


class RingInverse:
    """P = (K + diag(ridge))⁻¹ and β = P targets, kept right while rows are overwritten one at a time.

    The residual of β is looked at every eighth row and β refined where it exceeds 1e-13 of the targets; above 1e-6, or at a pivot
    that is not positive, `replace` and `settle` answer False and the inverse is of no more use. The errors of θ over a million rows
    are in docs/benchmarks/numerics.md.
    """

    def __init__(self, kernel: Floats | None, inverse: Floats, solution: Floats, replaced: int = 0) -> None:
        self._kernel = kernel  # (n, n), symmetric; None until somebody who knows the rows hands it in
        self._inverse = Symmetric(inverse)
        self.solution = solution  # β, (n,) or (n, k)
        self.replaced = replaced  # rows overwritten since P was computed afresh
        self.is_touched = False  # whether it has been written to since somebody set this to False

    def know(self, kernel: Callable[[], Floats]) -> None:
        """Hand in K if it is not there: a saved inverse comes without."""
        if self._kernel is None:
            self._kernel = kernel()

    @property
    def kernel(self) -> Floats:
        """K, (n, n)."""
        if self._kernel is None:
            raise RuntimeError("the kernel matrix of a saved inverse must be handed in by `know` before it is used")
        return self._kernel

    @property
    def inverse(self) -> Floats:
        """P, (n, n) in Fortran order; only the lower triangle means anything."""
        return self._inverse.lower

    @classmethod
    def afresh(cls, kernel: Floats, ridge: Floats, targets: Floats) -> "RingInverse | None":
        """P and β from one Cholesky factorisation, n³ flops; None if the matrix is not positive definite."""
        matrix = np.array(kernel, order="F")
        matrix.flat[:: len(matrix) + 1] += ridge
        factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
        if failed:
            return None
        solution, _ = lapack.dpotrs(factor, targets, lower=1)
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        return cls(kernel, inverse, solution)

    def copy(self) -> "RingInverse":
        """The same with P in an array of its own; K is left out, for it can be computed again from the rows."""
        return RingInverse(None, self.inverse.copy(order="F"), self.solution, self.replaced)

    def diagonal(self) -> Floats:
        """The diagonal of P."""
        return self._inverse.diagonal()

    def replace(self, slot: int, row: Floats, ridge: Floats, target: Floats) -> bool:
        """Overwrite one row: forget the old one by eq. (24), learn the new one by eqs. (15)-(19), in one update of rank two.

        `row` is K[slot, :] with k(x, x) in place. Nothing has changed when the answer is False.
        """
        self.is_touched = True
        link = row.copy()
        link[slot] = 0.0
        # P link, less what the forgotten row contributed to it: the new row as the remaining ones explain it.
        learnt = self._inverse.times(link)
        forgotten = self._inverse.column(slot)
        pivot = float(forgotten[slot])
        # Equation (24) for one row: P without it is P - forgotten·forgottenᵀ/pivot.
        unit = forgotten / pivot
        learnt -= unit * learnt[slot]
        if float(row[slot]) > STEEP_FROM * float(ridge[slot]) and len(row) <= REFINED_UP_TO:
            missing = link - symmetric_product(self.kernel.T, learnt) - ridge * learnt
            missing[slot] = 0.0
            more = self._inverse.times_again(missing)
            learnt += more - unit * more[slot]
        # The bracket of (19), which is a number for one row: what is new in it, given the rows that stay.
        schur = float(row[slot] + ridge[slot]) - float(link @ learnt)
        if not (pivot > 0.0 and schur > 0.0):
            return False
        # β: the forgotten row's weight is spread over the others, then the new one's is solved for, both in O(n).
        learnt[slot] = -1.0
        solution = self.solution - np.multiply.outer(unit, self.solution[slot])
        solution += np.multiply.outer(learnt, (link @ solution - target) / schur)
        # P - pivot·unit·unitᵀ + learnt·learntᵀ/schur, as one update of rank two.
        gain, loss = learnt * schur**-0.5, unit * pivot**0.5
        self._inverse.add(0.5 * (gain + loss), gain - loss)
        self.kernel[slot] = row
        self.kernel[:, slot] = row
        self.solution = solution
        self.replaced += 1
        return True

    def replace_afresh(self, slot: int, row: Floats, ridge: Floats, targets: Floats) -> bool:
        """Overwrite one row and compute P anew, n³ flops: what ends a turn of the ring."""
        self.is_touched = True
        self.kernel[slot] = row
        self.kernel[:, slot] = row
        successor = RingInverse.afresh(self.kernel, ridge, targets)
        if successor is None:
            return False
        self._inverse, self.solution, self.replaced = Symmetric(successor.inverse), successor.solution, 0
        return True

    def settle(self, written: int, ridge: Floats, targets: Floats) -> bool:
        """After `written` rows: look at the residual of β at every eighth row, refine it if need be; False if it stays too large.

        One look walks through K once, a fifth of the cost of a row at n = 1000. Eight rows cannot take an error from 1e-13 to 1e-6.
        """
        if self.replaced // SETTLE_EVERY == (self.replaced - written) // SETTLE_EVERY:
            return True
        size = _largest(targets) or 1.0
        residual = self._residual(ridge, targets)
        worst = _largest(residual)
        if worst > REFINE_ABOVE * size:
            self.solution = self.solution + self._inverse.times(residual)
            worst = _largest(self._residual(ridge, targets))
        return worst <= GIVE_UP_ABOVE * size

    def _residual(self, ridge: Floats, targets: Floats) -> Floats:
        beta = self.solution
        return targets - symmetric_product(self.kernel.T, beta) - (ridge * beta.T).T


def _largest(values: Floats) -> float:
    """The largest absolute value."""
    return max(float(values.max()), -float(values.min()))
