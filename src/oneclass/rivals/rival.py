"""What every rival shares: rows come in checked, a distance is held against a threshold, a p-value counts training distances."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.exceptions import ConvergenceWarning

from oneclass.errors import InvalidParameterError, InvalidRowsError, NotLearntError
from oneclass.kernels import RBF
from oneclass.parameters import Parameters, request
from oneclass.sliding import warn_of_no_alarm
from oneclass.threads import one_blas_thread
from oneclass.threshold import leave_one_out_threshold, midway_threshold, p_values
from oneclass.types import Floats, Ints
from oneclass.validation import checked_rate, checked_rows, rows_to_fit, unchanged_on_error

_FOLDS = 5
_BLOCK_NUMBERS = 2**20
"""Numbers computed at a time when scoring: 8 MB."""


class Rival(OutlierMixin, BaseEstimator):
    """A one-class classifier made of a distance: `_learn` and `_distances` are all that a kind of its own has to write.

    Signs are scikit-learn's: `score_samples` is minus the distance, higher is more normal, `offset_` is minus the threshold, and a
    row exactly on the threshold is accepted. `threshold` says which distances θ and the p-values rest on:

    * "leave-one-out": of each row from what all others teach, where that comes nearly for free; an alarm is a p-value <=
      alarm_rate;
    * "held-out": of each fifth of the rows from what the other four fifths teach, for five fits more; an alarm as above. Every
      fifth row is held out, and should look like the others: what moves along the stream within a window is not seen;
    * "training", the original's: of the rows learnt, and so too small for a method that adapts to each of them, by far in many
      features. Where a class says nothing else, θ lies midway between the two that the rate parts, as in dd_tools.
    """

    alarm_rate: float
    threshold: str = "training"
    _threshold_rules: ClassVar[tuple[str, ...]] = ("training", "held-out")
    _rule: str
    """The threshold that `fit` has read."""
    _is_going_on: bool = False
    """Whether this is not the first time since `fit` that something is learnt: what was chosen then holds."""

    def fit(self, X: object, y: object = None) -> Self:
        """Start afresh on rows X of shape (n, d), n >= 2; rows with y = -1 are not learnt."""
        with unchanged_on_error(self):
            self._fit_rows(rows_to_fit(self, X, y))
        return self

    def score_samples(self, X: object) -> Floats:
        """Minus the distance of each row, shape (n,): higher is more normal."""
        return -self._judged(X)

    def decision_function(self, X: object) -> Floats:
        """score_samples(X) - offset_: at least 0 for rows that are accepted, below 0 for alarms."""
        scores = -self._judged(X)
        with np.errstate(invalid="ignore"):  # a distance and a threshold that are both infinite
            return scores - self.offset_

    def predict(self, X: object) -> Ints:
        """+1 for each row that is accepted, -1 for each alarm."""
        return np.where(-self._judged(X) >= self.offset_, 1, -1)

    def p_values(self, X: object) -> Floats:
        """(1 + number of `training_distances_` >= that of the row) / (n + 1)."""
        distances = self._judged(X)
        return p_values(self._ascending, distances)

    @property
    def training_distances_(self) -> Floats:
        """The distances that θ and the p-values rest on, in ascending order, shape (n,)."""
        self._require_learnt()
        return self._ascending.copy()

    # What a kind of its own writes

    def _learn(self, rows: Floats) -> Floats:
        """Learn these rows and answer with their training distances, shape (n,)."""
        raise NotImplementedError

    def _distances(self, rows: Floats) -> Floats:
        """The distance of each row, shape (n,): higher is more abnormal. Each row by itself."""
        raise NotImplementedError

    def _threshold(self, ascending: Floats, rate: float) -> float:
        """θ from the training distances in ascending order."""
        return midway_threshold(ascending, rate)

    # Inside

    def _fit_rows(self, rows: Floats) -> None:
        rate = checked_rate(self.alarm_rate)
        if self.threshold not in self._threshold_rules:
            rules = ", ".join(map(repr, self._threshold_rules))
            raise InvalidParameterError(f"threshold={self.threshold!r}: choose one of {rules}")
        self._rule = self.threshold
        with one_blas_thread(), factorises(self):
            held_out = self._held_out(rows) if self._rule == "held-out" and len(rows) > 2 else None
            learnt = self._learn(rows)
        # A row is no nearer to what others teach than to what it has helped to teach; where rounding or a smaller fold says so, it
        # would take most of a window of copies for alarms.
        ascending = np.sort(learnt if held_out is None else np.maximum(held_out, learnt))
        is_left_out = self._rule in {"held-out", "leave-one-out"}
        theta = leave_one_out_threshold(ascending, rate) if is_left_out else self._threshold(ascending, rate)
        if np.isnan(theta):
            raise InvalidRowsError(
                f"{type(self).__name__} finds no distances on these rows: scale the features, or change its parameters"
            )
        if theta == np.inf and is_left_out and not self._is_going_on:
            warn_of_no_alarm(len(rows), rate)
        self._ascending = ascending
        self.offset_ = -theta

    def _held_out(self, rows: Floats) -> Floats:
        # Every fifth row, not five stretches: rows come in some order, and what is held out should look like what is learnt.
        fold = np.arange(len(rows)) % _FOLDS
        distances = np.empty(len(rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is kept is learnt last, and says it once
            for each in range(min(_FOLDS, len(rows))):
                self._learn(rows[fold != each])
                distances[fold == each] = self._distances(rows[fold == each])
        return distances

    def _judged(self, X: object) -> Floats:
        self._require_learnt()
        rows = checked_rows(self, X, first_time=False)
        with one_blas_thread():
            return self._distances(rows)

    def _require_learnt(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotLearntError(
                f"this {type(self).__name__} has learnt no rows yet: call fit(X) before scoring or reading from it"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")


@contextmanager
def factorises(rival: Rival) -> Iterator[None]:
    """A matrix that float64 cannot factorise is an InvalidParameterError that says what to change."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            yield
    except (np.linalg.LinAlgError, LinAlgWarning) as error:
        name = type(rival).__name__
        raise InvalidParameterError(
            f"{name} cannot be solved for in float64 on these rows ({error}): more regularisation is needed, as {rival!r} has it"
        ) from error


