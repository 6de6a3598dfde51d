"""Kernels: symmetric functions of two rows whose matrix over any set of rows is positive semi-definite.

A kernel is called with (m, d) and (n, d) rows and returns the (m, n) matrix. Kernels add and multiply: `RBF(1.0) + Linear()`.

The built-in ones compute each entry from its two rows alone, by the same operations whatever else is in the call (`is_pairwise`),
and from exact differences: ||x||² + ||y||² - 2xy would be three times as fast, but cancels when the rows lie far from the
origin, and its BLAS product rounds differently with the shape of the call. So k(x, y) has the same bits wherever it is computed,
which is what lets a sliding model reuse, drop and rebuild its kernel matrix without a trace.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from oneclass.errors import InvalidParameterError, KernelError
from oneclass.loops import cityblock_distances, squared_distances
from oneclass.types import Floats, KernelFunction


class Kernel:
    """A positive semi-definite function of two rows; the parent of all kernels of this module."""

    @property
    def is_pairwise(self) -> bool:
        """Whether each entry depends on its two rows alone, to the last bit."""
        return True

    @property
    def is_bounded(self) -> bool:
        """Whether k(x, y) is finite for any two finite rows."""
        return False

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of k(x, y)."""
        raise NotImplementedError

    def diagonal(self, X: Floats) -> Floats:
        """k(x, x) of each row, shape (m,)."""
        raise NotImplementedError

    def peak(self, X: Floats) -> float:
        """An upper bound of k(x, x) over these rows."""
        return float(self.diagonal(X).max())

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """The (m, d) gradient of sum_j weights[i, j] k(x_i, y_j) with respect to x_i."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """The kernel as plain data, from which `from_spec` makes it again."""
        return {"kind": type(self).__name__, **vars(self)}

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other)

    def __mul__(self, other: "Kernel") -> "Product":
        return Product(self, other)


class _OfDistance(Kernel):
    """A kernel that is 1 where two rows are the same, and falls as they part."""

    @property
    def is_bounded(self) -> bool:
        """It is at most 1."""
        return True

    def diagonal(self, X: Floats) -> Floats:
        """Ones."""
        return np.ones(len(X))

    def peak(self, X: Floats) -> float:  # noqa: ARG002 - the same for all rows
        """1."""
        return 1.0


@dataclass(frozen=True)
class RBF(_OfDistance):
    """exp(-||x - y||² / width²), the Gaussian kernel without a factor 2: scikit-learn's gamma is 1 / width².

    >>> import numpy as np
    >>> RBF(width=2.0)(np.zeros((1, 2)), np.array([[0.0, 2.0]])).round(3)
    array([[0.368]])
    """

    width: float

    def __post_init__(self) -> None:
        _require_positive(self, "width")

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of k(x, y)."""
        K = squared_distances(X, Y, -1.0 / self.width**2)
        return np.exp(K, out=K)

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """Each row is pulled towards the rows it resembles: -2 / width² · sum_j weights·k·(x - y_j)."""
        return _pull(X, Y, weights * self(X, Y) * (-2.0 / self.width**2))


@dataclass(frozen=True)
class Laplacian(_OfDistance):
    """exp(-||x - y||₁ / width): the sum of absolute differences, as in scikit-learn with gamma = 1 / width."""

    width: float

    def __post_init__(self) -> None:
        _require_positive(self, "width")

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of k(x, y)."""
        K = cityblock_distances(X, Y, -1.0 / self.width)
        return np.exp(K, out=K)

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """The sign of each difference, weighted; 0 where two rows agree in a feature."""
        slopes = weights * self(X, Y) * (-1.0 / self.width)
        return np.stack([(slopes * np.sign(x[:, None] - y)).sum(axis=1) for x, y in zip(X.T, Y.T, strict=True)], axis=1)


@dataclass(frozen=True)
class RationalQuadratic(_OfDistance):
    """(1 + ||x - y||² / (alpha · width²))^(-alpha): heavier tails than RBF, and RBF itself as alpha grows."""

    width: float
    alpha: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self, "width")
        _require_positive(self, "alpha")

    def _base(self, X: Floats, Y: Floats) -> Floats:
        B = squared_distances(X, Y, 1.0 / (self.alpha * self.width**2))
        B += 1.0
        return B

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of k(x, y)."""
        return self._base(X, Y) ** -self.alpha

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """-2 / width² · sum_j weights · base^(-alpha-1) · (x - y_j)."""
        return _pull(X, Y, weights * self._base(X, Y) ** (-self.alpha - 1.0) * (-2.0 / self.width**2))


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(scale · x·y + offset)^degree; offset >= 0 and a whole degree keep it positive semi-definite."""

    degree: int = 3
    offset: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self, "degree")
        _require_positive(self, "scale")
        if self.degree != int(self.degree) or not 0 <= _number(self.offset) < np.inf:
            raise InvalidParameterError(f"{self} is no kernel: degree must be a whole number and offset >= 0")
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "offset", float(self.offset))

    def _base(self, X: Floats, Y: Floats) -> Floats:
        return self.scale * _inner(X, Y) + self.offset

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of k(x, y)."""
        with np.errstate(over="ignore"):  # the caller looks for values that are not finite, and names the row
            return self._base(X, Y) ** self.degree

    def diagonal(self, X: Floats) -> Floats:
        """(scale · ||x||² + offset)^degree."""
        with np.errstate(over="ignore"):
            return np.asarray((self.scale * np.vecdot(X, X) + self.offset) ** self.degree)

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """degree · scale · sum_j weights · base^(degree-1) · y_j."""
        return np.asarray((weights * self._base(X, Y) ** (self.degree - 1)) @ Y * (self.degree * self.scale))


