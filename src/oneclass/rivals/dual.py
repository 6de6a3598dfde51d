"""The dual of support vector data description, solved exactly from any starting point. Arrays in, arrays out.

    minimise a'Ka - diag(K)'a   subject to   sum(a) = 1,  0 <= a_i <= C

A row is inside (a = 0), on the sphere (0 < a < C: it is free) or outside (a = C). With h = 2Ka - diag(K), a is optimal exactly if
there is one b with h + b = 0 on the sphere, >= 0 inside and <= 0 outside: the conditions of Karush, Kuhn and Tucker.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from oneclass.errors import KernelError
from oneclass.types import Bools, Floats, Ints

TOLERANCE = 1e-12
"""By how much h + b may miss, in units of the largest ||φ(x) - φ(x_0)||², ..."""
_ROUNDING = 1e-14
"""... but no less than this part of the largest k(x, x), some times what h loses to rounding where rows lie far from the origin."""

_RIDGE = 1e-12
"""Added to 2K on the free rows, in the same units: where copies make it singular, the step is then a long one along its null space,
which some bound stops. Elsewhere it slows Newton's steps by a millionth, and changes no solution."""

_SNAP = 1e-12
"""A weight within this part of C from a bound is at the bound: rounding of the sum must not say where the sphere is."""

_ALONG = 0.5
"""Rows that violate their condition by this part of the worst are freed along with it, ..."""
_GROWTH = 0.5
"""... up to this part of those that are free. One at a time, 1000 rows that all end up free took 10 s; so, half a second."""

_STEPS_PER_ROW = 20

_NEAR = 100.0
"""A row whose h + b is within so many tolerances of 0 is on the sphere, whatever its weight: more than scores lose to rounding."""


class Solution(NamedTuple):
    """Weights, what they are in the middle of, and whether they are optimal."""

    weights: Floats
    gradient: Floats  # h = 2Ka - diag(K)
    C: float
    steps: int  # 0: the start is the solution
    is_settled: bool
    margin: float = 0.0  # by how much h + b of a row on the sphere may miss 0

    @property
    def free(self) -> Ints:
        """The rows on the sphere."""
        return np.flatnonzero((self.weights > 0.0) & (self.weights < self.C))

    @property
    def level(self) -> float:
        """b: midway between the bounds that the conditions give it, which meet if any row is free.

        Where every weight is at a bound the optimum leaves b an interval, and libsvm too takes its middle. With all rows outside
        it has an upper end only, which is taken: the sphere then goes through the row nearest to the centre.
        """
        upper = -float(self.gradient[self.weights > 0.0].max())
        inside = self.gradient[self.weights < self.C]
        return (upper - float(inside.min())) / 2.0 if len(inside) else upper

    @property
    def on_the_sphere(self) -> Ints:
        """The rows no score may put outside: those on the sphere whatever their weight, as copies are, or beyond it without C."""
        beyond = self.gradient + self.level
        return np.flatnonzero((beyond <= self.margin) & ((self.weights < self.C) | (beyond >= -self.margin)))


def first_guess(K: Floats, C: float) -> Floats:
    """All weight on the rows farthest from the mean, C on each: a feasible start, near the end where few rows are free."""
    farthest = np.argsort(2.0 * K.mean(axis=1) - K.diagonal(), kind="stable")
    weights = np.zeros(len(K))
    whole = min(int(1.0 / C), len(K))
    weights[farthest[:whole]] = C
    if whole < len(K):
        weights[farthest[whole]] = max(0.0, 1.0 - whole * C)
    return weights


def solve(K: Floats, C: float, start: Floats | None = None) -> Solution:
    """The optimal weights of the dual, K of shape (n, n), C >= 1/n; KernelError where K is not positive semi-definite.

    `start` holds numbers from 0 to C that need not add up to 1, best those of a neighbouring problem: rows that are gone left out,
    new ones 0. Each step costs O(n·f + f³) with f free rows, and there are at most about as many steps as rows that change sides.
    """
    guess = first_guess(K, C) if start is None or not start.any() else np.clip(start, 0.0, C)
    descent = _Descent(K, C, guess)
    is_settled = descent.run(_STEPS_PER_ROW * (len(K) + 10))
    weights = descent.weights
    weights[weights < _SNAP * min(C, 1.0)] = 0.0
    weights[weights > (1.0 - _SNAP) * C] = C
    return Solution(weights, descent.gradient, C, descent.steps, is_settled, _NEAR * descent.tolerance)


