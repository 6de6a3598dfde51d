"""The public files of the data sets, line by line as records: features, then an integer label.

Each reader takes the path of the file as its source has it, and yields lines without their ends. They are lenient: whether the
outcome is the data set is for its hash to say.
"""

import zipfile
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TypeAlias

Reader: TypeAlias = Callable[[Path], Iterator[str]]


def plain_text(path: Path) -> Iterator[str]:
    """Records without a header, as they stand."""
    with path.open(encoding="ascii") as lines:
        yield from (line.strip() for line in lines if line.strip())


def electricity(path: Path) -> Iterator[str]:
    """What follows @data in an ARFF file; UP is 1, DOWN is 0."""
    is_data = False
    for line in plain_text(path):
        if is_data:
            *cells, label = line.split(",")
            yield _record(cells, {"UP": 1, "DOWN": 0}[label])
        is_data = is_data or line.lower() == "@data"


def ecoli(path: Path) -> Iterator[str]:
    """A header, then the name of a protein, its features and where it is found; the places are counted in their order."""
    places = ("cp", "im", "imS", "imL", "imU", "om", "omL", "pp")
    lines = plain_text(path)
    next(lines, None)
    for line in lines:
        _, *cells, place = line.split(",")
        yield _record(cells, places.index(place) + 1)


def sonar(path: Path) -> Iterator[str]:
    """Features, then M (mine: 1) or R (rock: 0)."""
    for line in plain_text(path):
        *cells, label = line.split(",")
        yield _record(cells, {"M": 1, "R": 0}[label])


def abalone(path: Path) -> Iterator[str]:
    """The sex M, F or I as three columns of 0 and 1, measures, rings; a line that has been there before is left out.

    The source repeats ten of its lines; the original has no two alike.
    """
    for line in dict.fromkeys(plain_text(path)):
        sex, *cells, rings = line.split(",")
        yield _record([*(str(int(sex == each)) for each in "MFI"), *cells], int(rings))


def poker(path: Path) -> Iterator[str]:
    """The lines of poker.csv in a zip file that hold numbers only: a header, if there is one, is left out."""
    with zipfile.ZipFile(path) as archive, archive.open("poker.csv") as file:
        for line in TextIOWrapper(file, encoding="ascii"):
            if line.strip().replace(",", "").isdigit():
                yield line.strip()


def _record(cells: list[str], label: int) -> str:
    # repr gives the shortest text that is the same number: 0.50 and 0.5 become one record.
    return ",".join([*(repr(float(cell)) for cell in cells), str(label)])
