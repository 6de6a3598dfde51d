"""Widths for a Parzen density, from the rows alone: the likeliest one, and the one that the paper's toolbox takes for it."""

import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from oneclass.loops import squared_distances
from oneclass.sliding import levels_to_the_caller
from oneclass.types import Floats

_MOST_ROWS = 1500
_MOST_STEPS = 500
_DROPPED_BEYOND = 20.0
"""Where a weight is exp(-20), 2e-9, or less, it counts nothing."""


def likeliest_width(rows: Floats) -> float:
    """The h that maximises Σⱼ log p₋ⱼ(xⱼ), where p₋ⱼ is the density of all rows but j and its copies (Duin 1976).

    Of more than 1500 rows every k-th is used, and h then taken down by (n/m)^(-1/(d + 4)), as the best width falls with n.
    Rows that are all the same get the smallest width that is more than rounding.
    """
    D, nearest, unit = _sampled(rows)
    if not len(nearest):
        return _next_to_nothing(rows)
    farthest = float(D[np.isfinite(D)].max())

    def unlikelihood(log_square: float) -> float:
        """Minus the log-likelihood, up to what does not depend on h, as a function of log h²."""
        square = np.exp(log_square)
        return float(0.5 * rows.shape[1] * log_square * len(nearest) - logsumexp(D / (-2.0 * square), axis=0).sum())

    # With h beyond the largest distance or below a third of the smallest the likelihood falls.
    bounds = (np.log(float(nearest.min()) / 9.0), np.log(farthest))
    found = minimize_scalar(unlikelihood, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x
    return float(np.exp(0.5 * found)) * unit


def toolbox_width(rows: Floats) -> float:
    """The h at which PRTools' parzenml arrives: larger than the likeliest, since it weighs by other rows' nearest distances.

    It seeks the root of F(h) = (1/h²) Σᵢ (Σⱼ Dᵢⱼ wᵢⱼ / Σⱼ wᵢⱼ) - n d, D the positive squared distances. With the weights
    exp(-Dᵢⱼ/(2h²)) that would be the likeliest h. For the sake of accuracy it takes exp(-(Dᵢⱼ - minₖ Dₖⱼ)/(2h²)) instead, and so
    lifts rows j that have no near neighbour; sums over i would have been the ones from which the minimum cancels. Secants in h²,
    each followed with a hundredth less of its step than the one before, until F moves by less than 1e-4 or h by less than 1e-3.
    The rows used are those of `likeliest_width`.
    """
    D, nearest, unit = _sampled(rows)
    if not len(nearest):
        return _next_to_nothing(rows)
    excess = D - nearest
    target = len(nearest) * int(rows.shape[1])

    def slope(h: float) -> float:
        """F(h)."""
        exponents = excess / (2.0 * h * h)
        weights = np.where(exponents < _DROPPED_BEYOND, np.exp(-np.minimum(exponents, _DROPPED_BEYOND)), 0.0)
        sums = weights.sum(axis=1)
        weighted = (np.where(weights > 0.0, D, 0.0) * weights).sum(axis=1)
        total = float((weighted / np.where(sums > 0.0, sums, 1.0)).sum())
        return total / (h * h) - target

    return _damped_root(slope, float(np.sqrt(nearest.max())), target) * unit


def _damped_root(slope: Callable[[float], float], before: float, target: int) -> float:
    slope_before = slope(before)
    h = before * np.sqrt((slope_before + target) / target)
    slope_here, share = slope(h), 1.0
    for _ in range(_MOST_STEPS):
        # Two rows have F = 0 wherever one looks.
        if abs(slope_here) <= 1e-70 or abs(slope_before - slope_here) <= 1e-4 * abs(slope_before) or abs(1.0 - h / before) <= 1e-3:
            return float(h)
        flat = slope_here * h * h - slope_before * before * before
        square = before * before * h * h * (slope_here - slope_before) / flat if flat else -1.0
        aim = np.sqrt(square) if square > 0.0 else h * np.sqrt((slope_here + target) / target)
        before, slope_before = h, slope_here
        h += share * (aim - h)
        share *= 0.99
        slope_here = slope(h)
    warnings.warn(
        f"no width was found in {_MOST_STEPS} steps: give a number for width, or 'likeliest'",
        ConvergenceWarning,
        stacklevel=levels_to_the_caller(),
    )
    return float(h)


def _sampled(rows: Floats) -> tuple[Floats, Floats, float]:
    """Squared distances of the rows used, infinite where 0, the smallest of each column, and the unit that widths come in.

    The unit is the spread of the rows, so that squares neither overflow nor vanish, less what a sample does to the width.
    """
    sample = rows[:: -(-len(rows) // _MOST_ROWS)]
    centred = sample - sample.mean(axis=0)
    spread = float(np.abs(centred).max())
    unit = 2.0 ** float(np.floor(np.log2(spread))) if spread > 0.0 else 1.0  # a power of two takes no digits
    D = squared_distances(centred / unit, centred / unit)
    D[D <= 0.0] = np.inf  # a row is no neighbour of itself, nor of its copies
    nearest = D.min(axis=0)
    has_neighbour = np.isfinite(nearest)  # all rows have one, or none
    return D, nearest[has_neighbour], unit * float((len(rows) / len(sample)) ** (-1.0 / (rows.shape[1] + 4)))


def _next_to_nothing(rows: Floats) -> float:
    return max(1e-12, 1e-8 * float(np.abs(rows).max()))
