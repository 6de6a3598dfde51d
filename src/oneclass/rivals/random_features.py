"""The extreme learning machines with random hidden nodes: ridge regression on a few features drawn at random."""

from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.utils import check_random_state

from oneclass.boundary import Boundary
from oneclass.errors import InvalidParameterError
from oneclass.normality import Framework, per_row
from oneclass.reconstruction import Reconstruction
from oneclass.rivals.rival import in_blocks, rbf_for
from oneclass.rivals.sliding_rival import SlidingRival
from oneclass.sliding import ROWS_TO_CHOOSE_FROM
from oneclass.threshold import training_threshold
from oneclass.types import Floats, Seed
from oneclass.validation import checked_number, checked_whole

Activation = Literal["fourier", "sigmoid"]
_ACTIVATIONS = ("fourier", "sigmoid")


class _RandomFeatures(SlidingRival):
    """f(x) = h(x)ᵀβ, β = (HᵀH + I/C)⁻¹ HᵀT, with the hidden nodes h drawn once.

    OS-ELM carries P = (HᵀH + I/C)⁻¹ from chunk to chunk (Liang et al. 2006). Here HᵀH and HᵀT are carried: in exact arithmetic the
    same (tests/test_rivals.py has the recursion beside it), but P loses digits where a sum keeps them. Without a window only new
    rows are added. A window is summed anew, as rows taken out of a sum would leave their rounding behind; n q² flops are little.
    """

    _framework: ClassVar[Framework]
    _summed: int = 0
    """The most rows that a scale, a width and nodes have been drawn for, or summed with."""
    _threshold_rules = ("leave-one-out", "training")

    def __init__(
        self,
        *,
        nodes: int = 100,
        activation: Activation = "fourier",
        width: float | str = "auto",
        C: float = 1.0,
        alarm_rate: float = 0.05,
        threshold: Literal["leave-one-out", "training"] = "leave-one-out",
        window: int | None = None,
        random_state: Seed = 0,
    ) -> None:
        self.nodes = nodes
        self.activation = activation
        self.width = width
        self.C = C
        self.alarm_rate = alarm_rate
        self.threshold = threshold
        self.window = window
        self.random_state = random_state

    def _learn(self, rows: Floats) -> Floats:
        ridge = 1.0 / checked_number("C", self.C, hint="the λ of I/λ, larger is less regularised")
        # Two rows are no scale: what is drawn is drawn anew until there are as many rows as the kernel models choose from.
        if not self._is_going_on or self._summed < min(self.window or ROWS_TO_CHOOSE_FROM, ROWS_TO_CHOOSE_FROM):
            self._draw(rows)
            self._unchanged = 0
        if not self._unchanged:
            self._gram, self._moment = np.zeros((1, 1)), np.zeros(1)
        scaled = rows / self.scale_
        hidden, targets = self._hidden(scaled), self._framework.targets(scaled)
        new = slice(self._unchanged, None)
        self._gram = self._gram + hidden[new].T @ hidden[new]
        self._moment = self._moment + hidden[new].T @ targets[new]
        self._summed = max(len(rows), self._summed)
        matrix = self._gram.copy()
        matrix.flat[:: len(matrix) + 1] += ridge
        factor = cho_factor(matrix, lower=True, overwrite_a=True)
        self._beta: Floats = cho_solve(factor, self._moment)
        residuals = targets - self._framework.outputs(hidden, self._beta)
        if self._rule == "leave-one-out":
            # A row is explained without its own help by as much less as it weighs: the residual over 1 - hᵀ P h.
            leverage = np.vecdot(hidden, cho_solve(factor, hidden.T).T)
            residuals = per_row(1.0 / np.maximum(1.0 - leverage, np.finfo(float).eps), residuals)
        return self._framework.distances(residuals)

    def _draw(self, rows: Floats) -> None:
        """The scale of the rows, the width, and the nodes."""
        nodes = checked_whole("nodes", self.nodes, at_least=1, hint="hidden nodes")
        if self.activation not in _ACTIVATIONS:
            raise InvalidParameterError(f"activation={self.activation!r}: choose one of {', '.join(map(repr, _ACTIVATIONS))}")
        chosen = rbf_for(rows, width=self.width, alarm_rate=self.alarm_rate, widening=2.0)
        self.scale_, self.width_ = chosen.scale, chosen.width
        self._activation = self.activation
        random, d = check_random_state(self.random_state), rows.shape[1]
        if self.activation == "fourier":
            self._weights: Floats = random.normal(size=(d, nodes)) * (np.sqrt(2.0) / self.width_)
            self._biases: Floats = random.uniform(0.0, 2.0 * np.pi, size=nodes)
        else:
            self._weights = random.uniform(-1.0, 1.0, size=(d, nodes))
            self._biases = random.uniform(-1.0, 1.0, size=nodes) - (rows / self.scale_).mean(axis=0) @ self._weights

    def _hidden(self, scaled: Floats) -> Floats:
        # One product a row, so that no other row has a say in its rounding: a training row on the threshold stays on it.
        inner = np.matmul(scaled[:, None, :], self._weights)[:, 0, :] + self._biases
        if self._activation == "sigmoid":
            return np.asarray(expit(inner))
        return np.asarray(np.cos(inner, out=inner) * np.sqrt(2.0 / len(self._biases)))

    def _distances(self, rows: Floats) -> Floats:
        return in_blocks(self._of_block, rows / self.scale_, len(self._biases))

    def _of_block(self, scaled: Floats) -> Floats:
        return self._framework.distances(
            self._framework.residuals(scaled, self._framework.outputs(self._hidden(scaled), self._beta))
        )

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return training_threshold(ascending, rate)


class RandomFeatureBoundary(_RandomFeatures):
    """`KernelBoundary` on a few random features: d(x) = |h(x)ᵀβ - 1|. Offline OCELM (Leng et al. 2015), online OS-OCELM.

    `activation` "fourier": √(2/q)·cos(w·x + b) with w normal, under which the products of q `nodes` tend to the kernel exp(-||x -
    y||²/width²) (Rahimi, Recht 2007); "sigmoid": 1/(1 + exp(-w·x - b)), w and b uniform in [-1, 1], as in the papers. A sum of
    sigmoids does not fall off far from the rows, so that with "sigmoid" far rows may be accepted. `width` on raw rows; "auto":
    twice the median distance of rows scaled by `scale_`. Scale and width are chosen by the first 150 rows learnt (or the window, if
    that is shorter), and stay until `fit` or `forget`. `threshold`: "leave-one-out", exactly, or "training", the papers'. Without
    a `window`: OS-ELM, which forgets nothing; with one, the oldest rows are forgotten exactly. Costs s q² + q³/3 flops for s new
    rows and, for θ, n q² for all n rows held, n q with "training"; q d a row to score.

    >>> import numpy as np
    >>> model = RandomFeatureBoundary(window=150).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _framework = Boundary()


class RandomFeatureReconstruction(_RandomFeatures):
    """`KernelReconstruction` on a few random features: d(x) = ||x - h(x)ᵀβ||². Offline AAELM, online OS-AAELM (Gautam et al. 2017).

    Parameters as for `RandomFeatureBoundary`; d is measured on rows divided by `scale_`.

    >>> import numpy as np
    >>> model = RandomFeatureReconstruction(window=150).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _framework = Reconstruction()
