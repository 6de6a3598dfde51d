"""A sliding window whose rows live in the slots of a ring. Index arithmetic only; knows nothing of kernels or alarms.

While the window fills, the rows stand in slots 0, 1, … in order of age. Once it is full, each new row overwrites the oldest, so
that the rows that stay are never moved and everything that was computed for their slots stays valid.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from oneclass.types import Floats, Ints

Parts: TypeAlias = tuple[slice, ...]
"""Slots, in order: one slice, or two where a chunk runs over the end of the ring and goes on at slot 0."""


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

    def place(self, count: int) -> tuple["Ring", Parts]:
        """The ring after `count` new rows, and the slots they take, oldest first. Only when `can_place`."""
        if not self.is_full:
            return Ring(self.capacity, self.size + count), (slice(self.size, self.size + count),)
        end = self.head + count
        if end < self.size:
            return Ring(self.capacity, self.size, end), (slice(self.head, end),)
        parts = (slice(self.head, self.size), slice(0, end - self.size))
        return Ring(self.capacity, self.size, end - self.size), parts if end > self.size else parts[:1]


def overwritten(old: Floats, parts: Parts, new: Floats) -> Floats:
    """A copy of `old` with the rows of `new` in these slots, which may lie behind its end."""
    if parts[0].start == len(old):
        return np.concatenate([old, new])
    rows = old.copy()
    for part, chosen in zip(parts, counted(parts), strict=True):
        rows[part] = new[chosen]
    return rows


def counted(parts: Parts) -> Parts:
    """The places that the rows for these slots have in their chunk."""
    first = parts[0].stop - parts[0].start
    return (slice(0, first),) if len(parts) == 1 else (slice(0, first), slice(first, first + parts[1].stop))
