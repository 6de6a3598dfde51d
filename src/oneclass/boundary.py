"""The boundary model: a function that is 1 on normal rows, and falls away from them."""

from functools import lru_cache
from typing import ClassVar

import numpy as np

from oneclass.loops import squared_distances
from oneclass.model import KernelModel
from oneclass.normality import Framework, Normality
from oneclass.types import Floats, Ints

_PIECES = 64


@lru_cache(maxsize=16)
def _ones(count: int) -> Floats:
    ones = np.ones(count)
    ones.setflags(write=False)
    return ones


class Boundary(Framework):
    """T = 1, f(x) = k(x)ᵀβ, d(x) = |f(x) - 1|: equations (1)-(28)."""

    def targets(self, rows: Floats) -> Floats:
        """Ones: R of the paper. One read-only array serves every window of a size."""
        return _ones(len(rows))

    def outputs(self, kernel: Floats, beta: Floats) -> Floats:
        """Eq. (25); one dot product a row, so that no other row has a say in its rounding."""
        return np.asarray(np.vecdot(kernel, beta))

    def residuals(self, rows: Floats, outputs: Floats) -> Floats:  # noqa: ARG002 - the target is the same for all rows
        """1 - f(x)."""
        return 1.0 - outputs

    def distances(self, residuals: Floats) -> Floats:
        """Eq. (26)."""
        return np.abs(residuals)


class KernelBoundary(KernelModel):
    """A function fitted to be 1 on normal rows; d(x) = |k(x)ᵀβ - 1|, β = (K + I/C)⁻¹ 1. OCKELM; with a window, ORK-OCELM(B).

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "polynomial", "linear", "rational_quadratic"}, a `Kernel`, or a function k(X, Y) -> matrix
    width : the σ of exp(-||x - y||²/σ²), on the rows as they are; "auto": the median distance of rows scaled by `scale_`
    C : the λ of the paper, larger is less regularised; "auto": one over the mean of k(x, x), 1 for kernels with a width
    alarm_rate : the share of normal rows you are willing to have flagged, the paper's η
    threshold : "leave-one-out" keeps that rate on new rows; "training", the paper's, keeps it on the rows of the window only
    window : rows kept; None: all

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> model = KernelBoundary(window=150).fit(rng.normal(size=(150, 2)))
    >>> model = model.partial_fit(rng.normal(size=(50, 2)) + 0.2)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    framework: ClassVar[Framework] = Boundary()

    def expected(self, X: object) -> Floats:
        """For each row the nearest row of the window that is itself accepted, shape (n, d); of all rows if none is."""
        now, rows = self._now, self._checked(X)
        return now.rows[_nearest_accepted(now, now.parameters.scaled(rows))]

    def explain(self, X: object) -> Floats:
        """How much each feature adds to d(x) - d(expected), shape (n, d): integrated gradients from `expected(X)` to X.

        Each row sums to that difference, to rounding. The direction of a feature is the sign of X - expected(X). Costs 64
        gradients of f a row; a kernel function is differenced numerically.
        """
        now, rows = self._now, self._checked(X)
        scaled = now.parameters.scaled(rows)
        origins = now.scaled[_nearest_accepted(now, scaled)]
        shares = [_along(now, origin, end) for origin, end in zip(origins, scaled, strict=True)]
        return np.array(shares).reshape(rows.shape)


def _nearest_accepted(now: Normality, scaled: Floats) -> Ints:
    accepted = now.accepted  # a row to compare with must be normal itself; outliers that were learnt along are not
    step = max(1, 2**20 // len(accepted))  # rows whose distances fill 8 MB
    rows = now.scaled[accepted]
    nearest = [squared_distances(scaled[at : at + step], rows).argmin(axis=1) for at in range(0, len(scaled), step)]
    chosen: Ints = accepted[np.concatenate(nearest)]
    return chosen


def _along(now: Normality, origin: Floats, end: Floats) -> Floats:
    """Each feature's share of d(end) - d(origin), integrated along the line between them.

    The pieces of the line grow with the fourth power, because f falls off near the origin however far away the end is.
    What a piece contributes in all is known exactly, d at its end less d at its start; the gradient in its middle only divides that
    among the features. So the shares add up whatever the error of the quadrature.
    """
    ends = np.linspace(0.0, 1.0, _PIECES + 1) ** 4
    points, middles = (origin + np.multiply.outer(at, end - origin) for at in (ends, (ends[1:] + ends[:-1]) / 2))
    residuals = now.outputs(points) - 1.0
    gradients = now.parameters.kernel.gradient(middles, now.scaled, np.broadcast_to(now.beta, (_PIECES, now.ring.size)))
    shares = np.sign(now.outputs(middles) - 1.0)[:, None] * gradients * np.multiply.outer(np.diff(ends), end - origin)
    missing = np.diff(np.abs(residuals)) - shares.sum(axis=1)
    weights = np.abs(shares) + np.finfo(float).tiny
    weights = np.where(weights.sum(axis=1, keepdims=True) > 1e-200, weights, np.abs(end - origin) + np.finfo(float).tiny)
    corrected: Floats = shares + missing[:, None] * weights / weights.sum(axis=1, keepdims=True)
    return np.asarray(corrected.sum(axis=0))
