"""The paper, written literally and slowly: the oracle that every fast path of the library has to equal.

Knows nothing of the library and needs only NumPy. Symbols are those of the paper (equations (1) to (37), Algorithms 1
and 2): a window X of n rows, the kernel matrix K, Phi = K + I/C (the paper's lambda is C), P = inv(Phi), targets T and
weights beta = P T. The boundary model has T = 1, the reconstruction model T = X. Distances are never negative; larger
means less normal.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

Number = np.floating[Any]
Array = NDArray[Number]
Kernel = Callable[[Array, Array], Array]
Model = Literal["boundary", "reconstruction"]
Spelling = Literal["as_printed_misprint", "as_printed_corrected", "transposes_reused", "symmetrised"]


def _differences(X: Array, Y: Array) -> Array:
    """All x - y, of shape (rows of X, rows of Y, features); a row and its copy differ by exactly nothing."""
    return X[:, None, :] - Y[None, :, :]


def rbf(X: Array, Y: Array, width: float) -> Array:
    """exp(-||x - y||² / width²), without the factor 2 that other definitions have."""
    # Divided before it is squared: width² would be rounded to float64 even where the rows are long double.
    similarity: Array = np.exp(-((_differences(X, Y) / width) ** 2).sum(axis=2))
    return similarity


def laplacian(X: Array, Y: Array, width: float) -> Array:
    """exp(-||x - y||₁ / width)."""
    similarity: Array = np.exp(-np.abs(_differences(X, Y)).sum(axis=2) / width)
    return similarity


def polynomial(X: Array, Y: Array, scale: float = 1.0, offset: float = 1.0, degree: int = 3) -> Array:
    """(scale · x·y + offset) ** degree."""
    return (scale * (X @ Y.T) + offset) ** degree


def linear(X: Array, Y: Array) -> Array:
    """x·y."""
    return X @ Y.T


def rational_quadratic(X: Array, Y: Array, width: float, alpha: float = 1.0) -> Array:
    """(1 + ||x - y||² / (alpha · width²)) ** -alpha."""
    similarity: Array = (1 + ((_differences(X, Y) / width) ** 2).sum(axis=2) / alpha) ** -alpha
    return similarity


class Fit(NamedTuple):
    """A model of one window: its rows oldest first, P = inv(K + I/C) and beta = P T.

    beta has shape (n,) for the boundary model and (n, d) for the reconstruction model.
    """

    window: Array
    kernel: Kernel
    C: float
    model: Model
    P: Array
    beta: Array


def regularised(X: Array, kernel: Kernel, C: float) -> Array:
    """Phi = K + I/C of the rows X, in the precision of X (equation (12))."""
    return kernel(X, X) + np.eye(len(X), dtype=X.dtype) / X.dtype.type(C)


def targets(X: Array, model: Model) -> Array:
    """T: a one for every row (boundary), or the rows themselves (reconstruction)."""
    return np.ones(len(X), dtype=X.dtype) if model == "boundary" else X


def sizes(residuals: Array) -> Array:
    """One distance per residual: |r| of a number (equation (26)), ||r||² of a row (equation (37))."""
    return np.abs(residuals) if residuals.ndim == 1 else (residuals**2).sum(axis=1)


def fit(X: Array, kernel: Kernel, C: float, model: Model = "boundary") -> Fit:
    """The model of the window X in one go: equations (7), (9) and (35)."""
    P = np.linalg.inv(regularised(X, kernel, C))
    return Fit(X, kernel, C, model, P, P @ targets(X, model))


def distances(fitted: Fit, Z: Array) -> Array:
    """d of every row of Z: |f(z) - 1| for boundary, ||z - z_hat||² for reconstruction (equations (25) to (37))."""
    return sizes(fitted.kernel(Z, fitted.window) @ fitted.beta - targets(Z, fitted.model))


def training_distances(fitted: Fit) -> Array:
    """d of every row of the window, computed from beta/C, which T - K beta equals."""
    return sizes(fitted.beta / fitted.C)


def decimal(alarm_rate: float) -> Fraction:
    """The alarm rate as the decimal it was typed as, so that 20 · (1 - 0.05) is 19 and not a little more.

    Raises ValueError outside 0 < alarm_rate < 1, where no rank below is defined.
    """
    rate = Fraction(str(alarm_rate))
    if not 0 < rate < 1:
        raise ValueError(f"alarm_rate is {alarm_rate}: give a number between 0 and 1, both excluded")
    return rate


def training_rank(n: int, alarm_rate: float) -> int:
    """⌈n (1 - η)⌉, counted from 1 upwards from the smallest: the authors' code; ⌊η n⌋ rows lie strictly above."""
    return math.ceil(n * (1 - decimal(alarm_rate)))


