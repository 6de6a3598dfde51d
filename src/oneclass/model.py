"""What `KernelBoundary` and `KernelReconstruction` share: scikit-learn's calls over a `SlidingModel`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from os import PathLike
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin

from oneclass.errors import NotLearntError
from oneclass.kernels import Kernel
from oneclass.normality import Framework, Judgement, Normality, counted_from
from oneclass.parameters import ThresholdRule, request
from oneclass.rowwise import Trace
from oneclass.saved import model_from_envelope, model_to_envelope
from oneclass.sliding import SlidingModel
from oneclass.state import Envelope, write_file
from oneclass.threads import one_blas_thread
from oneclass.types import Floats, Ints, KernelFunction
from oneclass.validation import checked_indices, checked_rows, learnable, places_among_all, rows_to_fit, unchanged_on_error


class KernelModel(OutlierMixin, BaseEstimator):
    """A kernel model of normal rows; the parent of both models, of no use by itself."""

    framework: ClassVar[Framework]
    _sliding: SlidingModel | None = None

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "rbf",
        *,
        width: float | str = "auto",
        C: float | str = "auto",
        alarm_rate: float = 0.05,
        threshold: ThresholdRule = "leave-one-out",
        window: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.C = C
        self.alarm_rate = alarm_rate
        self.threshold = threshold
        self.window = window

    # Learning and forgetting

    def fit(self, X: object, y: object = None) -> Self:
        """Start afresh on rows X of shape (n, d), n >= 2; the last `window` of them are kept.

        Rows with y = -1 are not learnt; no other value of y has a meaning. Parameters are read here (or at the first `partial_fit`)
        and hold until the next `fit`. Costs one factorisation, n³/3 flops, and twice that with the leave-one-out threshold.
        """
        with unchanged_on_error(self):
            rows = rows_to_fit(self, X, y)
            self._sliding = self._afresh()
            with counted_from(places_among_all(y)):
                self._sliding.learn(rows)
        return self

    def partial_fit(self, X: object, y: object = None) -> Self:
        """Learn a chunk of one row or more and forget the oldest rows beyond `window`; without a window the model grows.

        The result is the model fitted to the rows of the window. Rows with y = -1 are not learnt.
        """
        with unchanged_on_error(self):
            rows = learnable(self.admit(X), y)
            if len(rows):
                with self.all_or_nothing(len(rows)), counted_from(places_among_all(y)):
                    self.learn(rows)
        return self

    def forget(self, indices: object) -> Self:
        """Remove rows of the window as if they had never been learnt; `indices` count in `window_`, 0 = oldest.

        Nothing of them stays in any state: automatic parameters that they helped to choose are chosen again from those that remain.
        The window refills before it forgets. Forgetting every row leaves a model that has learnt nothing.
        """
        ages = checked_indices(indices, len(self._now.rows))
        if len(ages) and self._sliding is not None:
            with self.all_or_nothing(len(ages)):
                self._sliding.forget(ages)
        return self

    # Scoring

    def score_samples(self, X: object) -> Floats:
        """-d(x) of each row, shape (n,): higher is more normal, 0 is the most normal there is."""
        return -self._judged(X).distances

    def decision_function(self, X: object) -> Floats:
        """score_samples(X) - offset_: at least 0 for rows that are accepted, below 0 for alarms; eq. (28) and (37)."""
        judged = self._judged(X)
        with np.errstate(invalid="ignore"):  # a distance and a threshold that are both infinite
            return judged.threshold - judged.distances

    def predict(self, X: object) -> Ints:
        """+1 for each row that is accepted, -1 for each alarm."""
        return np.where(self._judged(X).alarms, -1, 1)

    def p_values(self, X: object) -> Floats:
        """(1 + number of leave-one-out distances >= d(x)) / (n + 1) of each row.

        Of fresh normal rows a share of about p has a p-value up to p. With threshold="leave-one-out" a row is an alarm exactly when
        its p-value is at most `alarm_rate`; with "training" the first call after learning costs a factorisation.
        """
        return self._judged(X).p_values

    # What has been learnt

    @property
    def offset_(self) -> float:
        """-θ: the score below which a row is an alarm."""
        return -self._now.threshold

    @property
    def window_(self) -> Floats:
        """The rows learnt and not forgotten, oldest first, shape (n, d)."""
        return self._now.window

    @property
    def left_out_distances_(self) -> Floats:
        """The distances that the rows of the window have from the models without them, in ascending order, shape (n,)."""
        return self._now.left_out_ascending.copy()

    @property
    def width_(self) -> float:
        """The width of the kernel in force; NaN for a kernel without one."""
        return self._now.parameters.width

    @property
    def C_(self) -> float:
        """The regularisation in force."""
        return self._now.parameters.C

    @property
    def scale_(self) -> Floats:
        """What each feature is divided by before the kernel sees it: chosen along with an automatic width, otherwise ones."""
        return self._now.parameters.scale.copy()

    # Saving

    def to_bytes(self) -> bytes:
        """Everything learnt, without pickle: the same bytes for the same state, and the model resumes with the same bits."""
        return model_to_envelope(self, self._sliding).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, *, kernel: KernelFunction | Kernel | None = None) -> Self:
        """The model that `to_bytes` saved; a kernel function is code, is not saved, and must be handed in again."""
        model = cls()
        model._sliding = model_from_envelope(model, Envelope.from_bytes(data), kernel)
        return model

    def save(self, path: str | PathLike[str]) -> None:
        """Write `to_bytes()` to a file: all of it or, if that fails, nothing; read it with `oneclass.load`."""
        write_file(path, self.to_bytes())

    # For callers that check rows once and use them often: Watcher

    def admit(self, X: object, *, at_least: int = 1) -> Floats:
        """The rows of X, checked: the way in for rows that `judge` and `learn` take as they are."""
        with unchanged_on_error(self):
            if self._sliding is None:
                self._afresh()  # a parameter outside its range shows with the first rows, not once a warm-up is over
            return checked_rows(self, X, first_time=not hasattr(self, "n_features_in_"), at_least=at_least)

    def judge(self, rows: Floats, *, to_learn: bool = False) -> Judgement:
        """Distances, alarms and p-values of rows that were admitted; `to_learn` if these very rows are learnt next."""
        return self._now.judge(rows, to_learn=to_learn)

    def learn(self, rows: Floats, judged: Judgement | None = None) -> None:
        """`partial_fit` of rows that were admitted; `judged`, if they have just been judged, saves their kernel values."""
        sliding = self._sliding or self._afresh()
        sliding.learn(rows, judged)
        self._sliding = sliding

    def follow(self, rows: Floats, wants: Callable[[int, bool], bool]) -> Trace | None:
        """`judge` and `learn` of admitted rows one by one, in one go, where the model can; None where it cannot."""
        return None if self._sliding is None else self._sliding.follow(rows, wants)

    def take_back(self, ages: Ints) -> Floats:
        """`forget` rows by their age, and return them."""
        rows = self.window_[ages]
        self.forget(ages)
        return rows

    @contextmanager
    def all_or_nothing(self, rows: int, *, is_risky: bool = False) -> Iterator[None]:
        """Whatever fails inside, the model is afterwards what it was before, however many chunks of `rows` rows it had learnt."""
        inside = nullcontext() if self._sliding is None else self._sliding.all_or_nothing(rows, is_risky=is_risky)
        with unchanged_on_error(self), inside:
            yield

    @property
    def is_fitted(self) -> bool:
        """Whether there is anything to score with."""
        return self._sliding is not None and self._sliding.now is not None

    @property
    def held(self) -> int:
        """The number of rows in the window."""
        return self._now.ring.size if self.is_fitted else 0

    # Inside

    @property
    def _now(self) -> Normality:
        if self._sliding is None or self._sliding.now is None:
            name = type(self).__name__
            raise NotLearntError(
                f"this {name} has learnt no rows yet: call fit(X) or partial_fit(X) before scoring or reading from it"
            )
        return self._sliding.now

    def _checked(self, X: object) -> Floats:
        return checked_rows(self, X, first_time=False)

    def _judged(self, X: object) -> Judgement:
        now = self._now
        rows = self._checked(X)
        with one_blas_thread():
            return now.judge(rows)

    def _afresh(self) -> SlidingModel:
        # By name: a class derived from this one may have parameters of its own.
        return SlidingModel(
            self.framework,
            request(
                kernel=self.kernel,
                width=self.width,
                C=self.C,
                alarm_rate=self.alarm_rate,
                threshold=self.threshold,
                window=self.window,
            ),
        )

    def __copy__(self) -> Self:
        """A copy that learns on its own: what has been learnt is written to, so it cannot be shared."""
        return deepcopy(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted
