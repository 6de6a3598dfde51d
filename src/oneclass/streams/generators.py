"""Streams that are drawn, not read: scenes of the archive's kinds, with drift, and with as many others among the targets as wished.

All take `rows`, `features`, `contamination` and `seed`, and all but `regimes` `drift`; `oneclass.streams.drift` says what each
drift is, and how p runs with it between 0 and 1. N(m, s²) is the normal distribution with mean m and deviation s in every feature,
independently.
"""

import numpy as np

from oneclass.streams.drift import Course, directions, require_a_plane
from oneclass.streams.stream import Stream
from oneclass.types import Bools, Floats
from oneclass.validation import checked_whole

KNOTS = 6  # of UG-2C-2D, whose means turn at five equal parts of the stream


def translation(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    distance: float = 20.0,
    gap: float = 5.0,
) -> Stream:
    """Two Gaussians that move along the diagonal, the others ahead: so targets come to where the others were.

    Targets are N(distance · p · u, 1), others N((distance · p + gap) · u, 1), with u = (1, ..., 1) / √features.
    As 1CDT, 2CDT and 5CVT in the archive.

    >>> translation(rows=4, contamination=0.0, drift="abrupt", seed=1).rows.round(1).tolist()
    [[0.5, 1.5], [0.7, 2.7], [13.4, 12.4], [13.6, 12.2]]
    """

    def scene(p: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """Both classes at p, the others ahead."""
        ahead = (distance * p + gap * ~is_target) / np.sqrt(features)
        drawn: Floats = rng.standard_normal((len(p), features)) + ahead[:, None]
        return drawn

    return Course(rows, features, drift, contamination, seed).stream(
        "translation: the others ahead", scene, distance=distance, gap=gap
    )


def rotation(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    radius: float = 8.0,
    turns: float = 1.25,
) -> Stream:
    """Four Gaussians a quarter turn apart on a circle that rotates; one is the target, each of the others comes equally often.

    In the first two features the target is at radius · (cos a, sin a) with a = 2π · turns · p, the others at a + π/2, a + π
    and a + 3π/2; in all features N(0, 1) is added. With a whole number of turns all but incremental drift stands still. As 4CR.
    """
    return _circling(Course(rows, features, drift, contamination, seed), "rotation: four classes on a circle", radius, 1.0, turns)


def expansion(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    radius: float = 4.0,
    growth: float = 3.0,
    turns: float = 0.25,
) -> Stream:
    """As `rotation`, while the circle grows: its radius is radius · (1 + (growth - 1) · p). As 4CRE-V1 and 4CRE-V2."""
    course = Course(rows, features, drift, contamination, seed)
    return _circling(course, "expansion: four classes on a circle that grows", radius, growth, turns)


def surrounding(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    radius: float = 7.0,
    turns: float = 1.5,
) -> Stream:
    """A narrow target class that travels round a wide, fixed class of others.

    Others are N(0, 2²). Targets are N(0, 1) added, in the first two features, to radius · (cos a, sin a) with
    a = 2π · turns · p. As 1CSurr.
    """
    require_a_plane("surrounding", features)

    def scene(p: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """The wide class at rest, the targets on their way round."""
        drawn = rng.standard_normal((len(p), features)) * np.where(is_target, 1.0, 2.0)[:, None]
        drawn[:, :2] += _on_circle(2.0 * np.pi * turns * p, np.where(is_target, radius, 0.0))
        return drawn

    return Course(rows, features, drift, contamination, seed).stream(
        "surrounding: targets round a wide class", scene, radius=radius, turns=turns
    )


def unimodal(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
) -> Stream:
    """Two Gaussians whose means and deviations move along polygons: `multimodal` with one mode. As the UG sets."""
    return _gaussians(Course(rows, features, drift, contamination, seed), "unimodal: two Gaussians on polygons", 1)


def multimodal(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    modes: int = 3,
) -> Stream:
    """A target class of several Gaussians, drawn equally often, and one Gaussian of others; all move along polygons.

    Each mode has 6 means, uniform in [0, 10]^features, and 6 deviations, uniform in [0.6, 1.4], at p = 0, 0.2, ..., 1;
    between them both are interpolated linearly. The others move as the first mode does, mirrored in the centre of the cube, so
    classes may meet and part, as they do in the archive. As MG-2C-2D and FG-2C-2D.
    """
    modes = checked_whole("modes", modes, at_least=1, hint="Gaussians of the target class")
    return _gaussians(Course(rows, features, drift, contamination, seed), f"multimodal: {modes} Gaussians on polygons", modes)


def gears(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    arms: int = 5,
    turns: float = 1.1,
) -> Stream:
    """Two gears that rotate against each other: no mean ever moves.

    A row lies on one of the arms, any equally often, at a distance from the hub uniform in [0, 0.8]. Arm k points at
    2π k / arms + a on the targets' gear, whose hub is (0, 0), and at 2π (k + 1/2) / arms - a on the others', whose hub is
    (1.3, 0), with a = 2π · turns · p. In all features N(0, 0.05²) is added. As GEARS-2C-2D.
    """
    require_a_plane("gears", features)
    arms = checked_whole("arms", arms, at_least=2, hint="arms of a gear; one alone would move its mean")

    def scene(p: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """An arm, a place on it, noise."""
        arm = rng.integers(arms, size=len(p)) + 0.5 * ~is_target
        angle = 2.0 * np.pi * (arm / arms + np.where(is_target, turns, -turns) * p)
        drawn = 0.05 * rng.standard_normal((len(p), features))
        drawn[:, :2] += _on_circle(angle, 0.8 * rng.random(len(p)))
        drawn[:, 0] += 1.3 * ~is_target
        return drawn

    return Course(rows, features, drift, contamination, seed).stream(f"gears: {arms} arms each", scene, turns=turns)


def _circling(course: Course, kind: str, radius: float, growth: float, turns: float) -> Stream:
    """Four classes a quarter turn apart on a circle that turns and grows."""
    require_a_plane(kind.partition(":")[0], course.features)

    def scene(p: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """The class's quarter of the circle, noise."""
        quarter = np.where(is_target, 0, rng.integers(1, 4, size=len(p)))
        drawn = rng.standard_normal((len(p), course.features))
        drawn[:, :2] += _on_circle(2.0 * np.pi * (turns * p + quarter / 4.0), radius * (1.0 + (growth - 1.0) * p))
        return drawn

    return course.stream(kind, scene, radius=radius, growth=growth, turns=turns)


def _gaussians(course: Course, kind: str, modes: int) -> Stream:
    """Gaussians on polygons; the last path is that of the others."""
    layout = course.layout()
    means = layout.uniform(0.0, 10.0, size=(modes, KNOTS, course.features))
    # Mirrored in the centre of the cube, the others keep away from the first mode wherever that is not near the centre itself.
    means = np.concatenate([means, 10.0 - means[:1]])
    deviations = layout.uniform(0.6, 1.4, size=(modes + 1, KNOTS))

    def scene(p: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """A path, the place on it between two knots, noise."""
        path = np.where(is_target, rng.integers(modes, size=len(p)), modes)
        # At p = 1 the last stretch of the polygon ends; none begins.
        knot = np.minimum((p * (KNOTS - 1)).astype(np.int64), KNOTS - 2)
        on = p * (KNOTS - 1) - knot
        mean = (1.0 - on)[:, None] * means[path, knot] + on[:, None] * means[path, knot + 1]
        deviation = (1.0 - on) * deviations[path, knot] + on * deviations[path, knot + 1]
        drawn: Floats = mean + deviation[:, None] * rng.standard_normal((len(p), course.features))
        return drawn

    return course.stream(kind, scene)


def regimes(
    rows: int = 10_000,
    features: int = 2,
    changes: int = 3,
    contamination: float = 0.1,
    seed: int = 0,
) -> Stream:
    """A normal class that jumps to another place and shape `changes` times, at equal distances in the stream; outliers all round.

    Each regime has a centre uniform in [-10, 10]^features, deviations uniform in [0.5, 2] and random orthogonal axes A.
    A target is centre + A diag(deviations) z with z from N(0, 1). For an outlier z is replaced by (√features + r) times a
    uniform direction, r uniform in [3, 6]: in any dimension it lies outside all but a few in a thousand targets.
    """
    course = Course(rows, features, "abrupt", contamination, seed, changes)
    layout, count = course.layout(), changes + 1
    centres = layout.uniform(-10.0, 10.0, size=(count, features))
    axes = np.linalg.qr(layout.standard_normal((count, features, features)))[0]
    shapes = axes * layout.uniform(0.5, 2.0, size=(count, 1, features))

    def scene(p: Floats, is_target: Bools, rng: np.random.Generator) -> Floats:
        """Rows round the origin, brought to the centre and shape of their regime."""
        # The drift is abrupt: p has the values 0, 1/changes, ..., 1, but for rounding.
        regime = np.rint(p * changes).astype(np.int64)
        outside = directions(rng, len(p), features) * (np.sqrt(features) + rng.uniform(3.0, 6.0, size=(len(p), 1)))
        drawn = np.where(is_target[:, None], rng.standard_normal((len(p), features)), outside)
        for each in np.unique(regime):  # few in a block; all their matrices at once would be features² numbers a row
            of = regime == each
            drawn[of] = centres[each] + np.einsum("ij,nj->ni", shapes[each], drawn[of])
        return drawn

    return course.stream(f"regimes: {changes} jumps of the normal class", scene)


def bursts(
    rows: int = 10_000,
    features: int = 2,
    drift: str = "incremental",
    contamination: float = 0.1,
    seed: int = 0,
    *,
    length: int = 20,
    distance: float = 20.0,
) -> Stream:
    """A moving Gaussian whose outliers come in bursts: `length` rows in a row, all in one place beside the targets.

    The stream is cut into stretches of `length` rows; each is a burst with probability `contamination`, and targets else. Targets
    are N(m, 1) with m = distance · p · u, u = (1, ..., 1) / √features. The rows of a burst are N(m + (√features + 5) e, 0.3²), with
    e a uniform direction for each burst.
    """
    length = checked_whole("length", length, at_least=1, hint="rows of a burst")

    def scene(p: Floats, towards: Floats, rng: np.random.Generator) -> Floats:
        """Targets on their way, bursts beside them."""
        deviation = np.where(towards.any(axis=1), 0.3, 1.0)[:, None]
        centre = (distance * p / np.sqrt(features))[:, None] + (np.sqrt(features) + 5.0) * towards
        drawn: Floats = centre + deviation * rng.standard_normal((len(p), features))
        return drawn

    return Course(rows, features, drift, contamination, seed).stream_in_bursts(
        f"bursts: of {length} rows", scene, length, distance=distance
    )


def _on_circle(angle: Floats, radius: Floats) -> Floats:
    at: Floats = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return at