def printed_rank(n: int, alarm_rate: float) -> int:
    """⌊η n⌋, counted from 1 downwards from the largest, as equation (27) prints it; 0, no row, when η n < 1."""
    return math.floor(n * decimal(alarm_rate))


def leave_one_out_rank(n: int, alarm_rate: float) -> int:
    """⌈(n+1) (1 - η)⌉, counted from 1 upwards from the smallest; n + 1, which is no row, when (n + 1) η < 1."""
    return math.ceil((n + 1) * (1 - decimal(alarm_rate)))


def training_threshold(in_window: Array, alarm_rate: float) -> Number:
    """θ of the authors' code from the in-window distances; a row is accepted when d ≤ θ."""
    theta: Number = np.sort(in_window)[training_rank(len(in_window), alarm_rate) - 1]
    return theta


def leave_one_out_threshold(left_out: Array, alarm_rate: float) -> Number:
    """θ such that d > θ exactly when the p-value of d is at most the alarm rate; infinite when (n + 1) η < 1."""
    ascending = np.append(np.sort(left_out), np.inf)
    theta: Number = ascending[leave_one_out_rank(len(left_out), alarm_rate) - 1]
    return theta


def leave_one_out_literally(X: Array, kernel: Kernel, C: float, model: Model = "boundary") -> Array:
    """d of every row of X under the model of all other rows, by n separate fits of n - 1 rows."""
    left_out = [distances(fit(np.delete(X, i, axis=0), kernel, C, model), X[i : i + 1])[0] for i in range(len(X))]
    return np.array(left_out)


def leave_one_out_distances(fitted: Fit) -> Array:
    """d of every row of the window under the model of all others, by the identity T_i - f_{-i}(x_i) = beta_i / P_ii."""
    return sizes((fitted.beta.T / np.diag(fitted.P)).T)


def p_values(left_out: Array, d: Array) -> Array:
    """(1 + number of leave-one-out distances ≥ d) / (n + 1) for every d; in (0, 1], small means abnormal."""
    shares: Array = (1 + (left_out[None, :] >= d[:, None]).sum(axis=1)) / (len(left_out) + 1)
    return shares


def forget(P: Array, f: int) -> Array:
    """P of the window without its f oldest rows: equation (24), Fi12ᵀ reused for the block below the diagonal."""
    Fi11, Fi12, Ri22 = P[:f, :f], P[:f, f:], P[f:, f:]
    forgotten: Array = Ri22 - Fi12.T @ np.linalg.inv(Fi11) @ Fi12
    return forgotten


def learn(Pu: Array, Phi_uv: Array, Phi_v: Array, spelling: Spelling) -> Array:
    """P of the window with the rows v behind the rows u: equations (15) to (19), each block computed as (18) spells it.

    Pu is inv(Phi_u). The four spellings are told apart at `slide`.
    """
    Pv = np.linalg.inv(Phi_v)
    # Equation (19) prints "+ inv(Phi_v)" in the bracket; the block inverse needs "- Phi_v" (tests/test_errata.py).
    bracket = Phi_uv.T @ Pu @ Phi_uv + (Pv if spelling == "as_printed_misprint" else -Phi_v)
    P11 = Pu - Pu @ Phi_uv @ np.linalg.inv(bracket) @ Phi_uv.T @ Pu
    P22 = np.linalg.inv(Phi_v - Phi_uv.T @ Pu @ Phi_uv)
    P12 = -Pu @ Phi_uv @ P22
    P21 = P12.T if spelling == "transposes_reused" else -Pv @ Phi_uv.T @ P11
    P = np.block([[P11, P12], [P21, P22]])
    return (P + P.T) / 2 if spelling == "symmetrised" else P


