"""The dual of support vector data description, solved exactly from any starting point. Arrays in, arrays out.

    minimise a'Ka - diag(K)'a   subject to   sum(a) = 1,  0 <= a_i <= C

A row is inside (a = 0), on the sphere (0 < a < C: it is free) or outside (a = C). With h = 2Ka - diag(K), a is optimal exactly if
there is one b with h + b = 0 on the sphere, >= 0 inside and <= 0 outside: the conditions of Karush, Kuhn and Tucker.
"""

from collections.abc import Iterator
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
_DIRECT_UP_TO = 100
_PRODUCTS, _ROWS_PER_PRODUCT = 8, 16
"""Where more than 100 rows are free, and those are most of all, 8 + f/16 products with K are tried before K is factorised.

With a narrow kernel, where nearly every row lies on the sphere, K is near to the unit matrix: of 1000 rows in 8 dimensions, at
width 1, 45 products of 0.1 ms each took the place of a factorisation of 9 ms, and of writing down what is factorised.
"""

_BLOCK_NUMBERS = 2**13
"""Numbers taken out of K at a time: 64 KB."""

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
    new ones 0. Each step costs O(n·f + f³) with f free rows, or up to f/16 times n² where those are most and K is well-conditioned;
    there are at most about as many steps as rows that change sides.
    """
    guess = first_guess(K, C) if start is None or not start.any() else np.clip(start, 0.0, C)
    descent = _Descent(K, C, guess)
    is_settled = descent.run(_STEPS_PER_ROW * (len(K) + 10))
    weights = descent.weights
    weights[weights < _SNAP * min(C, 1.0)] = 0.0
    weights[weights > (1.0 - _SNAP) * C] = C
    return Solution(weights, descent.gradient, C, descent.steps, is_settled, _NEAR * descent.tolerance)


def blocks_of(K: Floats, rows: Ints, columns: Ints) -> Iterator[tuple[int, Floats]]:
    """K[rows, columns] some rows at a time, each with where it begins: fresh memory for all can cost as much as factorising it."""
    step = max(1, _BLOCK_NUMBERS // len(K))
    for at in range(0, len(rows), step):
        yield at, K[rows[at : at + step]].take(columns, axis=1)


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
        self.is_stiff = False  # whether products with K have led to no step, and would not to the next
        self._room = np.empty(0)
        self.refresh()

    def refresh(self) -> None:
        """Compute the gradient from the weights alone, so that no error is carried on."""
        support = np.flatnonzero(self.weights)
        self.gradient = self._response(support, self.weights[support]) - self.diagonal
        self.is_fresh = True

    def run(self, most_steps: int) -> bool:
        """Go on until the conditions hold; False if they do not after so many steps."""
        for _ in range(most_steps):
            free = np.flatnonzero(self.is_free)
            lacking = 1.0 - float(self.weights.sum())
            if len(free) and not self._is_stationary(free, lacking):
                if not self.steps and self._set_free(free, lacking):
                    # New rows that will be on the sphere take part in what those that left behind: a step for both, not one each.
                    free = np.flatnonzero(self.is_free)
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
        weights = self.weights[free]
        direction = self._direction(free, lacking)
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
        self.gradient += self._response(free, stepped - weights)
        self.is_fresh = False
        self.steps += 1

    def _response(self, rows: Ints, change: Floats) -> Floats:
        """By how much h of all rows changes with the weights of some."""
        if 2 * len(rows) <= len(self.K):
            return np.asarray(2.0 * (change @ self.K[rows]))
        # Taking so many rows out of K would cost more than the zeros do.
        spread = np.zeros(len(self.K))
        spread[rows] = change
        return np.asarray(2.0 * (spread @ self.K))

    def _direction(self, free: Ints, lacking: float) -> Floats:
        """The step on the free rows to the minimum of the objective with sum(a) = 1."""
        if not self.is_stiff and len(free) > _DIRECT_UP_TO and 2 * len(free) > len(self.K):
            direction = self._by_products(free, lacking)
            if direction is not None:
                return direction
            self.is_stiff = True
        return self._newton(free, lacking)

    def _by_products(self, free: Ints, lacking: float) -> Floats | None:
        """The step by conjugate gradients, among steps of the same sum; None if that takes too long."""
        direction = np.full(len(free), lacking / len(free))
        residual = -self.gradient[free] - self._response(free, direction)[free]
        residual -= residual.mean()
        search, square = residual.copy(), float(np.vecdot(residual, residual))
        for _ in range(_PRODUCTS + len(free) // _ROWS_PER_PRODUCT):
            if 8.0 * np.abs(residual).max() <= self.tolerance:
                return direction
            product = self._response(free, search)[free]
            product -= product.mean()
            curvature = float(np.vecdot(search, product))
            if curvature <= 0.0:
                return None  # no kernel's matrix, or one of copies: the factorisation will tell
            direction += (square / curvature) * search
            residual -= (square / curvature) * product
            before, square = square, float(np.vecdot(residual, residual))
            search = residual + (square / before) * search
        return None

    def _newton(self, free: Ints, lacking: float) -> Floats:
        """The step by factorising K of the free rows."""
        gradient = self.gradient[free]
        sides = np.array([gradient - gradient.mean(), np.ones(len(free))]).T
        for ridge in (_RIDGE, 1e2 * _RIDGE, 1e4 * _RIDGE):
            M = self._seen_from_the_first(free)
            M.flat[:: len(free) + 1] += ridge * self.size + self.tolerance
            factor, failed = dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
            if not failed:
                x, y = dpotrs(factor, sides, lower=1)[0].T
                return np.asarray(y * ((lacking + x.sum()) / y.sum()) - x)
        raise KernelError(
            f"the kernel's matrix of {len(free)} rows is not positive semi-definite: choose a kernel that is, such as 'rbf'"
        )

    def _seen_from_the_first(self, free: Ints) -> Floats:
        """2K of the free rows seen from the first of them, and a multiple of 11', in memory that the next step uses again.

        Neither changes a step of given sum, and what all entries have in common drowns nothing.
        """
        size = len(free)
        if self._room.size < size * size:
            self._room = np.empty(size * size)
        M = self._room[: size * size].reshape(size, size)
        for at, block in blocks_of(self.K, free, free):
            M[at : at + len(block)] = block
        first = M[0].copy()
        M -= first
        M -= first[:, None]
        M *= 2.0
        M += 2.0 * first[0] + self.size
        return M

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
