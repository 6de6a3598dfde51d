"""A symmetric matrix, kept as its lower triangle, that is updated and multiplied in one walk through memory.

At a thousand rows a walk is what a product or an update costs, whatever it computes on the way. So an update of rank two is only
noted, and written while the next product is formed.
"""

from typing import TypeAlias

import numpy as np
from scipy.linalg import blas

from oneclass.loops import add_and_multiply
from oneclass.types import Floats

_State: TypeAlias = tuple[Floats, tuple[Floats, Floats] | None]


class Symmetric:
    """S, shape (n, n), with S + abᵀ + baᵀ and S x as its operations. Takes over the array it is made of, in Fortran order."""

    def __init__(self, lower: Floats) -> None:
        self._state: _State = (lower, None)  # an array of which the lower triangle counts, and the update noted for it

    @property
    def lower(self) -> Floats:
        """The array, all updates written; only its lower triangle means anything."""
        lower, noted = self._state
        if noted is not None:
            # In a copy, and then all at once: an interrupt may come in the middle of whatever only reads this.
            lower = lower.copy(order="F")
            add_and_multiply(lower, noted, np.zeros(len(lower)))
            self._state = (lower, None)
        return lower

    def column(self, index: int) -> Floats:
        """One column of S."""
        lower = self._written()
        return np.concatenate([lower[index, :index], lower[index:, index]])

    def diagonal(self) -> Floats:
        """The diagonal of S."""
        lower, noted = self._state
        diagonal: Floats = lower.diagonal()
        return diagonal if noted is None else diagonal + 2.0 * noted[0] * noted[1]

    def add(self, first: Floats, second: Floats) -> None:
        """Note the update S + first·secondᵀ + second·firstᵀ."""
        self._state = (self._written(), (first, second))

    def times(self, values: Floats) -> Floats:
        """S values, for values of shape (n,) or (n, k)."""
        if values.ndim == 2:
            return blas.dsymm(1.0, self._written(), values, lower=1)
        lower, noted = self._state
        product = add_and_multiply(lower, noted, values)
        self._state = (lower, None)
        return product

    def times_again(self, values: Floats) -> Floats:
        """S values of shape (n,), right after `times`: with nothing noted any more BLAS is the quicker one, up to twice."""
        return blas.dsymv(1.0, self._written(), values, lower=1)

    def _written(self) -> Floats:
        lower, noted = self._state
        if noted is not None:
            self.times(np.zeros(len(lower)))
        return lower


def symmetric_product(matrix: Floats, values: Floats) -> Floats:
    """matrix @ values from the lower triangle of `matrix` alone, which halves the memory walked through."""
    if values.ndim == 1:
        return blas.dsymv(1.0, matrix, values, lower=1)
    return blas.dsymm(1.0, matrix, values, lower=1)