def _slid(fitted: Fit, chunk: Array, spelling: Spelling) -> Fit:
    """The model one chunk later: the loop body of Algorithms 1 and 2; as many rows are forgotten as are learnt."""
    _, kernel, C, model, P, _ = fitted
    u = fitted.window[len(chunk) :]
    P = learn(forget(P, len(chunk)), kernel(u, chunk), regularised(chunk, kernel, C), spelling)
    window = np.vstack([u, chunk])
    return Fit(window, kernel, C, model, P, P @ targets(window, model))


def slide(first: Fit, rows: Array, chunk: int, spelling: Spelling) -> Iterator[Fit]:
    """The model after each chunk of `rows`, carried on from `first` by the paper's recursions alone.

    "as_printed_misprint" is the paper to the letter; "as_printed_corrected" mends the bracket of equation (19) only;
    "transposes_reused" mends it and takes S21 = S12ᵀ from the note under (16) in place of the third formula of (18);
    "symmetrised" is the corrected one with (P + Pᵀ)/2 for P after each chunk. The last chunk may be short; a chunk must
    be smaller than the window.
    """
    if spelling not in get_args(Spelling):
        raise ValueError(f"spelling is {spelling!r}: give one of {', '.join(get_args(Spelling))}")
    fitted = first
    for start in range(0, len(rows), chunk):
        fitted = _slid(fitted, rows[start : start + chunk], spelling)
        yield fitted


# Where long double is float64 (Windows, macOS on ARM) the extended fit has no digits to spare and proves nothing.
LONG_DOUBLE_IS_WIDER = bool(np.finfo(np.longdouble).eps < 1e-18)


class ExtendedFit(NamedTuple):
    """A batch fit in long double: the training θ, beta, the leave-one-out distances and the diagonal of P."""

    theta: Number
    beta: Array
    left_out: Array
    diagonal: Array


def extended_fit(X: Array, kernel: Kernel, C: float, alarm_rate: float, model: Model = "boundary") -> ExtendedFit:
    """The batch fit with the kernel, the factor and all sums in long double: about three more digits than float64 has.

    The rows are taken as the exact numbers they are. Needs O(n³) element operations outside BLAS, 20 ms at n = 150.
    """
    X = X.astype(np.longdouble)
    L = lower_factor(regularised(X, kernel, C))
    beta = solve_upper(L, solve_lower(L, targets(X, model)))
    diagonal = (solve_lower(L, np.eye(len(X), dtype=X.dtype)) ** 2).sum(axis=0)
    theta = training_threshold(sizes(beta / np.longdouble(C)), alarm_rate)
    return ExtendedFit(theta, beta, sizes((beta.T / diagonal).T), diagonal)


def lower_factor(A: Array) -> Array:
    """The Cholesky factor L of A = L Lᵀ in the precision of A, column by column; LAPACK knows no long double.

    Raises ValueError at the first pivot that is not positive.
    """
    L = np.zeros_like(A)
    for j in range(len(A)):
        column = A[j:, j] - L[j:, :j] @ L[j, :j]
        if not column[0] > 0:
            raise ValueError(f"pivot {j} is {column[0]}: the matrix is not positive definite; lower C")
        L[j:, j] = column / np.sqrt(column[0])
    return L


def solve_lower(L: Array, B: Array) -> Array:
    """inv(L) B by forward substitution, one row of the result at a time; B is a vector or a matrix."""
    Y = np.zeros_like(B)
    for i in range(len(L)):
        Y[i] = (B[i] - L[i, :i] @ Y[:i]) / L[i, i]
    return Y


def solve_upper(L: Array, B: Array) -> Array:
    """inv(Lᵀ) B by back substitution, one row of the result at a time; B is a vector or a matrix."""
    Y = np.zeros_like(B)
    for i in reversed(range(len(L))):
        Y[i] = (B[i] - L[i + 1 :, i] @ Y[i + 1 :]) / L[i, i]
    return Y


def rows_with_copies(n: int, features: int, seed: int, share: float = 0.2, reach: int = 50) -> Array:
    """Standard normal rows of which the given share are exact copies of one of the `reach` rows before them.

    Copies make two rows of K equal, so that only the ridge 1/C keeps Phi regular: the hard case of every recursion.
    """
    rng = np.random.default_rng(seed)
    X: Array = rng.standard_normal((n, features))
    # Row 0 has nothing before it to copy.
    for i in range(1, n):
        if rng.random() < share:
            X[i] = X[i - rng.integers(1, min(i, reach) + 1)]
    return X
