"""The twin agrees with itself, with arithmetic of 40 digits, and with the authors' toolbox."""

import os
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
import reference
from reference import Array, Kernel, Model

KERNELS: dict[str, Kernel] = {
    "rbf": partial(reference.rbf, width=1.7),
    "laplacian": partial(reference.laplacian, width=2.3),
    "polynomial": partial(reference.polynomial, scale=0.5, offset=1.0, degree=3),
    "linear": reference.linear,
    "rational_quadratic": partial(reference.rational_quadratic, width=1.7, alpha=0.8),
}
MODELS: tuple[Model, ...] = ("boundary", "reconstruction")
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
both_models = pytest.mark.parametrize("model", MODELS)
needs_long_double = pytest.mark.skipif(not reference.LONG_DOUBLE_IS_WIDER, reason="long double is float64 here")


@pytest.fixture
def rows() -> Array:
    """Forty rows of three features, a fifth of them copies."""
    return reference.rows_with_copies(40, features=3, seed=3, reach=20)


def test_the_kernels_are_the_stated_formulas() -> None:
    """Each kernel of x = (1, 2) and y = (2, 4) is the number its formula gives by hand."""
    x, y = np.array([[1.0, 2.0]]), np.array([[2.0, 4.0]])
    assert reference.rbf(x, y, width=2.0) == pytest.approx(np.exp(-5 / 4))
    assert reference.laplacian(x, y, width=2.0) == pytest.approx(np.exp(-3 / 2))
    assert reference.polynomial(x, y, scale=0.5, offset=1.0, degree=2) == pytest.approx(36.0)
    assert reference.linear(x, y) == pytest.approx(10.0)
    assert reference.rational_quadratic(x, y, width=2.0, alpha=3.0) == pytest.approx((1 + 5 / 12) ** -3)


@every_kernel
@both_models
def test_leave_one_out_needs_no_refit(rows: Array, kernel: Kernel, model: Model) -> None:
    """A fit without a row gives that row the distance that beta_i / P_ii gives, for every kernel and both models."""
    literal = reference.leave_one_out_literally(rows, kernel, 10.0, model)
    by_identity = reference.leave_one_out_distances(reference.fit(rows, kernel, 10.0, model))
    np.testing.assert_allclose(by_identity, literal, rtol=1e-9, atol=1e-12)


@every_kernel
@both_models
def test_the_in_window_residual_is_beta_over_C(rows: Array, kernel: Kernel, model: Model) -> None:
    """T - K beta equals beta/C, so in-window distances need no kernel product."""
    fitted = reference.fit(rows, kernel, 10.0, model)
    residual = reference.targets(rows, model) - kernel(rows, rows) @ fitted.beta
    np.testing.assert_allclose(residual, fitted.beta / 10.0, atol=1e-11)
    np.testing.assert_allclose(reference.training_distances(fitted), reference.distances(fitted, rows), atol=1e-11)


@every_kernel
@both_models
def test_sliding_equals_fitting_the_last_window(kernel: Kernel, model: Model) -> None:
    """The symmetrised recursion gives after every chunk, a short last one too, the model fitted on the window."""
    stream = reference.rows_with_copies(83, features=3, seed=4, reach=20)
    first = reference.fit(stream[:30], kernel, 5.0, model)
    slid = list(reference.slide(first, stream[30:], 10, "symmetrised"))
    assert len(slid) == 6
    for step, fitted in enumerate(slid, start=1):
        end = min(30 + 10 * step, 83)
        np.testing.assert_array_equal(fitted.window, stream[end - 30 : end])
        afresh = reference.fit(fitted.window, kernel, 5.0, model)
        np.testing.assert_allclose(fitted.P, afresh.P, atol=1e-10)
        np.testing.assert_allclose(fitted.beta, afresh.beta, atol=1e-10)


def test_an_unknown_spelling_is_refused(rows: Array) -> None:
    """A spelling the paper does not have is refused with the list of those there are."""
    first = reference.fit(rows[:20], KERNELS["rbf"], 1.0)
    with pytest.raises(ValueError, match="symmetrised"):
        next(reference.slide(first, rows[20:], 5, "guessed"))  # type: ignore[arg-type]  # the wrong name is the point