class OnParameters:
    """Shows the kernel parameters in force, of a rival that keeps them as `_parameters`."""

    _parameters: Parameters

    @property
    def width_(self) -> float:
        """The width in force; NaN for a kernel without one."""
        return self._parameters.width

    @property
    def scale_(self) -> Floats:
        """What each feature is divided by before the kernel sees it."""
        return self._parameters.scale.copy()


def rbf_for(rows: Floats, *, width: object, alarm_rate: object, C: object = "auto", widening: float = 1.0) -> Parameters:
    """The parameters of an RBF on these rows; an automatic width is the median distance of scaled rows, times `widening`."""
    asked = request(kernel="rbf", width=width, C=C, alarm_rate=alarm_rate, threshold="training", window=None)
    chosen = asked.parameters_for(rows)
    return replace(chosen, kernel=RBF(widening * chosen.width)) if asked.chooses_width else chosen


def blocks_of(count: int, numbers_per_row: int) -> list[slice]:
    """The places of `count` rows, so many at a time that memory stays flat, each taking so many numbers."""
    step = max(1, _BLOCK_NUMBERS // max(1, numbers_per_row))
    return [slice(at, at + step) for at in range(0, count, step)]


def in_blocks(measure: Callable[[Floats], Floats], rows: Floats, numbers_per_row: int) -> Floats:
    """`measure` of the rows, shape (n,), a block of them at a time: memory stays flat however many rows are asked for."""
    return np.concatenate([measure(rows[block]) for block in blocks_of(len(rows), numbers_per_row)])
