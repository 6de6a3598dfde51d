"""A stream of rows of which it is known whether they belong to the target class: read when asked for, in chunks or at once."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from oneclass.errors import StreamError
from oneclass.types import Bools, Floats
from oneclass.validation import checked_whole


class Chunk(NamedTuple):
    """Some rows in a row, and for each whether it belongs to the target class."""

    rows: Floats
    is_target: Bools


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in order of arrival; nothing is read or drawn before rows are asked for.

    `rows` (n, features) and `is_target` (n) hold the whole stream, read once and kept; they cannot be written to. `chunks(size)`
    begins at the first row at every call and keeps no more than a few thousand rows, unless `rows` has been read already.
    `len(stream)` and `features` are known beforehand. How the rows are cut changes no bit of them.

    >>> stream = Stream.of([[0.0], [1.0], [9.0]], [True, True, False], name="three rows")
    >>> [chunk.rows.tolist() for chunk in stream.chunks(2)]
    [[[0.0], [1.0]], [[9.0]]]
    """

    name: str
    description: str
    count: int = field(repr=False)
    features: int = field(repr=False)
    blocks: Callable[[], Iterable[Chunk]] = field(repr=False)
    """Reads the stream from its first row, in blocks of any size that hold `count` rows together."""

    @classmethod
    def of(cls, rows: object, is_target: object, *, name: str = "rows", description: str = "rows in memory") -> "Stream":
        """The stream of rows that are in memory already, of which a copy is taken."""
        given, truths = np.array(rows), np.array(is_target)
        if given.dtype.kind not in "biuf" or not np.isfinite(given).all():
            raise StreamError(f"rows of type {given.dtype} came where a matrix of finite numbers is needed")
        numbers = given.astype(np.float64)
        if numbers.ndim != 2 or truths.shape != numbers.shape[:1] or truths.dtype != np.bool_:
            raise StreamError(
                f"rows of shape {numbers.shape} came with is_target of shape {truths.shape} and type {truths.dtype}: "
                f"give a matrix and one True or False for each of its rows"
            )
        count, features = numbers.shape
        return cls(name, description, count, features, lambda: [Chunk(numbers, truths)])

    def chunks(self, size: int = 50) -> Iterator[Chunk]:
        """The stream in chunks of `size` rows; the last has what is left."""
        size = checked_whole("size", size, at_least=1, hint="rows of a chunk")
        return _cut([self._all] if "_all" in vars(self) else self._counted(), size)

    @property
    def rows(self) -> Floats:
        """All rows, (n, features)."""
        return self._all.rows

    @property
    def is_target(self) -> Bools:
        """For each row whether it belongs to the target class."""
        return self._all.is_target

    def __len__(self) -> int:
        return self.count

    def _counted(self) -> Iterator[Chunk]:
        """The blocks, which must hold as many rows as was said, each with its truth."""
        seen = 0
        for rows, is_target in self.blocks():
            seen += len(rows)
            if rows.shape != (len(is_target), self.features) or seen > self.count:
                break
            yield Chunk(rows, is_target)
        else:
            if seen == self.count:
                return
        raise StreamError(
            f"{self.name}: after {seen:,} rows its blocks are not those of {self.count:,} rows of {self.features} features"
        )

    @cached_property
    def _all(self) -> Chunk:
        whole = Chunk(np.empty((self.count, self.features)), np.empty(self.count, dtype=np.bool_))
        start = 0
        for block in self._counted():
            stop = start + len(block.rows)
            whole.rows[start:stop], whole.is_target[start:stop] = block
            start = stop
        for part in whole:
            part.setflags(write=False)  # what one caller changed, the next would take for the data
        return whole


def _cut(blocks: Iterable[Chunk], size: int) -> Iterator[Chunk]:
    """The same rows, in chunks of one size."""
    waiting: list[Chunk] = []
    for block in blocks:
        # What is left of one block is joined to the next, never to all of them: memory is one block and one chunk.
        waiting.append(block)
        if sum(len(each.rows) for each in waiting) < size:
            continue
        joined = _joined(waiting)
        whole = len(joined.rows) - len(joined.rows) % size
        for start in range(0, whole, size):
            yield _part(joined, start, start + size)
        waiting = [_part(joined, whole, len(joined.rows))]
    if waiting and len((rest := _joined(waiting)).rows):
        yield _part(rest, 0, len(rest.rows))


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    return Chunk(np.concatenate([chunk.rows for chunk in chunks]), np.concatenate([chunk.is_target for chunk in chunks]))


def _part(chunk: Chunk, start: int, stop: int) -> Chunk:
    part = Chunk(chunk.rows[start:stop], chunk.is_target[start:stop])
    for array in part:
        array.setflags(write=False)  # it may be a view of what the next caller is given
    return part
