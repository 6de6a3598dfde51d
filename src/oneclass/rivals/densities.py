"""Rivals that estimate a density: what is rare under it is abnormal."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from oneclass.errors import InvalidParameterError
from oneclass.loops import squared_distances
from oneclass.rivals.bandwidth import likeliest_width, toolbox_width
from oneclass.rivals.rival import Rival, in_blocks
from oneclass.threshold import midway_density
from oneclass.types import Floats
from oneclass.validation import checked_number

_RULES = {"auto": toolbox_width, "likeliest": likeliest_width}


class Gaussian(Rival):
    """One Gaussian; d(x) = (x - μ)ᵀ S⁻¹ (x - μ), S = (1 - r)·covariance + r·(mean variance)·I. gauss_dd of dd_tools.

    `regularisation` is r: it keeps S invertible where features depend on each other. Affine scaling of all features together
    changes nothing. Costs n d² + d³/3 flops to fit, d² a row to score.

    >>> import numpy as np
    >>> model = Gaussian().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(self, *, regularisation: float = 1e-3, alarm_rate: float = 0.05) -> None:
        self.regularisation = regularisation
        self.alarm_rate = alarm_rate

    def _learn(self, rows: Floats) -> Floats:
        share = checked_number("regularisation", self.regularisation, below=1.0, hint="a share, such as 0.001")
        self.location_ = rows.mean(axis=0)
        centred = rows - self.location_
        covariance = centred.T @ centred / (len(rows) - 1)
        spread = float(np.trace(covariance)) / len(covariance)
        # Where all rows are the same, rounding is the only spread there is.
        floor = max(spread, (np.finfo(float).eps * float(np.abs(rows).max())) ** 2, np.finfo(float).tiny)
        covariance = (1.0 - share) * covariance
        covariance.flat[:: len(covariance) + 1] += share * floor
        self.covariance_ = covariance
        self._factor = cho_factor(covariance, lower=True)
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        centred = rows - self.location_
        distances: Floats = np.vecdot(centred, cho_solve(self._factor, centred.T).T)
        return np.maximum(distances, 0.0)


class _Density(Rival):
    """A kernel density; d(x) = -log p(x), and θ lies midway between two densities, not between their logarithms."""

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return -midway_density(-ascending[::-1], rate)


class Parzen(_Density):
    """A Gaussian bump on every row; d(x) = -log p(x). parzen_dd of dd_tools.

    p(x) = (2π)^(-d/2) h^-d · mean exp(-||x - xᵢ||²/(2h²)).
    `width` is h, with the factor 2 of a density; "likeliest": the h under which each row is likeliest given the others (Duin 1976);
    "auto": what PRTools' parzenml takes for that, and the paper's tables rest on; it is somewhat larger. The densities of the
    training rows include their own bump. Costs n² d to fit and n d a row to score.

    >>> import numpy as np
    >>> model = Parzen().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(self, *, width: float | str = "auto", alarm_rate: float = 0.05) -> None:
        self.width = width
        self.alarm_rate = alarm_rate

    def _learn(self, rows: Floats) -> Floats:
        self.width_ = _width_for(self.width, rows)
        self._rows = rows
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        return in_blocks(lambda block: -_log_density(block, self._rows, self.width_), rows, len(self._rows))


class NaiveParzen(_Density):
    """A Parzen density for each feature alone; d(x) = -Σ log p(x of that feature). nparzen_dd of dd_tools.

    `width` is one h for all features; "likeliest" or "auto": one for each, as for `Parzen`. In logarithms throughout, so that rows
    far out keep their order where the densities themselves would all be 0. Costs n² d to fit and n d a row to score.

    >>> import numpy as np
    >>> model = NaiveParzen().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(self, *, width: float | str = "auto", alarm_rate: float = 0.05) -> None:
        self.width = width
        self.alarm_rate = alarm_rate

    def _learn(self, rows: Floats) -> Floats:
        columns = np.ascontiguousarray(rows.T)[:, :, None]
        self.width_ = np.array([_width_for(self.width, column) for column in columns])
        self._columns = columns
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        return in_blocks(self._of_block, rows, self._columns.shape[1])

    def _of_block(self, rows: Floats) -> Floats:
        features = zip(rows.T, self._columns, self.width_, strict=True)
        logarithms = [_log_density(x[:, None], column, width) for x, column, width in features]
        return -np.asarray(np.sum(logarithms, axis=0))

    def _threshold(self, ascending: Floats, rate: float) -> float:
        # dd_tools takes the middle of the logarithms here, and of the densities in parzen_dd.
        return -midway_density(-ascending[::-1], rate, is_logarithmic=True)


def _log_density(rows: Floats, centres: Floats, width: float) -> Floats:
    exponents = squared_distances(rows, centres, -0.5 / width**2)
    d = int(rows.shape[1])
    # scipy.special.logsumexp, without its copies: the largest exponent is taken out, so that one bump at least is left.
    largest = exponents.max(axis=1)
    exponents -= largest[:, None]
    bumps = np.log(np.exp(exponents, out=exponents).sum(axis=1)) + largest
    return np.asarray(bumps - (np.log(len(centres)) + d * (np.log(width) + 0.5 * np.log(2.0 * np.pi))))


def _width_for(width: object, rows: Floats) -> float:
    if isinstance(width, str) and width in _RULES:
        return _RULES[width](rows)
    number = checked_number("width", width, hint="the h of exp(-||x - y||²/(2h²)), 'auto' or 'likeliest'")
    if not 1e-150 < number < 1e150:
        raise InvalidParameterError(f"width={width!r} leaves no number for its square; scale the rows")
    return number
