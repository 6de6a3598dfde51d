"""Files of records: one header line, numeric features, a last column `label`; plain or gzipped, read piece by piece."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from oneclass.errors import StreamError
from oneclass.streams.datasets import Dataset
from oneclass.streams.stream import Chunk
from oneclass.types import Floats

LINES = 4000
"""Lines read at a time: long enough for NumPy's parser to be at its speed, and under 2 MB for sixty features."""


def opened(path: Path) -> BinaryIO:
    """The bytes of a file, unzipped if its name ends in .gz."""
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def blocks_of(path: Path, dataset: Dataset) -> Iterator[Chunk]:
    """The records of a file, some thousands at a time; it must have the columns, rows and targets of the data set.

    Columns are checked before the first row is handed out. That rows are missing shows at the end only, and is raised there.
    """
    seen = targets = 0
    for lines in _pieces(path, dataset):
        cells = _numbers(lines, path, seen + 2, dataset.features + 1)
        is_target = np.isin(cells[:, -1], dataset.target_labels)
        seen, targets = seen + len(cells), targets + int(is_target.sum())
        if seen > dataset.count:  # a much longer file need not be read to its end
            break
        yield Chunk(np.ascontiguousarray(cells[:, :-1]), is_target)
    if (seen, targets) != (dataset.count, dataset.targets):
        more = "or more " if seen > dataset.count else ""
        raise StreamError(
            f"{path} has {seen:,} {more}rows, {targets:,} of them targets; {dataset.name} has {dataset.count:,} rows and "
            f"{dataset.targets:,} targets ({dataset.target}). Replace the file by the whole data set, or remove it"
        )


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A file that is damaged, or that may not be read, fails as a StreamError."""
    try:
        yield
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise StreamError(f"{path} cannot be read to its end ({error}): replace it, or remove it") from error


def _pieces(path: Path, dataset: Dataset) -> Iterator[list[str]]:
    """The lines behind the header, without empty ones."""
    with readable(path), opened(path) as file:
        lines = (line.decode() for line in file if line.strip())
        _require_header(next(lines, "").removeprefix("\ufeff"), path, dataset)  # spreadsheets begin with a byte order mark
        while piece := list(islice(lines, LINES)):
            yield piece


def _require_header(line: str, path: Path, dataset: Dataset) -> None:
    columns = [name.strip() for name in line.split(",")]
    if len(columns) != dataset.features + 1 or columns[-1] != "label":
        raise StreamError(
            f"{path} begins with {line.strip()[:80]!r}: {dataset.name} needs one header line that names {dataset.features} "
            f"features and, last, 'label'"
        )


def _numbers(lines: list[str], path: Path, first: int, width: int) -> Floats:
    """The cells of some lines; `first` is the number of the first line in the file, counted from 1 without empty lines."""
    # NumPy's parser is twice as fast as float() cell by cell, and does not say which line of the file is wrong.
    try:
        cells: Floats = np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)
        if cells.shape[1] == width and np.isfinite(cells).all():
            return cells
    except ValueError:  # the search below says where
        pass
    for place, line in enumerate(lines):
        texts = line.strip().split(",")
        if len(texts) != width:
            raise StreamError(
                f"{path}, line {first + place}: {len(texts)} cells where {width} are needed. Correct or replace the file"
            )
        for column, text in enumerate(texts):
            if not _is_finite_number(text):
                raise StreamError(
                    f"{path}, line {first + place}, column {column + 1}: {text!r} is no finite number. Correct or replace the file"
                )
    raise StreamError(f"{path}, lines {first} to {first + len(lines) - 1} cannot be read as numbers. Replace the file")


def _is_finite_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
