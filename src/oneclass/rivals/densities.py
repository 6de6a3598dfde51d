"""Rivals that estimate a density: what is rare under it is abnormal."""

from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from oneclass.errors import InvalidParameterError
from oneclass.loops import squared_distances
from oneclass.rivals.bandwidth import likeliest_width, toolbox_width
from oneclass.rivals.rival import Rival, blocks_of, in_blocks
from oneclass.threshold import midway_density
from oneclass.types import Floats
from oneclass.validation import checked_number

_RULES = {"auto": toolbox_width, "likeliest": likeliest_width}


class Gaussian(Rival):
    """One Gaussian; d(x) = (x - μ)ᵀ S⁻¹ (x - μ), S = (1 - r)·covariance + r·(mean variance)·I. gauss_dd of dd_tools (Tax 2001).

    `regularisation` is r: it keeps S invertible where features depend on each other. Affine scaling of all features together
    changes nothing. Costs n d² + d³/3 flops to fit (six times that with the default `threshold`), d² a row to score.

    >>> import numpy as np
    >>> model = Gaussian().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self, *, regularisation: float = 1e-3, alarm_rate: float = 0.05, threshold: Literal["held-out", "training"] = "held-out"
    ) -> None:
        self.regularisation = regularisation
        self.alarm_rate = alarm_rate
        self.threshold = threshold

    def _learn(self, rows: Floats) -> Floats:
        share = checked_number("regularisation", self.regularisation, below=1.0, takes_zero=True, hint="a share, such as 0.001")
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

    _threshold_rules = ("leave-one-out", "training")

    def __init__(
        self,
        *,
        width: float | str = "auto",
        alarm_rate: float = 0.05,
        threshold: Literal["leave-one-out", "training"] = "leave-one-out",
    ) -> None:
        self.width = width
        self.alarm_rate = alarm_rate
        self.threshold = threshold

    def _of_block(self, rows: Floats, own: int | None = None) -> Floats:
        """d of rows; `own` says that they are the rows learnt from that place on, whose own bumps are to be left out."""
        raise NotImplementedError

    def _of_learnt(self, rows: Floats) -> Floats:
        leaves_out = self._rule == "leave-one-out"
        blocks = blocks_of(len(rows), len(rows))
        return np.concatenate([self._of_block(rows[block], block.start if leaves_out else None) for block in blocks])

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return -midway_density(-ascending[::-1], rate)


class Parzen(_Density):
    """A Gaussian bump on every row; d(x) = -log p(x). parzen_dd of dd_tools (Parzen 1962).

    p(x) = (2π)^(-d/2) h^-d · mean exp(-||x - xᵢ||²/(2h²)).

    `width` is h, with the factor 2 of a density; "likeliest": the h under which each row is likeliest given the others (Duin 1976);
    "auto": what PRTools' parzenml takes for that, and the paper's tables rest on; it is somewhat larger. Of more than 1500 rows
    both look at a sample. `threshold` "training", the original's, leaves each training row its own bump, which is most of its
    density in many features. Costs n² d to fit and n d a row to score.

    >>> import numpy as np
    >>> model = Parzen().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def _learn(self, rows: Floats) -> Floats:
        self.width_ = _width_for(self.width, rows)
        self._bumps = _Bumps(rows, self.width_)
        return self._of_learnt(rows)

    def _distances(self, rows: Floats) -> Floats:
        return in_blocks(self._of_block, rows, self._bumps.count)

    def _of_block(self, rows: Floats, own: int | None = None) -> Floats:
        return -self._bumps.log_density(rows, own)


class NaiveParzen(_Density):
    """A Parzen density for each feature alone; d(x) = -Σ log p(x of that feature). nparzen_dd of dd_tools (Tax 2001).

    `width` is one h for all features; "likeliest" or "auto": one for each, as for `Parzen`, and so is `threshold`. In logarithms
    throughout, so that rows far out keep their order where the densities themselves would all be 0. Costs n² d exponentials to fit
    and n d a row to score, where `Parzen` takes n² and n.

    >>> import numpy as np
    >>> model = NaiveParzen().fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def _learn(self, rows: Floats) -> Floats:
        columns = np.ascontiguousarray(rows.T)[:, :, None]
        self.width_ = np.array([_width_for(self.width, column) for column in columns])
        self._bumps = [_Bumps(column, width) for column, width in zip(columns, self.width_, strict=True)]
        return self._of_learnt(rows)

    def _distances(self, rows: Floats) -> Floats:
        return in_blocks(self._of_block, rows, self._bumps[0].count)

    def _of_block(self, rows: Floats, own: int | None = None) -> Floats:
        total = np.zeros(len(rows))
        for x, bumps in zip(rows.T, self._bumps, strict=True):
            total -= bumps.log_density(np.ascontiguousarray(x)[:, None], own)
        return total

    def _threshold(self, ascending: Floats, rate: float) -> float:
        # dd_tools takes the middle of the logarithms here, and of the densities in parzen_dd.
        return -midway_density(-ascending[::-1], rate, is_logarithmic=True)


class _Bumps:
    """A Gaussian bump of one width on each of some rows."""

    def __init__(self, rows: Floats, width: float) -> None:
        # Centred before they are divided: what rows far from the origin have in common would take the digits of what they have not.
        self._location = rows.mean(axis=0)
        self._width = width
        self._rows = (rows - self._location) / width
        self.count, d = rows.shape
        self._constant = d * (float(np.log(width)) + 0.5 * float(np.log(2.0 * np.pi)))

    def log_density(self, rows: Floats, own: int | None = None) -> Floats:
        """log p of rows; `own` says that they are the rows from that place on, whose own bumps are to be left out."""
        with np.errstate(over="ignore", divide="ignore"):  # so far out that all bumps are 0
            exponents = squared_distances((rows - self._location) / self._width, self._rows, -0.5)
            if own is not None:
                exponents[np.arange(len(rows)), own + np.arange(len(rows))] = -np.inf
            # scipy.special.logsumexp, without its copies: the largest exponent is taken out, so that one bump at least is left.
            largest = np.maximum(exponents.max(axis=1), -np.finfo(float).max)
            exponents -= largest[:, None]
            sums = np.log(np.exp(exponents, out=exponents).sum(axis=1))
        return np.asarray(sums + largest - (np.log(self.count - (own is not None)) + self._constant))


def _width_for(width: object, rows: Floats) -> float:
    if isinstance(width, str) and width in _RULES:
        return _RULES[width](rows)
    number = checked_number("width", width, hint="the h of exp(-||x - y||²/(2h²)), 'auto' or 'likeliest'")
    if not 1e-150 < number < 1e150:
        raise InvalidParameterError(f"width={width!r} leaves no number for its square; scale the rows")
    return number
