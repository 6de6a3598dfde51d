"""Support vector data description, and the one-class support vector machine beside it: both fitted in one piece."""

import warnings

import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from oneclass.kernels import RBF, Kernel, is_built_in
from oneclass.normality import require_finite
from oneclass.parameters import Parameters, request
from oneclass.rivals.dual import solve
from oneclass.rivals.rival import Rival
from oneclass.rivals.sphere import Sphere, measured, sphere_of, terms
from oneclass.sliding import levels_to_the_caller, require_positive_semidefinite
from oneclass.threads import one_blas_thread
from oneclass.types import Floats, KernelFunction


def kernel_matrix(parameters: Parameters, scaled: Floats) -> Floats:
    """K of rows as the kernel sees them; KernelError if it is not finite or, where the kernel is a user's, no kernel's matrix."""
    kernel = parameters.kernel(scaled, scaled)
    require_finite(kernel)
    if not is_built_in(parameters.kernel):
        require_positive_semidefinite(kernel, parameters)
    return kernel


def warn_of_no_convergence(name: str) -> None:
    """Say that the weights are not the best ones, and what to change."""
    warnings.warn(
        f"{name}: the weights are not optimal, for rounding stops them from getting better. Scale the features, choose a narrower "
        f"width, or leave out rows that are copies of each other",
        ConvergenceWarning,
        stacklevel=levels_to_the_caller(),
    )


class SVDD(Rival):
    """The smallest sphere in the kernel's space that leaves about `alarm_rate` of the rows outside; d(x) = ||φ(x) - centre||².

    Tax and Duin's dual, max sum a_i k(x_i, x_i) - a'Ka with sum(a) = 1 and 0 <= a_i <= C, is solved to the last digits. θ is the
    square of the radius: at most floor(1/C) training rows lie outside, with C="auto" a share of `alarm_rate`. With an RBF or a
    Laplacian the sphere is `OneClassSVM`'s plane, and both flag the same rows but for those within libsvm's `tol` of it.

    On new rows the share is larger, the more so the narrower the kernel: rows with weight lie on the sphere, and of those there may
    be many. The automatic width follows the shape of the rows; twice it keeps the rate better, and sees no gap between clusters.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "polynomial", "linear", "rational_quadratic"}, a `Kernel`, or a function k(X, Y) -> matrix
    width : the σ of exp(-||x - y||²/σ²), on the rows as they are; "auto": the median distance of rows scaled by `scale_`
    C : the largest weight of a row, at least 1/n; "auto": 1 / (n · alarm_rate)
    alarm_rate : the share of training rows that may lie outside

    Learnt: `weights_` a of each row learnt, shape (n,), `C_`, `width_`, `scale_`, `offset_`. Needs the n² numbers of K.

    Examples
    --------
    >>> import numpy as np
    >>> model = SVDD(width=4.0, alarm_rate=0.1).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "rbf",
        *,
        width: float | str = "auto",
        C: float | str = "auto",
        alarm_rate: float = 0.05,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.C = C
        self.alarm_rate = alarm_rate

    def _fit_rows(self, rows: Floats) -> None:
        asked = terms(kernel=self.kernel, width=self.width, C=self.C, alarm_rate=self.alarm_rate)
        asked.require_feasible(len(rows))
        parameters = asked.parameters_for(rows)
        scaled = parameters.scaled(rows)
        with one_blas_thread():
            K = kernel_matrix(parameters, scaled)
            solution = solve(K, parameters.C)
            self._sphere: Sphere = sphere_of(parameters, scaled, K, solution)
            self._ascending = np.sort(self._sphere.distances_of_scaled(scaled))
        if not solution.is_settled:
            warn_of_no_convergence("SVDD")
        self.weights_ = solution.weights
        self.C_, self.width_, self.scale_ = parameters.C, parameters.width, parameters.scale
        self.offset_ = -self._sphere.threshold

    def _distances(self, rows: Floats) -> Floats:
        return self._sphere.distances(rows)


class OneClassSVM(Rival):
    """scikit-learn's `OneClassSVM` with nu = `alarm_rate`, under the parameters of this library; its scores, signs and threshold.

    `score_samples` is sum_i a_i k(x, x_i) over the support vectors, `offset_` its ρ, lowered to the smallest score of the rows with
    a weight below the bound, which miss it by about `tol`. At most a share of `alarm_rate` of the training rows is flagged.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "polynomial", "linear", "rational_quadratic"}, a `Kernel`, or a function k(X, Y) -> matrix;
        "rbf" is libsvm's own, of others it is handed the n² numbers of K
    width : the σ of exp(-||x - y||²/σ²), on the rows as they are; "auto": the median distance of rows scaled by `scale_`
    alarm_rate : scikit-learn's nu
    tol : how well libsvm's conditions must hold; scores are about as exact
    max_iter : libsvm's steps at most, -1: no limit; where they do not do, it raises a ConvergenceWarning

    Learnt: `dual_coef_` and `support_` (which of the rows learnt) of each support vector, `n_iter_`, `width_`, `scale_`, `offset_`.

    Examples
    --------
    >>> import numpy as np
    >>> model = OneClassSVM(width=4.0, alarm_rate=0.1).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "rbf",
        *,
        width: float | str = "auto",
        alarm_rate: float = 0.05,
        tol: float = 1e-6,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.alarm_rate = alarm_rate
        self.tol = tol
        self.max_iter = max_iter

    def _fit_rows(self, rows: Floats) -> None:
        asked = request(
            kernel=self.kernel, width=self.width, C="auto", alarm_rate=self.alarm_rate, threshold="training", window=None
        )
        parameters = asked.parameters_for(rows)
        scaled = parameters.scaled(rows)
        settings = {"nu": asked.alarm_rate, "tol": self.tol, "max_iter": self.max_iter}
        if isinstance(parameters.kernel, RBF):
            # libsvm takes ||x||² + ||y||² - 2x·y for the distance, of which far from the origin nothing would be left.
            centred = scaled - scaled.mean(axis=0)
            machine = svm.OneClassSVM(kernel="rbf", gamma=1.0 / parameters.width**2, **settings).fit(centred)
        else:
            machine = svm.OneClassSVM(kernel="precomputed", **settings).fit(kernel_matrix(parameters, scaled))
        self._parameters = parameters
        self._support: Floats = scaled[machine.support_]
        self.support_ = machine.support_
        self.dual_coef_ = machine.dual_coef_[0].copy()
        self.n_iter_ = int(machine.n_iter_)
        self.width_, self.scale_ = parameters.width, parameters.scale
        distances, is_at_bound = self._distances(rows), np.zeros(len(rows), dtype=bool)
        is_at_bound[machine.support_] = self.dual_coef_ >= 1.0
        # A row below the bound is inside or on the plane: as it is scored, libsvm's rounding and `tol` do not make it an alarm.
        self.offset_ = min(float(machine.offset_[0]), -float(distances[~is_at_bound].max(initial=-np.inf)))
        self._ascending = np.sort(distances)

    def _distances(self, rows: Floats) -> Floats:
        return measured(self._of_block, self._parameters.scaled(rows), self._parameters.kernel, len(self._support))

    def _of_block(self, scaled: Floats) -> Floats:
        return -np.asarray(np.vecdot(self._parameters.kernel(scaled, self._support), self.dual_coef_))
