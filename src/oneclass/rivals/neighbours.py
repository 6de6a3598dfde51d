"""The rival that looks at the nearest rows."""

from typing import Literal

import numpy as np
from scipy.special import gammaln
from sklearn.neighbors import NearestNeighbors

from oneclass.errors import InvalidParameterError
from oneclass.rivals.rival import Rival, in_blocks
from oneclass.types import Floats, Ints
from oneclass.validation import checked_whole

Method = Literal["kappa", "delta", "gamma"]
_METHODS = ("kappa", "delta", "gamma")
_MOST_NEIGHBOURS = 100
"""`k="auto"` looks at no more of them: beyond, they are no neighbours, and the distances to all would fill the memory."""


class KNearest(Rival):
    """How far the nearest k rows are; knndd of dd_tools (Tax 2001).

    `method` "kappa": d(x) is the squared distance to the k-th nearest row; "delta": to the mean of the k nearest; "gamma": the mean
    of the k squared distances. A training row is no neighbour of itself for θ and p-values; scored like any other row, it is. `k`
    "auto": the k from 2 to 100 for which Σᵢ log(k / (n V rᵢₖᵈ)) is largest, the log-likelihood of the density that k neighbours
    within rᵢₖ stand for. dd_tools may choose 1 by the same sum; every training row is then accepted, being its own neighbour. Costs
    n log n comparisons to fit and about log n a row to score in few dimensions, n d in many.

    >>> import numpy as np
    >>> model = KNearest(k=3).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(self, *, k: int | str = "auto", method: Method = "kappa", alarm_rate: float = 0.05) -> None:
        self.k = k
        self.method = method
        self.alarm_rate = alarm_rate

    def _learn(self, rows: Floats) -> Floats:
        if self.method not in _METHODS:
            raise InvalidParameterError(f"method={self.method!r}: choose one of {', '.join(map(repr, _METHODS))}")
        # The search may take differences of squares for distances. Rows near the origin lose least by it, and of what it finds the
        # distances are computed anew.
        self._centre = rows.mean(axis=0)
        self._rows, self._method = rows, self.method
        most = len(rows) - 1
        is_given = not (isinstance(self.k, str) and self.k == "auto")
        wanted = checked_whole("k", self.k, at_least=1, hint="neighbours, or 'auto'") if is_given else _MOST_NEIGHBOURS
        if is_given and wanted > most:
            raise InvalidParameterError(f"k={self.k!r}: {len(rows)} rows have {most} neighbours at most; choose fewer")
        self._search = NearestNeighbors(n_neighbors=min(wanted, most)).fit(rows - self._centre)
        places: Ints = self._search.kneighbors(None, return_distance=False)
        self.k_ = wanted if is_given else _likeliest_count(_squared(rows, self._rows, places), rows.shape[1])
        return self._from_neighbours(rows, places[:, : self.k_])

    def _distances(self, rows: Floats) -> Floats:
        return in_blocks(self._of_block, rows, len(self._rows))

    def _of_block(self, rows: Floats) -> Floats:
        return self._from_neighbours(rows, self._search.kneighbors(rows - self._centre, self.k_, return_distance=False))

    def _from_neighbours(self, rows: Floats, places: Ints) -> Floats:
        if self._method == "delta":
            gaps = rows - self._rows[places].mean(axis=1)
            return np.asarray(np.vecdot(gaps, gaps))
        squares = _squared(rows, self._rows, places)
        return np.asarray(squares.max(axis=1) if self._method == "kappa" else squares.mean(axis=1))


def _squared(rows: Floats, learnt: Floats, places: Ints) -> Floats:
    """The squared distances of rows to those at their places, by exact differences, ascending."""
    squares = np.empty(places.shape)
    for number, column in enumerate(places.T):
        gap = rows - learnt[column]
        squares[:, number] = np.vecdot(gap, gap)
    squares.sort(axis=1)
    return squares


def _likeliest_count(squares: Floats, d: int) -> int:
    positive = squares[squares > 0.0]
    if not len(positive):
        return min(2, int(squares.shape[1]))
    radii = 0.5 * np.log(np.maximum(squares, positive.min()))  # copies: as near as the nearest that are not
    counts = np.arange(1, squares.shape[1] + 1)
    log_volume = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0)
    likelihood = (np.log(counts) - log_volume - d * radii).sum(axis=0)
    return int(np.argmax(likelihood[1:])) + 2 if len(likelihood) > 1 else 1
