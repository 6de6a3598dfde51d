"""Thresholds and p-values from the distances of normal rows. Arrays in, numbers out; knows nothing of kernels."""

from functools import lru_cache

import numpy as np

from oneclass.types import Floats


@lru_cache(maxsize=64)
def most_at_rate(n: int, rate: float) -> int:
    """The largest m with m / n <= rate, as floats compare.

    Rounding of the product n * rate must not decide: 0.29 * 100 is 28.999… in floats, and yet 29 of 100 rows are 29 %.
    """
    m = int(n * rate)
    while (m + 1) / n <= rate:
        m += 1
    while m / n > rate:
        m -= 1
    return m


def training_threshold(ascending: Floats, alarm_rate: float) -> float:
    """The distance at 1-based index ceil(n(1 - alarm_rate)): exactly floor(n * alarm_rate) rows can lie strictly above it.

    The rule of the authors' code. Equation (27) counts one row further and names row 0 when n * alarm_rate < 1.
    """
    n = len(ascending)
    return float(ascending[n - 1 - most_at_rate(n, alarm_rate)])  # Thr1 of the toolbox


def leave_one_out_threshold(ascending: Floats, alarm_rate: float) -> float:
    """The distance at 1-based index ceil((n + 1)(1 - alarm_rate)), so that an alarm is exactly a p-value <= alarm_rate.

    Infinite when (n + 1) * alarm_rate < 1: no p-value of n rows is that small.
    """
    n = len(ascending)
    flagged = most_at_rate(n + 1, alarm_rate)
    return float(ascending[n - flagged]) if flagged else float("inf")


def threshold_of(left_out: Floats | None, in_window: Floats | None, alarm_rate: float) -> float:
    """The training threshold where in-window distances are given, in any order, else that of the ascending leave-one-out ones."""
    if in_window is not None:
        return training_threshold(np.sort(in_window), alarm_rate)
    return float("inf") if left_out is None else leave_one_out_threshold(left_out, alarm_rate)


def p_values(ascending: Floats, distances: Floats) -> Floats:
    """(1 + number of `ascending` distances >= d) / (n + 1) for each d: the share of normal rows expected to lie as far out."""
    n = len(ascending)
    as_far = n - np.searchsorted(ascending, distances, side="left")  # "left": an equal distance counts as being as far
    shares: Floats = (as_far + 1) / np.float64(n + 1)
    return shares


def p_value(left_out: Floats, distance: float) -> float:
    """`p_values` of one distance, against distances in any order."""
    return float((np.count_nonzero(left_out >= distance) + 1) / np.float64(len(left_out) + 1))


def midway_threshold(ascending: Floats, alarm_rate: float) -> float:
    """Midway between the two distances that `alarm_rate` parts: with k = n(1 - alarm_rate), rounded, those at 1-based k and k + 1.

    The rule of dd_tools; k = 0 names the smallest distance and k = n the largest.
    """
    n = len(ascending)
    k = int(np.floor(round(n * (1.0 - alarm_rate), 9) + 0.5))  # half away from zero, as MATLAB rounds; 0.85 · 10 is a half, too
    if k in {0, n}:
        return float(ascending[min(k, n - 1)])
    return float((ascending[k - 1] + ascending[k]) / 2.0)


def midway_density(ascending: Floats, alarm_rate: float, *, is_logarithmic: bool = False) -> float:
    """Like `midway_threshold` from below, for log densities: midway between the k-th and the next, k = n · alarm_rate, rounded.

    Midway between the densities themselves, unless `is_logarithmic`.
    """
    n = len(ascending)
    k = int(np.floor(round(n * alarm_rate, 9) + 0.5))
    if k in {0, n}:
        return float(ascending[min(k, n - 1)])
    below, above = float(ascending[k - 1]), float(ascending[k])
    middle = (below + above) / 2.0 if is_logarithmic else float(np.logaddexp(below, above) - np.log(2.0))
    return min(max(middle, below), above)  # between the two after rounding, too: rows on the threshold are accepted
