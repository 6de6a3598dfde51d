"""The rival that keeps the directions along which the rows spread in the feature space of a kernel."""

from typing import Literal

import numpy as np
from scipy.linalg import eigh

from oneclass.errors import InvalidParameterError
from oneclass.rivals.rival import OnParameters, in_blocks, rbf_for
from oneclass.rivals.sliding_rival import RefittedRival
from oneclass.rivals.subspaces import checked_components, kept_directions
from oneclass.threshold import training_threshold
from oneclass.types import Floats

_SMALLEST = 1e-10
"""Directions with so small a share of the largest variance are rounding."""


class OnlineKernelPCA(OnParameters, RefittedRival):
    """What of a row lies outside the directions that the window spreads in, in feature space; OKPCA of the paper.

    d(x) = k(x, x) - (2/n) Σᵢ k(x, xᵢ) + (1/n²) Σᵢⱼ k(xᵢ, xⱼ) - Σₗ fₗ(x)², fₗ the projections on the leading directions of the
    centred kernel matrix (Hoffmann 2007). `components`: how many, or, below 1, the share of the variance they have to exceed.
    `threshold` "training", the paper's: a share `alarm_rate` of the rows of the window lies beyond θ. The window is learnt anew
    with every chunk, as in the paper: 4/3 n³ flops or more, and half as much again for each fifth held out; n (d + q) a row to
    score. `width` as for `KernelBoundary`.

    There is no incremental form: with every row that comes or goes all eigenvectors turn, and a product of two n × n matrices, the
    least that turning them takes, is 2 n³ flops a row.

    >>> import numpy as np
    >>> model = OnlineKernelPCA(window=100).fit(np.random.default_rng(0).normal(size=(150, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        components: float = 0.9,
        width: float | str = "auto",
        alarm_rate: float = 0.05,
        threshold: Literal["training", "held-out"] = "held-out",
        window: int | None = None,
    ) -> None:
        self.components = components
        self.width = width
        self.alarm_rate = alarm_rate
        self.threshold = threshold
        self.window = window

    def _fit_rows(self, rows: Floats) -> None:
        # Here and not in `_learn`, which also learns the smaller parts that leave some rows out.
        if checked_components(self.components) >= len(rows):
            raise InvalidParameterError(f"components={self.components!r}: {len(rows)} rows spread in {len(rows) - 1} directions")
        super()._fit_rows(rows)

    def _learn(self, rows: Floats) -> Floats:
        asked = checked_components(self.components)
        self._parameters = rbf_for(rows, width=self.width, alarm_rate=self.alarm_rate)
        self._rows = self._parameters.scaled(rows)
        K = self._parameters.kernel(self._rows, self._rows)
        means = K.mean(axis=0)
        self._mean = float(means.mean())
        centred = K - means - means[:, None] + self._mean
        variances, directions = eigh(centred)
        variances, directions = np.maximum(variances[::-1], 0.0), directions[:, ::-1]
        is_real = variances > _SMALLEST * max(float(variances[0]), np.finfo(float).tiny)
        kept = min(kept_directions(variances, asked), int(np.count_nonzero(is_real)))
        directions = directions[:, :kept]
        self.components_ = kept
        # fₗ(x) = Σᵢ αᵢₗ (k(x, xᵢ) - means of rows and columns + mean): with the rows of α summing to 0, what is the same for all
        # i falls out.
        weights = directions / np.sqrt(variances[:kept])
        self._weights = weights - weights.mean(axis=0)
        self._shift = means @ self._weights
        return self._from_kernel(K)

    def _distances(self, rows: Floats) -> Floats:
        scaled = self._parameters.scaled(rows)
        return in_blocks(lambda block: self._from_kernel(self._parameters.kernel(block, self._rows)), scaled, len(self._rows))

    def _from_kernel(self, kernel: Floats) -> Floats:
        # One product a row, so that no other row has a say in its rounding: a training row on the threshold stays on it.
        projections = np.matmul(kernel[:, None, :], self._weights)[:, 0, :] - self._shift
        distances = 1.0 - 2.0 * kernel.mean(axis=1) + self._mean - np.vecdot(projections, projections)
        return np.asarray(np.maximum(distances, 0.0))

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return training_threshold(ascending, rate)
