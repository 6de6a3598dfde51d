"""The rival that bounds the worst case over all distributions of a mean and a covariance."""

import warnings
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from oneclass.rivals.rival import OnParameters, Rival, in_blocks, rbf_for
from oneclass.sliding import levels_to_the_caller
from oneclass.threshold import midway_density
from oneclass.types import Floats
from oneclass.validation import checked_number


class MinimaxProbability(OnParameters, Rival):
    """The half-space that keeps most of the rows in the worst case that their mean and covariance in feature space allow; mpm_dd.

    d(x) = -Σ γᵢ k(x, xᵢ), γ = t / (ξ(ξ - κ - ν)), t = (M + λI)⁻¹ k̄, ξ = √(k̄ᵀt), M = LᵀL + ρK, L = (K - 1k̄ᵀ)/√n, k̄ the column
    means of K and κ = √(η/(1 - η)) (Lanckriet, El Ghaoui, Jordan 2002). As in dd_tools θ is a quantile of distances;
    the bound itself is far too wide. `regularisation` is λ, `mean_uncertainty` ν and `covariance_uncertainty` ρ.
    `width` is the σ of exp(-||x - y||²/σ²) on raw rows; "auto": twice the median distance of rows scaled by `scale_`, for with a
    small λ a narrower kernel bends round each row. Costs n³ flops to fit and n d a row to score.

    >>> import numpy as np
    >>> model = MinimaxProbability().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        width: float | str = "auto",
        regularisation: float = 1e-6,
        mean_uncertainty: float = 0.0,
        covariance_uncertainty: float = 0.0,
        alarm_rate: float = 0.05,
        threshold: Literal["training", "held-out"] = "held-out",
    ) -> None:
        self.width = width
        self.regularisation = regularisation
        self.mean_uncertainty = mean_uncertainty
        self.covariance_uncertainty = covariance_uncertainty
        self.alarm_rate = alarm_rate
        self.threshold = threshold

    def _learn(self, rows: Floats) -> Floats:
        ridge = checked_number("regularisation", self.regularisation, hint="the λ added to the covariance, such as 1e-6")
        nu = checked_number("mean_uncertainty", self.mean_uncertainty, takes_zero=True, hint="0 or more")
        rho = checked_number("covariance_uncertainty", self.covariance_uncertainty, takes_zero=True, hint="0 or more")
        self._parameters = rbf_for(rows, width=self.width, alarm_rate=self.alarm_rate, widening=2.0)
        self._rows = self._parameters.scaled(rows)
        K = self._parameters.kernel(self._rows, self._rows)
        mean = K.mean(axis=0)
        L = (K - mean) / np.sqrt(len(K))
        M = L.T @ L + rho * K
        M.flat[:: len(M) + 1] += ridge
        t = cho_solve(cho_factor(M, lower=True, overwrite_a=True), mean)
        xi = float(np.sqrt(mean @ t))
        room = xi - float(np.sqrt(self.alarm_rate / (1.0 - self.alarm_rate))) - nu
        if room <= 0.0:
            warnings.warn(
                f"no half-space holds the rows at alarm_rate={self.alarm_rate} in the worst case that mean_uncertainty={nu:g} and "
                f"covariance_uncertainty={rho:g} allow: its direction alone is used. Lower them, or alarm_rate",
                ConvergenceWarning,
                stacklevel=levels_to_the_caller(),
            )
            room = xi
        self._weights = t / (xi * room)
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        scaled = self._parameters.scaled(rows)
        return in_blocks(
            lambda block: -np.vecdot(self._parameters.kernel(block, self._rows), self._weights), scaled, len(self._rows)
        )

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return -midway_density(-ascending[::-1], rate, is_logarithmic=True)
