"""Rivals that keep a few typical rows: d(x) is how far the nearest of them is."""

import warnings
from typing import Literal

import numpy as np
from sklearn.cluster import KMeans as Lloyd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from oneclass.errors import InvalidParameterError
from oneclass.loops import squared_distances
from oneclass.rivals.rival import Rival, in_blocks
from oneclass.sliding import levels_to_the_caller
from oneclass.threads import one_openmp_thread
from oneclass.types import Floats, Ints, Seed
from oneclass.validation import checked_number, checked_whole


class KMeans(Rival):
    """k centres amid the rows; d(x) is the distance to the nearest one, not squared. kmeans_dd of dd_tools.

    Source: MacQueen 1967; as a one-class classifier Tax 2001.

    Lloyd's iteration of scikit-learn, until no row changes its centre (ConvergenceWarning if `steps` steps are not enough), the
    best of `restarts` from k-means++. `start`: k rows to begin at instead. At most as many centres as there are different rows.
    Costs n k d a step to fit and k d a row to score.

    >>> import numpy as np
    >>> model = KMeans(k=3).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        k: int = 5,
        start: Floats | None = None,
        restarts: int = 3,
        steps: int = 1000,
        alarm_rate: float = 0.05,
        threshold: Literal["training", "held-out"] = "held-out",
        random_state: Seed = 0,
    ) -> None:
        self.k = k
        self.start = start
        self.restarts = restarts
        self.steps = steps
        self.alarm_rate = alarm_rate
        self.threshold = threshold
        self.random_state = random_state

    def _learn(self, rows: Floats) -> Floats:
        k = checked_whole("k", self.k, at_least=1, hint="centres") if self.start is None else len(self.start)
        restarts = checked_whole("restarts", self.restarts, at_least=1, hint="runs of which the best is kept")
        steps = checked_whole("steps", self.steps, at_least=1, hint="of Lloyd's iteration")
        centre = rows.mean(axis=0)  # squares of what is near the origin lose least
        if self.start is None:
            k = min(k, len(np.unique(rows, axis=0)))
            lloyd = Lloyd(k, n_init=restarts, max_iter=steps, tol=0.0, random_state=check_random_state(self.random_state))
        else:
            start = check_array(self.start, dtype=np.float64)
            if start.shape != (k, rows.shape[1]) or k > len(rows):
                raise InvalidParameterError(
                    f"start has shape {start.shape}: give at most {len(rows)} rows of {rows.shape[1]} features"
                )
            lloyd = Lloyd(k, init=start - centre, n_init=1, max_iter=steps, tol=0.0)
        with one_openmp_thread(len(rows)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said below, in the words of this class
            self.centres_: Floats = lloyd.fit(rows - centre).cluster_centers_ + centre
        if lloyd.n_iter_ >= steps:
            warnings.warn(
                f"rows still changed their centres after {steps} steps: raise steps",
                ConvergenceWarning,
                stacklevel=levels_to_the_caller(),
            )
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        return np.sqrt(_to_nearest(rows, self.centres_))


class SelfOrganisingMap(Rival):
    """A grid of prototypes laid over the rows; d(x) is the squared distance to the nearest one. som_dd of dd_tools.

    Source: Kohonen 1990; as a one-class classifier Tax 2001.

    Kohonen's batch map: in every epoch each prototype moves to the mean of all rows, a row weighing exp(-g²/(r·diagonal)) if its
    nearest prototype is g steps away in the grid. `reaches` are the r of the stages, `epochs` how often each is gone through; both,
    and the random cloud round the mean that the map begins as, are those of som_dd. That moves its map after every row instead,
    which cannot be done without a loop over the rows, and ends in much the same place.
    Costs k n d flops an epoch to fit with k prototypes, and k d a row to score.

    >>> import numpy as np
    >>> model = SelfOrganisingMap(shape=(3, 3)).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        shape: tuple[int, int] = (5, 5),
        epochs: tuple[int, ...] = (20, 40, 40),
        reaches: tuple[float, ...] = (0.6, 0.2, 0.01),
        alarm_rate: float = 0.05,
        threshold: Literal["training", "held-out"] = "held-out",
        random_state: Seed = 0,
    ) -> None:
        self.shape = shape
        self.epochs = epochs
        self.reaches = reaches
        self.alarm_rate = alarm_rate
        self.threshold = threshold
        self.random_state = random_state

    def _learn(self, rows: Floats) -> Floats:
        stages = self._stages()
        height, width = self._sides()
        random = check_random_state(self.random_state)
        centre = rows.mean(axis=0)
        centred = rows - centre
        prototypes = 0.2 * centred.std(axis=0) * random.uniform(size=(height * width, rows.shape[1]))
        down, across = np.divmod(np.arange(height * width), width)
        squares = np.square(np.subtract.outer(across, across)) + np.square(np.subtract.outer(down, down))
        diagonal = max(float(np.sqrt(squares.max())), 1.0)
        for epochs, reach in stages:
            pull = np.exp(-squares / (reach * diagonal))
            for _ in range(epochs):
                owners = _owners(centred, prototypes)
                totals = np.zeros_like(prototypes)
                np.add.at(totals, owners, centred)
                weights = pull @ np.bincount(owners, minlength=len(prototypes))
                moved = pull @ totals / np.where(weights > 0.0, weights, 1.0)[:, None]
                prototypes = np.where(weights[:, None] > np.finfo(float).tiny, moved, prototypes)
        self.prototypes_ = prototypes + centre
        return self._distances(rows)

    def _sides(self) -> tuple[int, int]:
        if np.shape(self.shape) != (2,):
            raise InvalidParameterError(f"shape={self.shape!r}: give two whole numbers, such as (5, 5)")
        height, width = (checked_whole("shape", side, at_least=1, hint="prototypes a side") for side in self.shape)
        return height, width

    def _stages(self) -> list[tuple[int, float]]:
        if np.ndim(self.epochs) != 1 or np.shape(self.epochs) != np.shape(self.reaches):
            raise InvalidParameterError(
                f"epochs={self.epochs!r} and reaches={self.reaches!r} are not of one length: give a number each for every stage"
            )
        epochs = [checked_whole("epochs", each, at_least=0, hint="times through the rows") for each in self.epochs]
        return list(zip(epochs, (checked_number("reaches", r, hint="a share of the diagonal") for r in self.reaches), strict=True))

    def _distances(self, rows: Floats) -> Floats:
        return _to_nearest(rows, self.prototypes_)


def _to_nearest(rows: Floats, prototypes: Floats) -> Floats:
    return in_blocks(lambda block: squared_distances(block, prototypes).min(axis=1), rows, len(prototypes))


def _owners(rows: Floats, prototypes: Floats) -> Ints:
    """The nearest prototype of each row."""
    owners: Ints = squared_distances(rows, prototypes).argmin(axis=1)
    return owners
