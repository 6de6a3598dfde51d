"""What is saved of a kernel model, and how it is read back: parameters, rows in their slots, β, threshold, per-row inverse."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from oneclass.errors import KernelError, StateError
from oneclass.inverse import RingInverse
from oneclass.kernels import FunctionKernel, Kernel, from_spec, is_built_in
from oneclass.normality import Normality, per_row
from oneclass.parameters import Parameters, Request
from oneclass.sliding import SlidingModel
from oneclass.state import Envelope, is_count, plain, readable, require_claims
from oneclass.types import Floats, KernelFunction
from oneclass.window import Ring

_COUNTS = ("learnt", "chosen_from", "rest", "few")


def model_to_envelope(model: BaseEstimator, sliding: SlidingModel | None) -> Envelope:
    """The model, fitted or not, as an envelope."""
    # As set, which need not be what is in force: parameters are read by `fit`.
    given = model.get_params(deep=False)
    given["kernel"] = _kernel_to_value(given["kernel"])
    given = {name: plain(value) for name, value in given.items()}
    values: dict[str, Any] = {"parameters": given, **features_to_values(model)}
    arrays: dict[str, Floats] = {}
    if sliding is not None:
        values["learnt"], arrays = _sliding_to_values(sliding)
    return Envelope(type(model).__name__, values, arrays)


def features_to_values(model: BaseEstimator) -> dict[str, Any]:
    """How many features a model has seen, and their names."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "n_features": getattr(model, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
    }


def restore_features(model: BaseEstimator, values: Mapping[str, Any]) -> None:
    """Give a model what `features_to_values` told of another."""
    if values["n_features"] is not None:
        model.n_features_in_ = values["n_features"]
    if values["feature_names"] is not None:
        model.feature_names_in_ = np.array(values["feature_names"], dtype=object)


@readable()
def model_from_envelope(model: BaseEstimator, envelope: Envelope, kernel: KernelFunction | Kernel | None) -> SlidingModel | None:
    """Give a new model the parameters that were saved, and return what had been learnt."""
    if envelope.kind != type(model).__name__:
        raise StateError(f"this is the saved state of a {envelope.kind}, not of a {type(model).__name__}")
    given = dict(envelope.values["parameters"])
    given["kernel"] = _kernel_from_value(given["kernel"], kernel)
    model.set_params(**given)
    restore_features(model, envelope.values)
    if "learnt" not in envelope.values:
        return None
    sliding = SlidingModel(model.framework, Request.from_values(envelope.values["learnt"]["request"], kernel))
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
    values: dict[str, Any] = {name: getattr(sliding, name) for name in (*_COUNTS, "has_warned")}
    values["request"] = sliding.request.to_values()
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
    for name in (*_COUNTS, "has_warned"):
        setattr(sliding, name, values[name])
    if "rows" not in arrays:
        return
    parameters = Parameters.from_values(values["parameters"], kernel)
    rows, beta = arrays["rows"], arrays["beta"]
    _require_fit(envelope, parameters, sliding.request.window)
    scaled = parameters.scaled(rows)
    require_claims({"β has the shape of its targets": beta.shape == sliding.framework.targets(scaled).shape})
    ring = Ring(sliding.request.window, len(rows), values["head"])
    ridge = parameters.ridge(len(rows))
    sliding.now = Normality(
        sliding.framework, parameters, ring, rows, scaled, ridge, beta, values["threshold"], arrays.get("left_out")
    )
    if not is_built_in(parameters.kernel):
        _require_the_same_kernel(sliding.now)
    if "inverse" in arrays:
        inverse = np.zeros((len(rows), len(rows)), order="F")
        inverse[np.tril_indices(len(rows))] = arrays["inverse"]
        sliding.inverse = RingInverse(None, inverse, arrays["beta"], values["replaced"])


def _require_fit(envelope: Envelope, parameters: Parameters, window: int | None) -> None:
    """Raise StateError unless what was saved of the window belongs together: bytes with a right checksum may still be made up."""
    values, arrays = envelope.values["learnt"], envelope.arrays
    rows, features = arrays["rows"], envelope.values["n_features"]
    require_claims({"rows are a matrix": rows.ndim == 2 and rows.size})
    n, d = rows.shape
    left_out, inverse = arrays.get("left_out", np.zeros(n)), arrays.get("inverse", np.zeros(n * (n + 1) // 2))
    names = envelope.values["feature_names"]
    threshold = values["threshold"]
    require_claims(
        {
            "all numbers are finite": all(np.isfinite(array).all() for array in arrays.values()),
            "features, names and scale are as many": d == features == len(parameters.scale) == len(names or rows.T),
            "scale and C are positive": (parameters.scale > 0).all() and 0 < parameters.C < np.inf,
            "counts are counts": all(is_count(values[name]) for name in (*_COUNTS, "head")) and is_count(values.get("replaced", 0)),
            "the window holds its rows": window is None or n <= window,
            "the oldest row is one of them": values["head"] == 0 or (n == window and values["head"] < n),
            "the threshold is a distance": isinstance(threshold, int | float) and threshold >= 0,
            "distances are in order, one a row": left_out.shape == (n,) and (np.diff(left_out) >= 0).all(),
            "the inverse is as large as the window": inverse.shape == (n * (n + 1) // 2,),
        }
    )


def _require_the_same_kernel(now: Normality) -> None:
    """Raise if β does not solve (K + I/C)β = T: then the function handed in is another than the one that was learnt with."""
    kernel = now.parameters.kernel(now.scaled, now.scaled)
    targets = now.framework.targets(now.scaled)
    residual = np.abs(targets - kernel @ now.beta - per_row(now.ridge, now.beta))
    if not (residual <= 1e-6 * (np.abs(targets) + np.abs(kernel) @ np.abs(now.beta)).max()).all():
        raise KernelError(f"{now.parameters.kernel!r} is not the kernel that this model was saved with: the weights do not fit it")
