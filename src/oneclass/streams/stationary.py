"""Sets that do not drift: the two of the paper's Figure 4, and stand-ins for the two streams whose files few have."""

from dataclasses import replace

import numpy as np

from oneclass.errors import StreamError
from oneclass.streams.drift import Course, directions, require_a_plane
from oneclass.streams.generators import unimodal
from oneclass.streams.stream import Stream
from oneclass.types import Bools, Floats


def ring(rows: int = 500, features: int = 2, contamination: float = 0.0, seed: int = 0) -> Stream:
    """Targets on a ring (in more dimensions: a sphere), others in its middle and around it: the first set of Figure 4.

    A row is a uniform direction times a radius: N(5, 0.4²) for targets; for others uniform in [0, 3] or in [7, 9], equally often.
    The paper shows a ring and gives no numbers; these are ours.
    """

    def scene(_: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """A direction and a radius."""
        count = len(is_target)
        beside = np.where(rng.random(count) < 0.5, rng.uniform(0.0, 3.0, count), rng.uniform(7.0, 9.0, count))
        radius = np.where(is_target, rng.normal(5.0, 0.4, count), beside)
        drawn: Floats = directions(rng, count, features) * radius[:, None]
        return drawn

    return Course(rows, features, "none", contamination, seed).stream("ring: targets on a sphere", scene)


def crescents(rows: int = 500, features: int = 2, contamination: float = 0.0, seed: int = 0) -> Stream:
    """Targets on two half circles that reach into each other, others between and around them: in place of Figure 4's second set.

    **Chosen by us**: the paper shows its second set and neither names nor describes it. Targets are, equally often,
    4 · (cos a, sin a) or (4 - 4 cos a, 2 - 4 sin a) with a uniform in [0, π], in the first two features, plus N(0, 0.4²) in
    all features. Others are uniform in [-7, 11] × [-7, 9], and N(0, 0.4²) in all further features; some lie on the targets.
    """

    def scene(_: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """A place on one of the arcs, or anywhere."""
        count = len(is_target)
        angle, is_second = rng.uniform(0.0, np.pi, count), rng.random(count) < 0.5
        across, along = 4.0 * np.cos(angle), 4.0 * np.sin(angle)
        arc = np.column_stack([np.where(is_second, 4.0 - across, across), np.where(is_second, 2.0 - along, along)])
        anywhere = rng.uniform([-7.0, -7.0], [11.0, 9.0], size=(count, 2))
        drawn = 0.4 * rng.standard_normal((count, max(features, 2)))
        drawn[:, :2] = np.where(is_target[:, None], drawn[:, :2] + arc, anywhere)
        return drawn

    require_a_plane("crescents", features)
    return Course(rows, features, "none", contamination, seed).stream("crescents: targets on two half circles", scene)


def stand_in(name: str) -> Stream:
    """A generated stream of the shape and the family of UG-2C-3D or UG-2C-5D: for speed and shape, **never as evidence**.

    `unimodal` with 200,000 rows, half of them targets, and seed 0. The originals cannot be drawn again: nobody knows their
    parameters.

    >>> stand_in("UG-2C-3D")
    Stream(name='UG-2C-3D (stand-in)', description='Generated in place of UG-2C-3D, for speed and shape, never as evidence: ...
    """
    features = {"UG-2C-3D": 3, "UG-2C-5D": 5}.get(name)
    if features is None:
        raise StreamError(f"there is no stand-in for {name!r}: only for 'UG-2C-3D' and 'UG-2C-5D'; load({name!r}) reads the others")
    drawn = unimodal(200_000, features, "incremental", 0.5)
    said = f"Generated in place of {name}, for speed and shape, never as evidence: {drawn.description}"
    return replace(drawn, name=f"{name} (stand-in)", description=said)
