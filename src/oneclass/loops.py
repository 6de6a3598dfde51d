"""The loops in which a window spends its time: compiled where a compiler and the processor allow, otherwise by SciPy.

For a window of 150 rows the compiled ones (_loops.c) take a quarter of SciPy's time for distances, half of it for a factor and a
fifth for its inverse: `cdist` is not vectorised, and LAPACK's routines for triangles are made for thousands of rows. Where 1000
rows are learnt one by one they walk through memory once, BLAS twice. Both ways agree to rounding, not in bits: a stream keeps its
bits on one machine, and agrees to rounding when it moves to one where the other way is taken.
"""

from importlib import import_module
from types import ModuleType
from typing import Literal

import numpy as np
from scipy.linalg import blas, lapack
from scipy.spatial.distance import cdist

from oneclass.types import Floats

_HALVED_ABOVE = 100


def _compiled() -> ModuleType | None:
    try:
        return import_module("oneclass._loops")
    except ImportError:  # built without a compiler, or this processor lacks AVX2 or FMA
        return None


_loops = _compiled()


def is_compiled() -> bool:
    """Whether the compiled loops are in use."""
    return _loops is not None


def squared_distances(X: Floats, Y: Floats, factor: float = 1.0) -> Floats:
    """factor · ||x - y||² for (m, d) and (n, d) rows, shape (m, n); each from its two rows alone, by exact differences."""
    if _loops is None:
        return _by_scipy("sqeuclidean", X, Y, factor)
    X, Y, out = _rows(X), _rows(Y), np.empty((len(X), len(Y)))
    _loops.squared(X, len(X), Y, len(Y), X.shape[1], factor, out)
    return out


def cityblock_distances(X: Floats, Y: Floats, factor: float = 1.0) -> Floats:
    """factor · ||x - y||₁, the sum of absolute differences; otherwise as `squared_distances`."""
    if _loops is None:
        return _by_scipy("cityblock", X, Y, factor)
    X, Y, out = _rows(X), _rows(Y), np.empty((len(X), len(Y)))
    _loops.cityblock(X, len(X), Y, len(Y), X.shape[1], factor, out)
    return out


def cholesky(matrix: Floats, ridge: Floats, lower: Floats) -> int:
    """Write the Cholesky factor of `matrix` + diag(ridge) into `lower`; 0, or the 1-based row at which it is not positive definite.

    `matrix` is in C order, and what counts of it is on and above the diagonal; `lower` is in Fortran order, and what is written
    above its diagonal means nothing. Equals LAPACK's dpotrf.
    """
    if _loops is None:
        np.copyto(lower.T, matrix)
        lower.T.reshape(-1)[:: len(lower) + 1] += ridge
        return int(lapack.dpotrf(lower, lower=1, clean=0, overwrite_a=1)[1])
    failed: int = _loops.cholesky(matrix, ridge, len(matrix), lower.T)
    return failed


def invert_lower(lower: Floats) -> Floats:
    """The inverse of a lower triangle, with zeros above; argument and answer are in Fortran order. Equals LAPACK's dtrtri."""
    if _loops is None:
        return _inverted_by_halves(lower)
    inverse = np.empty_like(lower, order="F")
    _loops.invert(lower.T, len(lower), inverse.T)
    return inverse


def add_and_multiply(lower: Floats, update: tuple[Floats, Floats] | None, values: Floats) -> Floats:
    """Write S + abᵀ + baᵀ, `update` being (a, b), over the lower triangle of S, and return the product of the sum with `values`.

    `lower` is in Fortran order; what is above its diagonal means nothing. Equals BLAS' dsyr2 and then dsymv.
    """
    if _loops is None:
        if update is not None:
            blas.dsyr2(1.0, *update, a=lower, lower=1, overwrite_a=1)
        return blas.dsymv(1.0, lower, values, lower=1)
    product = np.zeros(len(lower))
    _loops.add_and_multiply(lower.T, len(lower), *(update or (None, None)), np.ascontiguousarray(values), product)
    return product


def _rows(X: Floats) -> Floats:
    return np.ascontiguousarray(X, dtype=np.float64)


def _by_scipy(metric: Literal["sqeuclidean", "cityblock"], X: Floats, Y: Floats, factor: float) -> Floats:
    distances: Floats = cdist(X, Y, metric)
    distances *= factor
    return distances


def _inverted_by_halves(lower: Floats) -> Floats:
    # dtrtri runs unblocked at these sizes, products do not.
    n = len(lower)
    if n <= _HALVED_ABOVE:
        whole: Floats = np.tril(lapack.dtrtri(lower, lower=1)[0])
        return whole
    half = n // 2
    first, last = _inverted_by_halves(lower[:half, :half]), _inverted_by_halves(lower[half:, half:])
    inverse = np.zeros((n, n), order="F")
    inverse[:half, :half], inverse[half:, half:] = first, last
    inverse[half:, :half] = -last @ (lower[half:, :half] @ first)
    return inverse
