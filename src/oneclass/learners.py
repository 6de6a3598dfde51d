"""What a watcher needs of a model, and how any detector with scikit-learn's calls is made to give it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted

from oneclass.errors import InvalidParameterError, InvalidRowsError
from oneclass.types import Bools, Floats, Ints
from oneclass.validation import require_finite_rows


class Judged(Protocol):
    """What a model says of some rows."""

    @property
    def distances(self) -> Floats:
        """How abnormal each row is; higher is more."""
        ...

    @property
    def threshold(self) -> float:
        """The largest distance that is no alarm."""
        ...

    @property
    def alarms(self) -> Bools:
        """Which rows lie beyond it."""
        ...

    @property
    def p_values(self) -> Floats:
        """The p-value of each row, NaN where the model has none."""
        ...

    @property
    def knows_p_values(self) -> bool:
        """Whether p-values cost nothing more."""
        ...

    def of(self, chosen: Bools) -> Self:
        """The same for some of the rows."""
        ...

    def without_kernel(self) -> Self:
        """The same without what was only kept for learning these rows."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A model whose rows are checked once, by `admit`, and then judged and learnt as they are."""

    window: int | None

    @property
    def is_fitted(self) -> bool:
        """Whether there is anything to judge with."""
        ...

    @property
    def held(self) -> int:
        """How many learnt rows could be taken back."""
        ...

    def admit(self, X: object, *, at_least: int = 1) -> Floats:
        """Rows from outside, checked."""
        ...

    def judge(self, rows: Floats, *, to_learn: bool = False) -> Any:
        """A `Judged` of rows that were admitted; `to_learn` if these very rows are learnt next."""
        ...

    def learn(self, rows: Floats, judged: Any = None) -> None:
        """Learn a chunk of rows that were admitted."""
        ...

    def follow(self, rows: Floats, wants: Callable[[int, bool], bool]) -> Any:
        """A `Trace` of rows tested and learnt one by one, as far as that can be done in one go; None if it cannot."""
        ...

    def take_back(self, ages: Ints) -> Floats:
        """Forget learnt rows, counted from the oldest in the window, and return them."""
        ...

    def all_or_nothing(self, rows: int, *, is_risky: bool = False) -> AbstractContextManager[None]:
        """A context, for so many rows, that leaves the model as it was if anything fails inside; `is_risky` if a stranger may."""
        ...


@dataclass(frozen=True)
class Scores:
    """What a detector with scikit-learn's calls says of some rows."""

    distances: Floats
    threshold: float
    p_values: Floats
    knows_p_values: bool = True

    @property
    def alarms(self) -> Bools:
        """Which rows lie beyond the threshold."""
        return self.distances > self.threshold

    def of(self, chosen: Bools) -> "Scores":
        """The same for some of the rows."""
        return Scores(self.distances[chosen], self.threshold, self.p_values[chosen])

    def without_kernel(self) -> "Scores":
        """Itself."""
        return self


class Adapted:
    """Any detector with `partial_fit`, `score_samples` and `offset_`, in a watcher's hands."""

    def __init__(self, detector: Any) -> None:
        for call in ("partial_fit", "score_samples"):
            if not callable(getattr(detector, call, None)):
                raise InvalidParameterError(f"{detector!r} cannot be watched: it has no {call}")
        self.detector = detector
        self.window: int | None = getattr(detector, "window", None)
        self._names: list[str] | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether the detector has been fitted; one that is no scikit-learn estimator, whether it has an `offset_`."""
        try:
            check_is_fitted(self.detector)
        except NotFittedError:
            return False
        except TypeError:
            return hasattr(self.detector, "offset_")
        return True

    def admit(self, X: object, *, at_least: int = 1) -> Floats:
        """Finite numbers, in columns of the names and order seen first; the detector's own calls check the rest."""
        columns = getattr(X, "columns", None)
        names = None if columns is None else [str(name) for name in columns]
        known = getattr(self.detector, "feature_names_in_", self._names)
        if names is not None and known is not None and names != list(known):
            raise InvalidRowsError(f"columns {names} came after columns {list(known)}: hand in the same, in the same order")
        rows: Floats = check_array(X, dtype=np.float64, copy=True, ensure_all_finite=False, ensure_min_samples=at_least)
        require_finite_rows(self.detector, rows)
        self._names = self._names or names
        return rows

    def judge(self, rows: Floats, *, to_learn: bool = False) -> Scores:
        """Minus the detector's scores against minus its offset."""
        del to_learn  # a foreign detector has no use for it
        has_p_values = callable(getattr(self.detector, "p_values", None))
        p_values = self.detector.p_values(rows) if has_p_values else np.full(len(rows), np.nan)
        return Scores(-self.detector.score_samples(rows), -float(np.asarray(self.detector.offset_).item()), p_values)

    def learn(self, rows: Floats, judged: object = None) -> None:
        """One `partial_fit`."""
        del judged  # a foreign detector has no use for it
        self.detector.partial_fit(rows)

    def follow(self, rows: Floats, wants: Callable[[int, bool], bool]) -> None:
        """Not in one go."""

    @property
    def held(self) -> int:
        """The rows of the detector's `window_`, if it can `forget` them."""
        return len(getattr(self.detector, "window_", ())) if callable(getattr(self.detector, "forget", None)) else 0

    def take_back(self, ages: Ints) -> Floats:
        """The detector's own `forget`."""
        rows: Floats = np.array(self.detector.window_)[ages]
        self.detector.forget(ages)
        return rows

    @contextmanager
    def all_or_nothing(self, rows: int, *, is_risky: bool = False) -> Iterator[None]:
        """Puts the detector's attributes back if anything fails."""
        del rows, is_risky  # a copy is made in any case
        # A stranger may write to its arrays in place, so the copy is a deep one.
        before, is_done = deepcopy(vars(self.detector)), False
        try:
            yield
            is_done = True
        finally:
            if not is_done:
                vars(self.detector).clear()
                vars(self.detector).update(before)


def learner_for(model: Any) -> Learner:
    """The model itself if it can be watched as it is, else an adapter round it."""
    return model if isinstance(model, Learner) else Adapted(model)
