"""A sliding window whose rows live in the slots of a ring. Index arithmetic only; knows nothing of kernels or alarms.

While the window fills, the rows stand in slots 0, 1, … in order of age. Once it is full, each new row overwrites the oldest, so
that the rows that stay are never moved and everything that was computed for their slots stays valid.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oneclass.types import Ints


@dataclass(frozen=True)
class Ring:
    """Where the rows of a window are: `size` slots in use, the oldest row in slot `head`; `capacity` None means no limit."""

    capacity: int | None
    size: int = 0
    head: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the next row must overwrite the oldest."""
        return self.size == self.capacity

    @cached_property
    def by_age(self) -> Ints:
        """The slots in use, that of the oldest row first."""
        slots = np.arange(self.size)
        return np.concatenate([slots[self.head :], slots[: self.head]]) if self.head else slots

    def can_place(self, count: int) -> bool:
        """Whether `count` rows fit without moving any row that stays: into free slots, or over the oldest of a full ring."""
        if self.capacity is None or self.size + count <= self.capacity:
            return True
        return self.is_full and count < self.capacity

    def place(self, count: int) -> tuple["Ring", Ints]:
        """The ring after `count` new rows, and the slots they take, oldest first. Only when `can_place`."""
        if not self.is_full:
            return Ring(self.capacity, self.size + count, 0), np.arange(self.size, self.size + count)
        slots = (self.head + np.arange(count)) % self.size
        return Ring(self.capacity, self.size, (self.head + count) % self.size), slots


def spans(slots: Ints) -> list[slice]:
    """The same slots as at most two slices: a chunk that runs over the end of the ring goes on at slot 0."""
    start, count = int(slots[0]), len(slots)
    if int(slots[-1]) - start == count - 1:
        return [slice(start, start + count)]
    before = int(np.flatnonzero(np.diff(slots) < 0)[0]) + 1
    return [slice(start, start + before), slice(0, count - before)]
