"""Any outlier detector in a sliding window, by fitting it again."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from oneclass.errors import InvalidParameterError, InvalidRowsError, StateError
from oneclass.rivals.sliding_rival import RefittedRival
from oneclass.state import plain
from oneclass.threads import one_blas_thread
from oneclass.threshold import training_threshold
from oneclass.types import Floats
from oneclass.validation import checked_rows

_AT_ONCE = 64
_HOMES = {
    "sklearn.EllipticEnvelope": "sklearn.covariance",
    "sklearn.IsolationForest": "sklearn.ensemble",
    "sklearn.LocalOutlierFactor": "sklearn.neighbors",
    "sklearn.OneClassSVM": "sklearn.svm",
    "sklearn.SGDOneClassSVM": "sklearn.linear_model",
    "oneclass.KernelBoundary": "oneclass",
    "oneclass.KernelReconstruction": "oneclass",
    "oneclass.AAKELM": "oneclass.rivals.kernel_elm",
    "oneclass.GOCELM": "oneclass.rivals.kernel_elm",
    "oneclass.OCKELM": "oneclass.rivals.kernel_elm",
    "oneclass.PCA": "oneclass.rivals.subspaces",
    "oneclass.SVDD": "oneclass.rivals.svdd",
    "oneclass.AutoEncoder": "oneclass.rivals.autoencoder",
    "oneclass.Gaussian": "oneclass.rivals.densities",
    "oneclass.IncrementalSVDD": "oneclass.rivals.incremental_svdd",
    "oneclass.KMeans": "oneclass.rivals.prototypes",
    "oneclass.KNearest": "oneclass.rivals.neighbours",
    "oneclass.MinimaxProbability": "oneclass.rivals.minimax",
    "oneclass.NaiveParzen": "oneclass.rivals.densities",
    "oneclass.OnlineKernelPCA": "oneclass.rivals.kernel_pca",
    "oneclass.OneClassSVM": "oneclass.rivals.svdd",
    "oneclass.Parzen": "oneclass.rivals.densities",
    "oneclass.RandomFeatureBoundary": "oneclass.rivals.random_features",
    "oneclass.RandomFeatureReconstruction": "oneclass.rivals.random_features",
    "oneclass.SelfOrganisingMap": "oneclass.rivals.prototypes",
}
"""The detectors that bytes may bring back by themselves, and where they are.

A list, and no rule: whatever else a package has stays out of reach of bytes from outside.
"""


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
        if isinstance(self.detector, type):
            raise InvalidParameterError(f"detector={self.detector!r} is a class: give an object of it, {self.detector.__name__}()")
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
        detector.fit(rows.copy())  # it may write to what it is given
        self.detector_ = detector
        if self._judges_itself and hasattr(detector, "training_distances_"):
            return np.asarray(detector.training_distances_)
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        scores = _by_blocks(getattr(self.detector_, _score_call(self.detector_)), rows)
        if np.isnan(scores).any():
            row = int(np.argmax(np.isnan(scores)))
            raise InvalidRowsError(f"{self.detector!r} gives row {row} no score (NaN): it cannot be judged")
        return -scores

    def _threshold(self, ascending: Floats, rate: float) -> float:
        return -float(self.detector_.offset_) if self._judges_itself else training_threshold(ascending, rate)

    def p_values(self, X: object) -> Floats:
        """The detector's own p-values if it has an `alarm_rate`; else as for the other rivals."""
        self._require_learnt()
        if not (self._judges_itself and callable(getattr(self.detector_, "p_values", None))):
            return super().p_values(X)
        with one_blas_thread():
            return _by_blocks(self.detector_.p_values, checked_rows(self, X, first_time=False))

    @property
    def _judges_itself(self) -> bool:
        return hasattr(self.detector_, "alarm_rate") and hasattr(self.detector_, "offset_")

    def _parameters_to_values(self) -> dict[str, Any]:
        values = super()._parameters_to_values()
        detector = values["detector"]
        name = _name_of(type(detector))
        given = {each: plain(value) for each, value in detector.get_params(deep=False).items()} if name else {}
        saved: dict[str, Any] = {"kind": name or type(detector).__name__}
        if name and all(_is_plain(value) for value in given.values()):
            saved["parameters"] = given
        values["detector"] = saved
        return values

    @classmethod
    def _parameters_from_values(cls, values: dict[str, Any], *, detector: Any = None) -> dict[str, Any]:
        kind, given = values["detector"]["kind"], values["detector"].get("parameters")
        if detector is not None:
            if kind not in {_name_of(type(detector)), type(detector).__name__}:
                raise StateError(f"this was saved round a {kind}, and {detector!r} is none")
            return {**values, "detector": detector}
        if given is None or kind not in _HOMES:
            raise StateError(f"this was saved round a {kind}, which is code: from_bytes(data, detector={kind}(...))")
        # One of the classes listed here, and parameters that it has: bytes from outside can call for nothing else.
        made = getattr(import_module(_HOMES[kind]), kind.rpartition(".")[2])()
        if set(given) != set(made.get_params(deep=False)):
            raise StateError(f"this was saved round a {kind} with other parameters than it has here: {', '.join(given)}")
        made.set_params(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
        return {**values, "detector": made}


def _name_of(kind: type) -> str:
    """The name under which bytes may ask for this class; empty for all that are not listed."""
    package = kind.__module__.partition(".")[0]
    name = f"{package}.{kind.__name__}"
    return name if name in _HOMES and getattr(import_module(_HOMES[name]), kind.__name__, None) is kind else ""


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
