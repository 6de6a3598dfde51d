"""Each kernel of the library beside its naive twin, and the models beside theirs."""

from functools import partial

import numpy as np
import pytest
import reference

from oneclass import KernelBoundary, KernelReconstruction
from oneclass.kernels import RBF, FunctionKernel, Laplacian, Linear, Polynomial, RationalQuadratic


def half_cubed(X, Y):
    """A kernel as a user writes one."""
    return (0.5 * (X @ Y.T) + 1.0) ** 3


# The parameters that choose a kernel, and the twin they choose.
TWINS = {
    "rbf": ({"kernel": "rbf", "width": 1.7}, partial(reference.rbf, width=1.7)),
    "laplacian": ({"kernel": "laplacian", "width": 2.3}, partial(reference.laplacian, width=2.3)),
    "rational_quadratic": ({"kernel": "rational_quadratic", "width": 1.7}, partial(reference.rational_quadratic, width=1.7)),
    "polynomial": ({"kernel": "polynomial"}, reference.polynomial),
    "linear": ({"kernel": "linear"}, reference.linear),
    "object": ({"kernel": RationalQuadratic(1.7, alpha=0.8)}, partial(reference.rational_quadratic, width=1.7, alpha=0.8)),
    "sum": ({"kernel": RBF(1.7) + Linear()}, lambda X, Y: reference.rbf(X, Y, 1.7) + reference.linear(X, Y)),
    "product": (
        {"kernel": Laplacian(2.3) * Polynomial(2, 1.0, 0.5)},
        lambda X, Y: reference.laplacian(X, Y, 2.3) * reference.polynomial(X, Y, 0.5, 1.0, 2),
    ),
    "function": ({"kernel": half_cubed}, partial(reference.polynomial, scale=0.5)),
}
KERNELS = [
    RBF(1.7),
    Laplacian(2.3),
    RationalQuadratic(1.7, alpha=0.8),
    Polynomial(3, 1.0, 0.5),
    Linear(),
    RBF(1.7) + Linear(),
    Laplacian(2.3) * Polynomial(2, 1.0, 0.5),
    FunctionKernel(half_cubed),
]
MODELS = {"boundary": KernelBoundary, "reconstruction": KernelReconstruction}

every_twin = pytest.mark.parametrize(("chosen", "twin"), TWINS.values(), ids=TWINS.keys())
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
both_names = pytest.mark.parametrize("name", MODELS)
both_models = pytest.mark.parametrize("model", MODELS.values())
both_rules = pytest.mark.parametrize("rule", ["leave-one-out", "training"])


def normal(count, features=3, seed=0):
    """Standard normal rows."""
    return np.random.default_rng(seed).normal(size=(count, features))


def learn_in_chunks(model, rows, chunks):
    """The model after `partial_fit` of the rows, cut into chunks of these sizes."""
    ends = np.cumsum(chunks)
    assert ends[-1] <= len(rows)
    for end, count in zip(ends, chunks, strict=True):
        model.partial_fit(rows[end - count : end])
    return model
