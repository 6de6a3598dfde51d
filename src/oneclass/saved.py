"""What is saved of a kernel model, and how it is read back: parameters, rows in their slots, β, threshold, per-row inverse."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from oneclass.errors import StateError
from oneclass.inverse import RingInverse
from oneclass.kernels import FunctionKernel, Kernel, from_spec
from oneclass.normality import Normality
from oneclass.parameters import Parameters, request
from oneclass.sliding import SlidingModel
from oneclass.state import Envelope
from oneclass.types import Floats, KernelFunction
from oneclass.window import Ring


def model_to_envelope(model: BaseEstimator, sliding: SlidingModel | None) -> Envelope:
    """The model, fitted or not, as an envelope."""
    given = model.get_params(deep=False)
    given["kernel"] = _kernel_to_value(given["kernel"])
    given = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    names = getattr(model, "feature_names_in_", None)
    values: dict[str, Any] = {
        "parameters": given,
        "n_features": getattr(model, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    arrays: dict[str, Floats] = {}
    if sliding is not None:
        values["learnt"], arrays = _sliding_to_values(sliding)
    return Envelope(type(model).__name__, values, arrays)


def model_from_envelope(model: BaseEstimator, envelope: Envelope, kernel: KernelFunction | Kernel | None) -> SlidingModel | None:
    """Give a new model the parameters that were saved, and return what had been learnt."""
    if envelope.kind != type(model).__name__:
        raise StateError(f"this is the saved state of a {envelope.kind}, not of a {type(model).__name__}")
    given = dict(envelope.values["parameters"])
    given["kernel"] = _kernel_from_value(given["kernel"], kernel)
    model.set_params(**given)
    if envelope.values["n_features"] is not None:
        model.n_features_in_ = envelope.values["n_features"]
    if envelope.values["feature_names"] is not None:
        model.feature_names_in_ = np.array(envelope.values["feature_names"], dtype=object)
    if "learnt" not in envelope.values:
        return None
    sliding = SlidingModel(model.framework, request(**given))
    _restore(sliding, envelope, kernel)
    return sliding


def _kernel_to_value(kernel: object) -> object:
    if isinstance(kernel, str):
        return kernel
    return kernel.spec() if isinstance(kernel, Kernel) else {"kind": FunctionKernel.__name__}


def _kernel_from_value(value: str | dict[str, Any], kernel: KernelFunction | Kernel | None) -> object:
    if isinstance(value, str):
        return value
    restored = from_spec(value, kernel)
    return restored.function if isinstance(restored, FunctionKernel) else restored


def _sliding_to_values(sliding: SlidingModel) -> tuple[dict[str, Any], dict[str, Floats]]:
    now, inverse = sliding.now, sliding.inverse
    values: dict[str, Any] = {name: getattr(sliding, name) for name in ("learnt", "chosen_from", "rest", "has_warned")}
    if now is None:
        return values, {}
    values |= {"head": now.ring.head, "threshold": now.threshold, "parameters": now.parameters.to_values()}
    arrays = {"rows": now.rows, "beta": now.beta}
    if now.left_out is not None:
        arrays["left_out"] = now.left_out
    if inverse is not None:
        # The one thing that is not a function of the rows: it remembers the order in which it was updated.
        values["replaced"] = inverse.replaced
        arrays["inverse"] = inverse.inverse[np.tril_indices(now.ring.size)]
    return values, arrays


def _restore(sliding: SlidingModel, envelope: Envelope, kernel: KernelFunction | Kernel | None) -> None:
    values, arrays = envelope.values["learnt"], envelope.arrays
    for name in ("learnt", "chosen_from", "rest", "has_warned"):
        setattr(sliding, name, values[name])
    if "rows" not in arrays:
        return
    parameters = Parameters.from_values(values["parameters"], kernel)
    rows = arrays["rows"]
    scaled = parameters.scaled(rows)
    ring = Ring(sliding.request.window, len(rows), values["head"])
    sliding.now = Normality(
        sliding.framework,
        parameters,
        ring,
        rows,
        scaled,
        parameters.ridge(len(rows)),
        arrays["beta"],
        values["threshold"],
        arrays.get("left_out"),
    )
    if "inverse" in arrays:
        inverse = np.zeros((len(rows), len(rows)), order="F")
        inverse[np.tril_indices(len(rows))] = arrays["inverse"]
        sliding.inverse = RingInverse(None, inverse, arrays["beta"], values["replaced"])