@dataclass(frozen=True)
class Linear(Kernel):
    """x·y."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of x·y."""
        return _inner(X, Y)

    def diagonal(self, X: Floats) -> Floats:
        """||x||²."""
        return np.asarray(np.vecdot(X, X))

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """sum_j weights · y_j, the same everywhere."""
        return np.asarray(weights @ Y).reshape(X.shape)


class _Pair(Kernel):
    """Two kernels under one operation."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        for part in (left, right):
            if not isinstance(part, Kernel):
                raise InvalidParameterError(f"kernels combine with kernels, not with {part!r}; wrap a function in FunctionKernel")
        self.left, self.right = left, right

    @property
    def is_pairwise(self) -> bool:
        """Whether both parts are."""
        return self.left.is_pairwise and self.right.is_pairwise

    @property
    def is_bounded(self) -> bool:
        """Whether both parts are."""
        return self.left.is_bounded and self.right.is_bounded

    def spec(self) -> dict[str, Any]:
        """Both parts as plain data."""
        return {"kind": type(self).__name__, "left": self.left.spec(), "right": self.right.spec()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.left!r}, {self.right!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and (self.left, self.right) == (other.left, other.right)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.left, self.right))


class Sum(_Pair):
    """left(x, y) + right(x, y)."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of the sums."""
        return self.left(X, Y) + self.right(X, Y)

    def diagonal(self, X: Floats) -> Floats:
        """The sum of both diagonals."""
        return self.left.diagonal(X) + self.right.diagonal(X)

    def peak(self, X: Floats) -> float:
        """The sum of both peaks."""
        return self.left.peak(X) + self.right.peak(X)

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """The sum of both gradients."""
        return self.left.gradient(X, Y, weights) + self.right.gradient(X, Y, weights)


class Product(_Pair):
    """left(x, y) · right(x, y)."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix of the products."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.left(X, Y) * self.right(X, Y)

    def diagonal(self, X: Floats) -> Floats:
        """The product of both diagonals."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.left.diagonal(X) * self.right.diagonal(X)

    def peak(self, X: Floats) -> float:
        """The product of both peaks."""
        return self.left.peak(X) * self.right.peak(X)

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """The product rule: each part's gradient, weighted by the other part."""
        by_left = self.left.gradient(X, Y, weights * self.right(X, Y))
        return by_left + self.right.gradient(X, Y, weights * self.left(X, Y))


