"""The extreme learning machines of the paper's stationary tables: kernel models that learn once."""

import warnings
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from sklearn.neighbors import kneighbors_graph

from oneclass.boundary import KernelBoundary
from oneclass.errors import InvalidParameterError, NoAlarmWarning
from oneclass.kernels import Kernel
from oneclass.model import KernelModel
from oneclass.reconstruction import KernelReconstruction
from oneclass.rivals.rival import OnParameters, Rival, in_blocks, rbf_for
from oneclass.threshold import training_threshold
from oneclass.types import Floats, KernelFunction
from oneclass.validation import checked_number, checked_whole

_SPARE = 0.2
_FAR = 0.5


class _KernelELM(Rival):
    """A model of `oneclass` without a window, judged by one of the toolbox's thresholds."""

    _kind: ClassVar[type[KernelModel]]

    def __init__(
        self,
        *,
        kernel: str | Kernel | KernelFunction = "rbf",
        width: float | str = "auto",
        C: float | str = "auto",
        alarm_rate: float = 0.05,
        threshold: str = "leave-one-out",
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.C = C
        self.alarm_rate = alarm_rate
        self.threshold = threshold

    def _learn(self, rows: Floats) -> Floats:
        model = self._kind(self.kernel, width=self.width, C=self.C, alarm_rate=self.alarm_rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoAlarmWarning)  # said for the threshold that is used here
            self.model_ = model.fit(rows)
        if self._rule == "leave-one-out":
            return self.model_.left_out_distances_
        # As rows are scored, not by β/C, which is more exact: a row on the threshold has to stay there when it is scored again.
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        if self._rule == "feature-count":
            expected = self.model_.expected(rows)
            # Of a feature that is 0 in the row and in what it is compared with nothing is off.
            return np.asarray((np.abs(rows - expected) > _FAR * np.abs(rows + expected)).sum(axis=1), dtype=np.float64)
        distances = -self.model_.score_samples(rows)
        return distances**2 if self._rule == "mean-deviation" and self._kind is KernelBoundary else distances

    def _threshold(self, ascending: Floats, rate: float) -> float:
        if self._rule == "mean-deviation":
            return float(ascending.mean() + _SPARE * ascending.std(ddof=1))
        if self._rule == "feature-count":
            return float(np.floor(self.n_features_in_ * rate + 0.5))
        return training_threshold(ascending, rate)

    @property
    def width_(self) -> float:
        """The width of the kernel in force; NaN for a kernel without one."""
        return self.model_.width_

    @property
    def C_(self) -> float:
        """The regularisation in force."""
        return self.model_.C_

    @property
    def scale_(self) -> Floats:
        """What each feature is divided by before the kernel sees it."""
        return self.model_.scale_


class OCKELM(_KernelELM):
    """`KernelBoundary` as the paper's stationary tables have it: learnt once, d(x) = |f(x) - 1| (Leng et al. 2015).

    `threshold`: "leave-one-out" is that of `KernelBoundary`; "training" is Thr1 of the toolbox and of the paper, a share
    `alarm_rate` of the training rows lies beyond; "mean-deviation" is Thr2, d the squared error and θ its mean plus 0.2 of its
    standard deviation, whatever `alarm_rate`. Costs n³/3 flops to fit, n d a row to score.

    >>> import numpy as np
    >>> model = OCKELM().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _kind = KernelBoundary
    _threshold_rules = ("training", "mean-deviation", "leave-one-out")


class AAKELM(_KernelELM):
    """`KernelReconstruction` as the paper's stationary tables have it: learnt once, d(x) = ||x - x̂||² (Gautam et al. 2017).

    `threshold`: "leave-one-out" is that of `KernelReconstruction`; "training" is Thr1 of the toolbox and of the paper, a share
    `alarm_rate` of the training rows lies beyond; "mean-deviation" is Thr2, θ the mean of d plus 0.2 of its standard deviation,
    whatever `alarm_rate`; "feature-count" is Thr3, d the number of features with |x - x̂| > |x + x̂| / 2 and θ the share
    `alarm_rate` of the features, rounded. Costs n³/3 + n² d flops to fit, n d a row to score.

    >>> import numpy as np
    >>> model = AAKELM().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _kind = KernelReconstruction
    _threshold_rules = ("training", "mean-deviation", "feature-count", "leave-one-out")


class GOCELM(OnParameters, Rival):
    """The boundary model with a second ridge, on differences between rows that belong together (Iosifidis et al. 2017).

    d(x) = |k(x)ᵀβ - 1|, β = (K + (ρ/C) S K + I/C)⁻¹ 1. S says which rows belong together. `scatter` "laplacian": the Laplacian of
    the graph that joins each row with its `neighbours` nearest, weighed by the kernel; "within-class": (I - 11ᵀ/n)/n, all with all.
    `weight` is ρ, 0 gives OCKELM. `threshold` "training": a share `alarm_rate` of the training rows lies beyond θ. Costs 2/3 n³
    flops more than OCKELM's n³/3 to fit, n d a row to score.

    >>> import numpy as np
    >>> model = GOCELM().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        scatter: Literal["laplacian", "within-class"] = "laplacian",
        weight: float = 1.0,
        neighbours: int = 5,
        width: float | str = "auto",
        C: float | str = "auto",
        alarm_rate: float = 0.05,
        threshold: Literal["training", "held-out"] = "held-out",
    ) -> None:
        self.scatter = scatter
        self.weight = weight
        self.neighbours = neighbours
        self.width = width
        self.C = C
        self.alarm_rate = alarm_rate
        self.threshold = threshold

    def _learn(self, rows: Floats) -> Floats:
        weight = checked_number("weight", self.weight, takes_zero=True, hint="the ρ of the second ridge, 0 or more")
        self._parameters = rbf_for(rows, width=self.width, alarm_rate=self.alarm_rate, C=self.C)
        self._rows = self._parameters.scaled(rows)
        K = self._parameters.kernel(self._rows, self._rows)
        matrix = K + (weight / self._parameters.C) * self._scatter(K) @ K
        matrix.flat[:: len(matrix) + 1] += 1.0 / self._parameters.C
        self._beta = lu_solve(lu_factor(matrix, overwrite_a=True), np.ones(len(K)))
        return self._distances(rows)

    def _scatter(self, K: Floats) -> Floats:
        n = len(K)
        if self.scatter == "within-class":
            return np.asarray((np.eye(n) - 1.0 / n) / n)
        if self.scatter != "laplacian":
            raise InvalidParameterError(f"scatter={self.scatter!r}: choose 'laplacian' or 'within-class'")
        count = min(checked_whole("neighbours", self.neighbours, at_least=1, hint="rows that a row is joined with"), n - 1)
        joined = kneighbors_graph(self._rows, count).toarray()
        weights: Floats = np.maximum(joined, joined.T) * K
        return np.asarray(np.diag(weights.sum(axis=1)) - weights)

    def _distances(self, rows: Floats) -> Floats:
        scaled = self._parameters.scaled(rows)
        return in_blocks(self._of_block, scaled, len(self._rows))

    def _of_block(self, scaled: Floats) -> Floats:
        outputs: Floats = np.vecdot(self._parameters.kernel(scaled, self._rows), self._beta)
        return np.abs(outputs - 1.0)

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return training_threshold(ascending, rate)

    @property
    def C_(self) -> float:
        """The regularisation in force."""
        return self._parameters.C
