"""The kernel matrix of a window that moves: a cache beside the rows it was computed from, of which it can be made again."""

from typing import Protocol

import numpy as np

from oneclass.parameters import Parameters
from oneclass.rivals.svdd import kernel_matrix
from oneclass.types import Floats, Ints


class Owner(Protocol):
    """Rows in slots, and the kernel they are seen with."""

    @property
    def parameters(self) -> Parameters:
        """The kernel in force."""
        ...

    @property
    def scaled(self) -> Floats:
        """The rows in slots, as the kernel sees them."""
        ...


class Gram:
    """K of the rows in slots. It belongs to one owner: whoever asks on behalf of another has it computed afresh.

    So a change that is broken off, or a copy of the owner that goes its own way, can do no harm: the numbers are then nobody's.
    """

    def __init__(self) -> None:
        self._owner: Owner | None = None
        self._room = np.empty((0, 0))

    def __reduce__(self) -> tuple[type["Gram"], tuple[()]]:
        """For pickle and copies: nothing of it is carried along."""
        return Gram, ()

    def of(self, owner: Owner) -> Floats:
        """K of the owner's rows, (n, n); a view of what the next change writes to."""
        size = len(owner.scaled)
        if self._owner is not owner:
            self.fill(kernel_matrix(owner.parameters, owner.scaled))
            self._owner = owner
        return self._room[:size, :size]

    def fill(self, kernel: Floats) -> Floats:
        """Be this matrix, nobody's yet."""
        self._owner, self._room = None, kernel
        return kernel

    def write(self, owner: Owner, slots: Ints, kernel: Floats, capacity: int | None) -> Floats:
        """The owner's K with rows and columns of `slots` replaced, or added behind its end; nobody's yet. `kernel`: (s, n)."""
        self.of(owner)
        self._owner = None
        size = kernel.shape[1]
        if size > len(self._room):
            self._grow(len(owner.scaled), size, capacity)
        K = self._room[:size, :size]
        K[slots] = kernel
        K[:, slots] = kernel.T
        return K

    def close_up(self, owner: Owner, sources: Ints, targets: Ints, size: int) -> Floats:
        """The owner's K of the first `size` slots, once the rows in `sources`, behind them, are in `targets`; nobody's yet."""
        K = self.of(owner)
        self._owner = None
        K[targets] = K[sources]
        K[:, targets] = K[:, sources]
        K[size:] = K[:, size:] = 0.0  # nothing of a forgotten row stays
        return K[:size, :size]

    def give_to(self, owner: Owner) -> None:
        """From here on it is this owner's."""
        self._owner = owner

    def _grow(self, used: int, size: int, capacity: int | None) -> None:
        # Doubled, so that a row that comes alone does not copy all rows before it.
        side = 2 * size if capacity is None else min(2 * size, capacity)
        room = np.zeros((side, side))
        room[:used, :used] = self._room[:used, :used]
        self._room = room