class _Descent:
    """A primal active-set method: Newton's steps on the free rows, each cut short at the first bound, and freed rows in between.

    With a feasible start the objective falls with every step, so no set of free rows comes back. A start that is not feasible
    becomes so on the way: a Newton step also adds what the sum lacks, as far as the bounds allow.
    """

    def __init__(self, K: Floats, C: float, weights: Floats) -> None:
        self.K, self.C, self.weights = K, C, weights
        self.diagonal = K.diagonal().copy()
        rounding = _ROUNDING * float(np.abs(self.diagonal).max())
        # Any two rows are at most twice as far apart as each is from the first.
        self.size = max(float((self.diagonal + K[0, 0] - 2.0 * K[0]).max()), rounding) or 1.0
        self.tolerance = TOLERANCE * self.size + rounding
        self.is_free: Bools = (weights > 0.0) & (weights < C)
        self.steps = 0
        self.refresh()

    def refresh(self) -> None:
        """Compute the gradient from the weights alone, so that no error is carried on."""
        support = np.flatnonzero(self.weights)
        self.gradient = 2.0 * (self.weights[support] @ self.K[support]) - self.diagonal
        self.is_fresh = True

    def run(self, most_steps: int) -> bool:
        """Go on until the conditions hold; False if they do not after so many steps."""
        for _ in range(most_steps):
            free = np.flatnonzero(self.is_free)
            lacking = 1.0 - float(self.weights.sum())
            if len(free) and not self._is_stationary(free, lacking):
                self._step(free, lacking)
            elif not self._set_free(free, lacking):
                if self.is_fresh:
                    return True
                self.refresh()
        return False

    def _is_stationary(self, free: Ints, lacking: float) -> bool:
        if abs(lacking) > 1e-14 * len(free):
            return False
        h = self.gradient[free]
        return bool(h.max() - h.min() <= self.tolerance)

    def _step(self, free: Ints, lacking: float) -> None:
        rows, weights = self.K[free], self.weights[free]
        direction = self._newton(rows[:, free], self.gradient[free], lacking)
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(direction < 0.0, weights, self.C - weights) / np.abs(direction)
        lengths[direction == 0.0] = np.inf
        length = min(1.0, float(lengths.min()))
        stepped = weights + length * direction
        stopped = lengths <= length
        # At the bound itself, to the last bit: that is how a row's side is known.
        stepped[stopped] = np.where(direction[stopped] < 0.0, 0.0, self.C)
        self.weights[free] = stepped
        self.is_free[free[stopped]] = False
        self.gradient += 2.0 * ((stepped - weights) @ rows)
        self.is_fresh = False
        self.steps += 1

    def _newton(self, K: Floats, gradient: Floats, lacking: float) -> Floats:
        """The step on the free rows to the minimum of the objective with sum(a) = 1."""
        # Seen from the first free row, and with a multiple of 11': neither changes a step of given sum, and what all entries have
        # in common drowns nothing.
        M = 2.0 * (K - K[0] - K[:, :1] + K[0, 0]) + self.size
        diagonal = M.diagonal().copy()
        sides = np.stack([gradient - gradient.mean(), np.ones(len(K))], axis=1)
        for ridge in (_RIDGE, 1e2 * _RIDGE, 1e4 * _RIDGE):
            np.fill_diagonal(M, diagonal + ridge * self.size + self.tolerance)
            factor, failed = dpotrf(M, lower=1, clean=0)
            if not failed:
                x, y = dpotrs(factor, sides, lower=1)[0].T
                return np.asarray(y * ((lacking + x.sum()) / y.sum()) - x)
        raise KernelError(
            f"the kernel's matrix of {len(K)} rows is not positive semi-definite: choose a kernel that is, such as 'rbf'"
        )

    def _set_free(self, free: Ints, lacking: float) -> bool:
        """Free the rows that violate their conditions most; False if all conditions hold."""
        h, at_zero, at_C = self.gradient, self.weights <= 0.0, self.weights >= self.C
        at_zero[free] = at_C[free] = False
        if not len(free):
            return self._set_pair_free(at_zero, at_C, lacking)
        level = -float(h[free].mean())
        violation = np.where(at_zero, -(h + level), np.where(at_C, h + level, -np.inf))
        worst = float(violation.max())
        if worst <= self.tolerance:
            return False
        chosen, most = np.flatnonzero(violation >= _ALONG * worst), 1 + int(_GROWTH * len(free))
        if len(chosen) > most:
            chosen = chosen[np.argpartition(violation[chosen], -most)[-most:]]
        # Those that the step would push over their bound are stopped at once, and never all of them: it goes downhill.
        self.is_free[chosen] = True
        return True

    def _set_pair_free(self, at_zero: Bools, at_C: Bools, lacking: float) -> bool:
        """With no row free: a row that gives weight, one that takes it, or both."""
        h = self.gradient
        taker = int(np.where(at_zero, h, np.inf).argmin())  # the farthest row inside
        giver = int(np.where(at_C, h, -np.inf).argmax())  # the nearest row outside
        if abs(lacking) > 2.0 * _SNAP:
            chosen = [taker] if lacking > 0.0 else [giver]
        elif at_zero.any() and at_C.any() and h[giver] - h[taker] > self.tolerance:
            chosen = [taker, giver]
        else:
            chosen = []
        self.is_free[chosen] = True
        return bool(chosen)
