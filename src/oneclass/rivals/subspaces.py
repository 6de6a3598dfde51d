"""Rivals that keep the directions along which the rows spread: d(x) is what of a row lies outside them."""

from typing import Literal

import numpy as np

from oneclass.errors import InvalidParameterError
from oneclass.rivals.rival import Rival
from oneclass.types import Floats
from oneclass.validation import checked_number


class PCA(Rival):
    """The squared distance of x from the linear subspace that the rows spread in; pca_dd of dd_tools (Tax 2001).

    `components`: how many directions are kept, or, below 1, the share of the variance that they have to exceed, as in dd_tools;
    where that takes all of them every distance is 0 and nothing is abnormal. "auto": nine tenths of the variance, but no more than
    half of the directions. Costs n d² + d³ flops to fit, d q a row to score with q directions kept.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> model = PCA(components=1).fit(rng.normal(size=(100, 2)) * [5.0, 0.1])
    >>> model.predict([[5.0, 0.0], [0.0, 1.0]])
    array([ 1, -1])
    """

    def __init__(
        self, *, components: float | str = "auto", alarm_rate: float = 0.05, threshold: Literal["training", "held-out"] = "held-out"
    ) -> None:
        self.components = components
        self.alarm_rate = alarm_rate
        self.threshold = threshold

    def _learn(self, rows: Floats) -> Floats:
        is_auto = isinstance(self.components, str) and self.components == "auto"
        asked = 0.9 if is_auto else checked_components(self.components)
        self.location_ = rows.mean(axis=0)
        d = rows.shape[1]
        # With fewer rows than features the directions that no row spreads in have to come from somewhere: all of them, then.
        _, spreads, directions = np.linalg.svd(rows - self.location_, full_matrices=len(rows) < d)
        if asked > d:
            raise InvalidParameterError(f"components={self.components!r}: rows of {d} features have {d} directions at most")
        kept = min(kept_directions(spreads**2, asked), d)
        self.directions_: Floats = directions[: min(kept, d // 2) if is_auto else kept]
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        if len(self.directions_) == rows.shape[1]:
            return np.zeros(len(rows))  # and not what rounding makes of it
        centred = rows - self.location_
        # One product a row, so that no other row has a say in its rounding: a row on the threshold stays on it.
        inside = np.matmul(np.matmul(centred[:, None, :], self.directions_.T), self.directions_)[:, 0, :]
        outside = centred - inside
        return np.asarray(np.vecdot(outside, outside))


def checked_components(components: object) -> float:
    """A number of directions, or a share of the variance below 1."""
    asked = checked_number("components", components, hint="a number of directions, or a share of the variance below 1")
    if asked >= 1.0 and asked != int(asked):
        raise InvalidParameterError(f"components={components!r}: give a whole number of directions, or a share below 1")
    return asked


def kept_directions(variances: Floats, asked: float) -> int:
    """How many directions, of variances in descending order, are asked for: a number, or a share that they have to exceed."""
    if asked >= 1.0:
        return int(asked)
    total = float(variances.sum())
    if total == 0.0:
        return 0
    return int(np.searchsorted(np.cumsum(variances) / total, asked, side="right")) + 1
