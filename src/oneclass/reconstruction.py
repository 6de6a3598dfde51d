"""The reconstruction model: a function that returns normal rows as they are, and others distorted."""

from typing import ClassVar

import numpy as np

from oneclass.model import KernelModel
from oneclass.normality import Framework
from oneclass.types import Floats


class Reconstruction(Framework):
    """T = X, x̂ = k(x)ᵀβ, d(x) = ||x - x̂||²: equations (29)-(37)."""

    def targets(self, rows: Floats) -> Floats:
        """The rows themselves."""
        return rows

    def outputs(self, kernel: Floats, beta: Floats) -> Floats:
        """Eq. (36); one product a row, so that no other row has a say in its rounding."""
        outputs: Floats = np.matmul(kernel[:, None, :], beta)[:, 0, :]
        return outputs

    def residuals(self, rows: Floats, outputs: Floats) -> Floats:
        """x - x̂."""
        return rows - outputs

    def distances(self, residuals: Floats) -> Floats:
        """The squared length of each residual."""
        with np.errstate(over="ignore"):  # a row so far out that the square of its distance is infinite is just that
            return np.asarray(np.vecdot(residuals, residuals))


class KernelReconstruction(KernelModel):
    """A function fitted to return each normal row; d(x) = ||x - k(x)ᵀβ||², β = (K + I/C)⁻¹ X. AAKELM; with a window, ORK-OCELM(R).

    Parameters as for `KernelBoundary`. The features enter d(x) itself, not the kernel alone: rows of very different units need
    width="auto", which divides by `scale_`, or scaling by the caller.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> model = KernelReconstruction(window=150).fit(rng.normal(size=(200, 2)))
    >>> model.predict([[0.0, 0.0], [9.0, 0.0]])
    array([ 1, -1])
    >>> model.explain([[9.0, 0.0]]).argmax()
    np.int64(0)
    """

    framework: ClassVar[Framework] = Reconstruction()

    def expected(self, X: object) -> Floats:
        """The reconstruction k(x)ᵀβ of each row, in the units of X, shape (n, d)."""
        now, rows = self._now, self._checked(X)
        return now.outputs(now.parameters.scaled(rows)) * now.parameters.scale

    def explain(self, X: object) -> Floats:
        """The squared residual of each feature, divided by `scale_`, shape (n, d): each row adds up to d(x).

        The direction of a feature is the sign of X - expected(X).
        """
        now, rows = self._now, self._checked(X)
        scaled = now.parameters.scaled(rows)
        with np.errstate(over="ignore"):
            return (scaled - now.outputs(scaled)) ** 2
