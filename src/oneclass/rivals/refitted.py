"""Any outlier detector in a sliding window, by fitting it again."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from oneclass.errors import InvalidParameterError, StateError
from oneclass.rivals.sliding_rival import RefittedRival
from oneclass.threshold import p_values, training_threshold
from oneclass.types import Floats
from oneclass.validation import checked_rows

_AT_ONCE = 64
_KNOWN = ("oneclass", "sklearn")


class Refitted(RefittedRival):
    """`detector`, fitted afresh to the window whenever it changes: forgetting for what cannot forget, for a fit a chunk.

    Any scikit-learn-style outlier detector does: `fit` and `score_samples` or `decision_function`, higher is more normal. Where it
    scores other rows than its own only on request, as LocalOutlierFactor(novelty=True), ask for that. θ and p-values are its own if
    it has an `alarm_rate`, which is then set to that of this class; otherwise a share `alarm_rate` of the rows of the window lies
    beyond θ. Its `random_state`, if it has one, is set to `random_state`: the same window gives the same detector.

    Rows are scored by 64, filled up where fewer are asked for, so that a score does not depend on how many were. `to_bytes` holds
    the window and the parameters; `from_bytes` fits again. A detector of another package than scikit-learn and this one is code,
    and must be handed in again.

    >>> import numpy as np
    >>> from sklearn.ensemble import IsolationForest
    >>> rng = np.random.default_rng(0)
    >>> model = Refitted(IsolationForest(n_estimators=20), window=150).fit(rng.normal(size=(150, 2)))
    >>> model = model.partial_fit(rng.normal(size=(50, 2)) + 0.2)
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    def __init__(self, detector: Any, *, window: int | None = 150, alarm_rate: float = 0.05, random_state: int | None = 0) -> None:
        self.detector = detector
        self.window = window
        self.alarm_rate = alarm_rate
        self.random_state = random_state

    def _learn(self, rows: Floats) -> Floats:
        detector = clone(self.detector, safe=False)
        known = detector.get_params() if hasattr(detector, "get_params") else {}
        chosen: dict[str, Any] = {name: self.random_state for name in known if name.rpartition("__")[2] == "random_state"}
        if "alarm_rate" in known:
            chosen["alarm_rate"] = self.alarm_rate
        if chosen:
            detector.set_params(**chosen)
        if not callable(getattr(detector, "fit", None)) or not _score_call(detector):
            raise InvalidParameterError(
                f"{self.detector!r} cannot be refitted: it needs fit, and score_samples or decision_function"
            )
        self.detector_ = detector.fit(rows)
        if self._judges_itself and hasattr(detector, "training_distances_"):
            return np.asarray(detector.training_distances_)
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        call = getattr(self.detector_, _score_call(self.detector_))
        return -_by_blocks(call, rows)

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return -float(self.detector_.offset_) if self._judges_itself else training_threshold(ascending, rate)

    def p_values(self, X: object) -> Floats:
        """The detector's own p-values if it has an `alarm_rate`; else as for the other rivals."""
        distances = self._judged(X)
        if self._judges_itself and callable(getattr(self.detector_, "p_values", None)):
            return _by_blocks(self.detector_.p_values, checked_rows(self, X, first_time=False))
        return p_values(self._ascending, distances)

    @property
    def _judges_itself(self) -> bool:
        return hasattr(self.detector_, "alarm_rate") and hasattr(self.detector_, "offset_")

    def _parameters_to_values(self) -> dict[str, Any]:
        values = super()._parameters_to_values()
        detector = values["detector"]
        home = _home(type(detector))
        given = detector.get_params(deep=False) if home else {}
        is_plain = home and all(_is_plain(value) for value in given.values())
        kind = {"home": home, "kind": type(detector).__name__}
        values["detector"] = {**kind, "parameters": given} if is_plain else kind
        return values

    @classmethod
    def _parameters_from_values(cls, values: dict[str, Any], *, detector: Any = None) -> dict[str, Any]:
        saved = values["detector"]
        if detector is not None:
            return {**values, "detector": detector}
        if "parameters" not in saved or not _is_known(saved["home"]):
            raise StateError(
                f"this was saved round a {saved['kind']}, which is code: from_bytes(data, detector={saved['kind']}(...))"
            )
        # A class of two packages by its public name, and plain parameters: bytes from outside can call for nothing else.
        kind = getattr(import_module(saved["home"]), saved["kind"])
        return {**values, "detector": kind(**saved["parameters"])}


def _home(kind: type) -> str:
    """The public module of scikit-learn or of this library that the class is found in; empty for all others."""
    parts = kind.__module__.split(".")
    homes = (".".join(parts[:2]), parts[0])
    return next((home for home in homes if _is_known(home) and getattr(import_module(home), kind.__name__, None) is kind), "")


def _is_known(home: str) -> bool:
    return home.partition(".")[0] in _KNOWN


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, bool | int | float | str)


def _score_call(detector: Any) -> str:
    return next((name for name in ("score_samples", "decision_function") if callable(getattr(detector, name, None))), "")


def _by_blocks(call: Callable[[Floats], Any], rows: Floats) -> Floats:
    parts = []
    for at in range(0, len(rows), _AT_ONCE):
        block = rows[at : at + _AT_ONCE]
        filled = np.concatenate([block, np.broadcast_to(block[-1:], (_AT_ONCE - len(block), rows.shape[1]))])
        parts.append(np.asarray(call(filled), dtype=np.float64).reshape(_AT_ONCE)[: len(block)])
    return np.concatenate(parts)
