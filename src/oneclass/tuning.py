"""Parameters from the rows alone, by plain rules. Arrays in, numbers out.

The rules are deliberately simple. scale: the standard deviation of each feature. width: the median distance between two rows.
C: one over the mean of k(x, x), which is 1 for the kernels with a width; a small C is also what protects a window that has a few
outliers in it.
"""

import numpy as np
from scipy.spatial.distance import pdist

from oneclass.types import Floats

_MOST_ROWS = 500
_SMALLEST_SCALE = 1e-50
"""Rows are at most 1e100 (validation.LARGEST): divided by this, their squares are still numbers."""


def scale_of(rows: Floats) -> Floats:
    """The standard deviation of each feature; 1 where a feature is constant up to rounding, or next to nothing."""
    centre = np.abs(rows).max(axis=0)
    # Divided by the largest value first, so that squares neither overflow nor vanish.
    safe = np.where(centre > 0, centre, 1.0)
    spread = (rows / safe).std(axis=0) * safe
    return np.where(spread > np.maximum(8 * np.finfo(float).eps * centre, _SMALLEST_SCALE), spread, 1.0)


def median_width(rows: Floats, *, is_cityblock: bool = False) -> float:
    """The median of the distances between different rows; 1 where all are the same. Every k-th of more than 500 rows is used."""
    distances = pdist(rows[:: -(-len(rows) // _MOST_ROWS)], "cityblock" if is_cityblock else "euclidean")
    distances = distances[distances > 0]  # copies say nothing about how far rows are apart
    return float(np.median(distances)) if len(distances) else 1.0


def balanced_C(diagonal: Floats) -> float:
    """1 / mean k(x, x): kernel and ridge weigh the same. 1 for the kernels with a width."""
    mean = float(diagonal.mean())
    return 1.0 / mean if mean > 0 else 1.0
