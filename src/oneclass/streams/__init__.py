"""Streams with known targets: the 26 data sets of the paper, and generators that need no file.

>>> from oneclass import streams
>>> stream = streams.translation(rows=1000, drift="abrupt", contamination=0.05, seed=3)
>>> stream.rows.shape, int(stream.is_target.sum())
((1000, 2), 952)
>>> first = next(stream.chunks(50))
>>> first.rows.shape, first.is_target.shape
((50, 2), (50,))
>>> streams.names()[:3]
['1CDT', '1CHT', '4CE1CF']
>>> print(streams.load("1CDT").description)
1CDT (Table IV): 16,000 rows, 2 features; 8,000 targets (class 1), 8,000 others. ...
"""

from collections.abc import Iterator
from difflib import get_close_matches

from oneclass.errors import StreamError
from oneclass.streams.datasets import DATASETS, Dataset
from oneclass.streams.drift import Drift
from oneclass.streams.fetching import located
from oneclass.streams.generators import bursts, expansion, gears, multimodal, regimes, rotation, surrounding, translation, unimodal
from oneclass.streams.records import blocks_of
from oneclass.streams.stationary import crescents, ring, stand_in
from oneclass.streams.stream import Chunk, Stream

__all__ = [
    "DATASETS",
    "Chunk",
    "Dataset",
    "Drift",
    "Stream",
    "bursts",
    "crescents",
    "expansion",
    "gears",
    "load",
    "multimodal",
    "names",
    "regimes",
    "ring",
    "rotation",
    "stand_in",
    "surrounding",
    "translation",
    "unimodal",
]


def names() -> list[str]:
    """The names of the 26 data sets of the paper: Table IV, then Table II."""
    return list(DATASETS)


def load(name: str, *, verify: bool = False) -> Stream:
    """The data set of that name, read when its rows are asked for, not before.

    Its file, <name>.csv.gz or <name>.csv, is looked for in the folders of ONECLASS_DATA, then in the cache (ONECLASS_CACHE, or the
    user's), and else fetched from its public source and checked. Capitals, blanks and underscores do not matter. With `verify` a
    file in a folder must have the bytes of the original; without, its columns and its numbers of rows and targets must be right.
    StreamError says what is missing or wrong: for an unknown name at once, for a file when it is read.
    """
    dataset = _known(name)

    def blocks() -> Iterator[Chunk]:
        """The file is looked for each time: it may have come in the meantime."""
        yield from blocks_of(located(dataset, verify=verify), dataset)

    return Stream(dataset.name, dataset.description, dataset.count, dataset.features, blocks)


def _known(name: str) -> Dataset:
    spelled = {each.lower(): each for each in DATASETS}
    asked = str(name).strip().lower().replace("_", "-").replace(" ", "-")
    if asked in spelled:
        return DATASETS[spelled[asked]]
    near = [spelled[each] for each in get_close_matches(asked, spelled, n=3)]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise StreamError(f"there is no data set {name!r}: {hint}oneclass.streams.names() lists all {len(DATASETS)}")