class FunctionKernel(Kernel):
    """A user's function k(X, Y) -> matrix. Nothing is assumed of its rounding: when scoring it is asked for one row at a time."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function

    @property
    def is_pairwise(self) -> bool:
        """Nothing is known of how a user's function rounds."""
        return False

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """The (m, n) matrix the function returns; any other shape is refused."""
        K = np.asarray(self.function(X.copy(), Y.copy()))  # copies: it may write to what it is given
        if K.shape != (len(X), len(Y)) or K.dtype.kind not in "fiub":
            raise KernelError(
                f"{self!r} returned an array of shape {K.shape} and type {K.dtype} for {len(X)} and {len(Y)} rows; "
                f"return numbers of shape ({len(X)}, {len(Y)}), one row for each row of the first argument"
            )
        return np.array(K, dtype=np.float64)

    def diagonal(self, X: Floats) -> Floats:
        """The function of each row with itself."""
        return np.array([self(x, x)[0, 0] for x in X[:, None, :]])

    def gradient(self, X: Floats, Y: Floats, weights: Floats) -> Floats:
        """Central differences; the step is eps^(1/3) of each feature's size, the usual balance of truncation and rounding."""
        sizes = np.maximum(np.abs(X).max(axis=0), np.abs(Y).max(axis=0))
        steps = np.cbrt(np.finfo(float).eps) * np.where(sizes > 0, sizes, 1.0)
        columns = []
        for feature, step in enumerate(steps):
            shift = np.zeros(X.shape[1])
            shift[feature] = step
            columns.append((weights * (self(X + shift, Y) - self(X - shift, Y))).sum(axis=1) / (2.0 * step))
        return np.stack(columns, axis=1)

    def spec(self) -> dict[str, Any]:
        """Only that it was a function: code is not saved."""
        return {"kind": "FunctionKernel"}

    def __repr__(self) -> str:
        return f"FunctionKernel({getattr(self.function, '__name__', type(self.function).__name__)})"


_SIMPLE = {cls.__name__: cls for cls in (RBF, Laplacian, RationalQuadratic, Polynomial, Linear)}
_PAIRS = {cls.__name__: cls for cls in (Sum, Product)}
WITH_WIDTH = {"rbf": RBF, "laplacian": Laplacian, "rational_quadratic": RationalQuadratic}
WITHOUT_WIDTH = {"polynomial": Polynomial, "linear": Linear}


def is_built_in(kernel: Kernel) -> bool:
    """Whether it is one of this module's, which are positive semi-definite, or made of them."""
    if isinstance(kernel, _Pair):
        return is_built_in(kernel.left) and is_built_in(kernel.right)
    return type(kernel) in _SIMPLE.values()


def from_spec(spec: Mapping[str, Any], function: KernelFunction | Kernel | None = None) -> Kernel:
    """The kernel that `spec()` described; where it used a function, that, or the whole kernel, must be handed in again."""
    functions = _count_functions(spec)
    if functions and function is None:
        raise KernelError(
            f"this model was saved with a kernel function, which is code and not saved: load(path, kernel=function); it used {spec}"
        )
    if functions and isinstance(function, Kernel):
        if function.spec() != spec:
            raise KernelError(f"{function!r} is not the kernel this model was saved with, which was made of {spec}")
        return function
    if functions > 1:
        raise KernelError(
            f"this model was saved with a kernel of {functions} functions: hand in that whole kernel, load(path, kernel=kernel)"
        )
    return _from_spec(spec, cast("KernelFunction", function))


def _from_spec(spec: Mapping[str, Any], function: KernelFunction) -> Kernel:
    kind, values = spec["kind"], {name: value for name, value in spec.items() if name != "kind"}
    if kind in _PAIRS:
        return _PAIRS[kind](_from_spec(values["left"], function), _from_spec(values["right"], function))
    return _SIMPLE[kind](**values) if kind in _SIMPLE else FunctionKernel(function)


def _count_functions(spec: Mapping[str, Any]) -> int:
    if spec["kind"] in _PAIRS:
        return _count_functions(spec["left"]) + _count_functions(spec["right"])
    return int(spec["kind"] not in _SIMPLE)


def _require_positive(kernel: Kernel, name: str) -> None:
    value: object = getattr(kernel, name)
    number = _number(value)
    if not 0 < number < np.inf:
        raise InvalidParameterError(f"{type(kernel).__name__}: {name}={value!r} must be a positive, finite number")
    if name == "width" and not 1e-150 < number < 1e150:
        raise InvalidParameterError(f"{type(kernel).__name__}: width={value!r} leaves no number for its square; scale the rows")
    object.__setattr__(kernel, name, number)  # plain: a number of NumPy's own would not be saved


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float | np.integer | np.floating) else np.nan


def _inner(X: Floats, Y: Floats) -> Floats:
    # Without BLAS on purpose: its rounding depends on the shape of the call (see the top of this file).
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.einsum("ik,jk->ij", X, Y))


def _pull(X: Floats, Y: Floats, slopes: Floats) -> Floats:
    """sum_j slopes[i, j] (x_i - y_j)."""
    return np.asarray(slopes.sum(axis=1)[:, None] * X - slopes @ Y)