@pytest.mark.parametrize("alarm_rate", [0.01, 0.05, 0.1, 0.15, 0.29])
def test_the_training_threshold_rejects_the_asked_share_rounded_down(alarm_rate: float) -> None:
    """Exactly ⌊η n⌋ training rows lie strictly above θ, for every n, without a rounding of η getting in."""
    hundredths = round(100 * alarm_rate)
    for n in range(1, 300):
        d = np.random.default_rng(n).permutation(n).astype(float)
        assert (d > reference.training_threshold(d, alarm_rate)).sum() == n * hundredths // 100


def test_nineteen_twentieths_of_twenty_is_nineteen() -> None:
    """The rank of 20 rows at η = 0.05 is 19: decimals are exact."""
    assert reference.training_rank(20, 0.05) == 19
    assert reference.training_rank(20, np.float64(0.05)) == 19


@pytest.mark.parametrize("alarm_rate", [0.0, 1.0, -0.1, 1.5])
def test_a_rate_outside_the_open_unit_interval_is_refused(alarm_rate: float) -> None:
    """No rank is defined for a rate that is not strictly between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        reference.training_rank(20, alarm_rate)


@pytest.mark.parametrize("alarm_rate", [0.03, 0.05, 0.1, 0.25])
@pytest.mark.parametrize("n", [5, 19, 20, 39, 40, 99])
def test_an_alarm_is_a_p_value_of_at_most_the_alarm_rate(n: int, alarm_rate: float) -> None:
    """A distance lies above the leave-one-out θ exactly when its p-value is at most η, ties included."""
    # Whole numbers among few: many distances are equal to each other and to θ.
    rng = np.random.default_rng(n)
    left_out = rng.integers(0, 12, n).astype(float)
    d = np.arange(-1.0, 14.0, 0.5)
    theta = reference.leave_one_out_threshold(left_out, alarm_rate)
    np.testing.assert_array_equal(d > theta, reference.p_values(left_out, d) <= alarm_rate)


def test_too_few_rows_for_any_alarm() -> None:
    """With (n + 1) η < 1 the leave-one-out θ is infinite; with one row more it is the largest distance."""
    assert reference.leave_one_out_threshold(np.arange(18.0), 0.05) == np.inf
    assert reference.leave_one_out_threshold(np.arange(19.0), 0.05) == 18.0


def exact_fit(X: Array, C: float, width: float) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """beta and the diagonal of P of a boundary model in 40 digits, the rows taken as the exact numbers they are."""
    with mpmath.workdps(40):
        points = [[mpmath.mpf(float(value)) for value in row] for row in X]

        def k(x: list[mpmath.mpf], y: list[mpmath.mpf]) -> mpmath.mpf:
            return mpmath.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / mpmath.mpf(width) ** 2)

        n = len(points)
        Phi = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                Phi[i, j] = k(points[i], points[j]) + (1 / mpmath.mpf(C) if i == j else 0)
        P = Phi**-1
        return [mpmath.fsum(P[i, :]) for i in range(n)], [P[i, i] for i in range(n)]


@needs_long_double
@pytest.mark.parametrize(("C", "tolerance"), [(1.0, 1e-17), (1e4, 1e-14), (1e8, 1e-10)])
def test_the_extended_fit_agrees_with_40_digits(C: float, tolerance: float) -> None:
    """Despite copies, the long-double fit has more digits right than float64 holds at C = 1, and ten at C = 1e8."""
    X = reference.rows_with_copies(24, features=2, seed=6)
    fitted = reference.extended_fit(X, partial(reference.rbf, width=1.7), C, 0.05)
    beta, diagonal = exact_fit(X, C, 1.7)
    with mpmath.workdps(40):
        # NumPy prints long double with all its digits; float() would cut them.
        def error(ours: Array, theirs: list[mpmath.mpf]) -> float:
            scale = max(abs(value) for value in theirs)
            return max(float(abs(mpmath.mpf(str(a)) - b) / scale) for a, b in zip(ours, theirs, strict=True))

        assert error(fitted.beta, beta) < tolerance
        assert error(fitted.diagonal, diagonal) < tolerance
        assert error(fitted.left_out, [abs(b / p) for b, p in zip(beta, diagonal, strict=True)]) < tolerance
        theta = sorted(abs(b) / mpmath.mpf(C) for b in beta)[reference.training_rank(24, 0.05) - 1]
        assert abs(mpmath.mpf(str(fitted.theta)) / theta - 1) < tolerance


@every_kernel
@both_models
def test_the_extended_fit_agrees_with_float64(rows: Array, kernel: Kernel, model: Model) -> None:
    """On a well-conditioned window the long-double fit and the plain one are equal to float64 rounding."""
    plain, extended = reference.fit(rows, kernel, 1.0, model), reference.extended_fit(rows, kernel, 1.0, 0.05, model)
    theta = reference.training_threshold(reference.training_distances(plain), 0.05)
    np.testing.assert_allclose(extended.beta.astype(float), plain.beta, atol=1e-12)
    np.testing.assert_allclose(extended.diagonal.astype(float), np.diag(plain.P), atol=1e-12)
    np.testing.assert_allclose(extended.left_out.astype(float), reference.leave_one_out_distances(plain), atol=1e-12)
    np.testing.assert_allclose(float(extended.theta), theta, atol=1e-12)


def test_the_extended_factor_refuses_an_indefinite_matrix() -> None:
    """A pivot that is not positive stops the factorisation and is named."""
    with pytest.raises(ValueError, match="pivot 1 is"):
        reference.lower_factor(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.fixture
def toolbox() -> Path:
    """The folder of outputs of the authors' MATLAB toolbox."""
    folder = os.environ.get("ONECLASS_REFERENCE")
    if not folder:
        pytest.skip("ONECLASS_REFERENCE is not set: it names the folder of the toolbox's outputs")
    return Path(folder)


