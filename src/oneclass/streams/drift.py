"""How far a generated stream has come at each of its rows, and the drawing of its rows block by block.

A generator describes one scene with a place p: p = 0 is how the stream begins, p = 1 how far it can come. Which p a row sees
is the drift, with t = (number of the row, from 0) / (number of rows):

| drift | the place p of a row at time t |
|---|---|
| "none" | 0 |
| "incremental" | t: a little further with each row |
| "abrupt" | 0 in the first half, 1 in the second; with c changes 0, 1/c, 2/c, ..., 1, an equal part of the stream each |
| "gradual" | 0 or 1 by chance: 1 with probability 0 until t = 1/4, rising linearly, and 1 from t = 3/4; old and new rows mix |
| "recurring" | 0, 1, 0, 1, a quarter of the stream each: what was comes back |

Rows are drawn in blocks of 1000, each from a generator of random numbers of its own that the seed and the block's number determine.
So chunks of any size hold the same rows, and a stream of any length needs the memory of one block.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from oneclass.errors import InvalidParameterError
from oneclass.streams.stream import Chunk, Stream
from oneclass.types import Bools, Floats, Ints
from oneclass.validation import checked_number, checked_whole

Drift: TypeAlias = Literal["none", "incremental", "abrupt", "gradual", "recurring"]

Scene: TypeAlias = Callable[[Floats, Bools, np.random.Generator], Floats]
"""Draws a row at each place p, of the target class or not: (n) places and (n) truths to (n, features) rows."""

BLOCK = 1000

_ROWS, _LAYOUT, _BURSTS = range(3)
"""What random numbers are drawn for: each has a sequence of its own."""


@dataclass(frozen=True)
class Course:
    """The parameters that all generators share; a row belongs to the others with probability `contamination`, each by itself."""

    rows: int
    features: int
    drift: str
    contamination: float
    entropy: int  # the seed
    changes: int = 1  # jumps of an abrupt drift

    def __post_init__(self) -> None:
        checked_whole("rows", self.rows, at_least=1, hint="rows of the stream")
        checked_whole("features", self.features, at_least=1, hint="numbers in a row")
        checked_whole("seed", self.entropy, at_least=0, hint="the same seed gives the same rows")
        checked_whole("changes", self.changes, at_least=0, hint="jumps of the normal class")
        if self.drift not in get_args(Drift):
            raise InvalidParameterError(f"drift={self.drift!r}: choose one of {', '.join(map(repr, get_args(Drift)))}")
        checked_number("contamination", self.contamination, takes_zero=True, hint="the share of rows that are no targets, 0 to 1")
        if self.contamination > 1:
            raise InvalidParameterError(f"contamination={self.contamination!r}: give the share of rows that are no targets, 0 to 1")

    def layout(self) -> np.random.Generator:
        """The random numbers for what is decided once for the whole stream."""
        return self._numbers(_LAYOUT, 0)

    def stream(self, kind: str, scene: Scene, **shape: float) -> Stream:
        """The stream of a scene of this `shape`, in which targets and others come independently of each other."""

        def blocks() -> Iterator[Chunk]:
            """Who each row belongs to is drawn first, then the row."""
            for number, rng, place in self._steps():
                is_target: Bools = rng.random(len(number)) >= self.contamination
                yield Chunk(scene(place, is_target, rng), is_target)

        return self._described(kind, blocks, shape)

    def stream_in_bursts(
        self, kind: str, scene: Callable[[Floats, Floats, np.random.Generator], Floats], length: int, **shape: float
    ) -> Stream:
        """The stream of a scene in which the others come in stretches of `length` rows.

        The scene gets, for each row, where its stretch lies: a direction (unit vector), or zeros for a target.
        """

        def blocks() -> Iterator[Chunk]:
            """Where each row's stretch lies is drawn, then the row."""
            for number, rng, place in self._steps():
                # A stretch may begin in one block and end in the next: where it lies depends on its own number alone.
                stretch, which = np.unique(number // length, return_inverse=True)
                towards = np.stack([self._direction(int(each)) for each in stretch])[which]
                is_target: Bools = ~np.any(towards, axis=1)
                yield Chunk(scene(place, towards, rng), is_target)

        return self._described(kind, blocks, shape)

    def _direction(self, stretch: int) -> Floats:
        """Where the burst of a stretch lies; zeros if the stretch is none."""
        rng = self._numbers(_BURSTS, stretch)
        if rng.random() >= self.contamination:
            return np.zeros(self.features)
        drawn: Floats = directions(rng, 1, self.features)[0]
        return drawn

    def _steps(self) -> Iterator[tuple[Ints, np.random.Generator, Floats]]:
        """Block by block: the numbers of its rows, its random numbers, the places of its rows."""
        for block, start in enumerate(range(0, self.rows, BLOCK)):
            number = np.arange(start, min(start + BLOCK, self.rows), dtype=np.int64)
            rng = self._numbers(_ROWS, block)
            yield number, rng, self._places(number, rng)

    def _places(self, number: Ints, rng: np.random.Generator) -> Floats:
        """The place p of each row."""
        # In whole numbers where the stream is cut into parts: rounding of a quotient would make some of them a row longer.
        match self.drift:
            case "incremental":
                return np.asarray(number / self.rows, dtype=np.float64)
            case "abrupt":
                return np.asarray((number * (self.changes + 1) // self.rows) / max(self.changes, 1), dtype=np.float64)
            case "gradual":
                chance = np.clip(2.0 * number / self.rows - 0.5, 0.0, 1.0)
                return np.asarray(rng.random(len(number)) < chance, dtype=np.float64)
            case "recurring":
                return np.asarray((4 * number // self.rows) % 2, dtype=np.float64)
        return np.zeros(len(number))

    def _described(self, kind: str, blocks: Callable[[], Iterator[Chunk]], shape: Mapping[str, float]) -> Stream:
        for name, value in shape.items():
            is_number: bool = isinstance(value, int | float | np.integer | np.floating)  # whatever its type says
            if not is_number or not np.isfinite(value):
                raise InvalidParameterError(f"{name}={value!r}: give a finite number")
        # Everything that another call would have to be given for the same rows.
        said = "".join(f"{name} {float(value):g}, " for name, value in shape.items())
        said = (
            f"Generated: {kind}; {self.drift} drift, {said}{self.rows:,} rows, {self.features} features, "
            f"contamination {float(self.contamination)!r}, seed {self.entropy}."
        )
        return Stream(kind.partition(":")[0], said, self.rows, self.features, blocks)

    def _numbers(self, purpose: int, index: int) -> np.random.Generator:
        # A key of its own: entropies that differ in trailing zeros alone are the same seed to NumPy.
        return np.random.default_rng(np.random.SeedSequence(int(self.entropy), spawn_key=(purpose, index)))


def directions(rng: np.random.Generator, count: int, features: int) -> Floats:
    """Unit vectors, uniform on the sphere."""
    drawn = rng.standard_normal((count, features))
    unit: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def require_a_plane(name: str, features: int) -> None:
    """Raise for a single feature, in which nothing can turn."""
    if features < 2:
        raise InvalidParameterError(f"{name} needs a plane, and features={features!r}: give at least 2, or use translation")