def table(folder: Path, name: str) -> Array:
    """The numbers of one file of the toolbox."""
    return np.loadtxt(folder / name, delimiter=",")


@pytest.mark.parametrize(
    ("name", "model", "C", "width", "alarm_rate"),
    [
        ("elm_s2_C100.csv", "boundary", 100.0, 2.0, 0.1),
        ("elm_s1_C1_f05.csv", "boundary", 1.0, 1.0, 0.05),
        ("aaelm_s2_C100.csv", "reconstruction", 100.0, 2.0, 0.1),
        ("aaelm_s1_C1_f05.csv", "reconstruction", 1.0, 1.0, 0.05),
    ],
)
def test_a_batch_fit_is_the_toolbox(toolbox: Path, name: str, model: Model, C: float, width: float, alarm_rate: float) -> None:
    """Distances of 40 training and 30 test rows, and θ, are those of the authors' toolbox to 1e-10."""
    train, test = table(toolbox, "train2d.csv"), table(toolbox, "test2d.csv")
    fitted = reference.fit(train, partial(reference.rbf, width=width), C, model)
    d = reference.distances(fitted, np.vstack([train, test]))
    theta = reference.training_threshold(reference.training_distances(fitted), alarm_rate)
    expected = table(toolbox, name)
    np.testing.assert_allclose(d, -expected[:, 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.full(70, theta), -expected[:, 1], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("prefix", "model"), [("elm", "boundary"), ("aaelm", "reconstruction")])
def test_a_sliding_window_is_the_toolbox_on_each_window(toolbox: Path, prefix: str, model: Model) -> None:
    """Slid by chunks of 5, θ and the test distances are to 1e-10 those of the toolbox fitted on each window."""
    train, test = table(toolbox, "train2d.csv"), table(toolbox, "test2d.csv")
    first = reference.fit(train[:20], partial(reference.rbf, width=1.5), 10.0, model)
    slid = [first, *reference.slide(first, train[20:], 5, "symmetrised")]
    expected = table(toolbox, f"{prefix}_window20_chunk5_C10_s15_f05.csv")
    for fitted, column in zip(slid, expected.T, strict=True):
        theta = reference.training_threshold(reference.training_distances(fitted), 0.05)
        np.testing.assert_allclose(theta, column[0], rtol=0, atol=1e-10)
        np.testing.assert_allclose(reference.distances(fitted, test), column[1:], rtol=0, atol=1e-10)
