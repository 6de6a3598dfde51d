"""Bad input is refused by an exception of ours that says what, where and what to do; the model is as it was, to the byte."""

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pairs import both_models, normal
from sklearn.exceptions import NotFittedError

from oneclass import KernelBoundary, Watcher
from oneclass.errors import (
    InvalidParameterError,
    InvalidRowsError,
    InvalidRowTypeError,
    KernelError,
    KernelOverflowError,
    NotLearntError,
    OneClassError,
    StateError,
)
from oneclass.kernels import RBF, FunctionKernel, Kernel, Laplacian, Linear, Polynomial, RationalQuadratic

SCORING = ["score_samples", "decision_function", "predict", "p_values", "expected", "explain"]
LEARNING = ["fit", "partial_fit"]


def with_cell(value, row=4, column=1, count=6):
    rows = normal(count).astype(object) if isinstance(value, str | None | list) else normal(count)
    rows[row, column] = value
    return rows


# What is wrong, and everything its message has to name.
BAD_ROWS = {
    "NaN": (with_cell(np.nan), InvalidRowsError, ["NaN", "row 4", "column 1", "Leave such rows out"]),
    "infinity": (with_cell(np.inf), InvalidRowsError, ["infinity", "row 4", "column 1"]),
    "minus infinity": (with_cell(-np.inf, 0, 2), InvalidRowsError, ["infinity", "row 0", "column 2"]),
    "an integer beyond floats": ([[1, 2, 3], [4, 10**400, 6]], InvalidRowsError, ["row 1, column 1", "turn it into a number"]),
    "both infinities": ([[np.inf, 0, 0], [-np.inf, 0, 0]], InvalidRowsError, ["infinity", "row 0", "column 0", "2 of 2"]),
    "text": (with_cell("seven"), InvalidRowsError, ["row 4", "column 1", "'seven'", "turn it into a number"]),
    "nothing in a cell": (with_cell(None), InvalidRowsError, ["NaN", "row 4", "column 1"]),
    "a list in a cell": ([[1.0, 2.0, [3.0]], [1.0, 2.0, 3.0]], InvalidRowsError, []),
    "a complex number": (normal(6) + 1j, InvalidRowsError, ["omplex"]),
    "no rows": (normal(6)[:0], InvalidRowsError, ["0 sample", "minimum of"]),
    "no features": (np.empty((6, 0)), InvalidRowsError, ["0 feature"]),
    "a single row without brackets": (normal(6)[0], InvalidRowsError, ["1D array", "reshape"]),
    "one dimension too many": (normal(6)[None], InvalidRowsError, ["dim 3"]),
    "rows of different lengths": ([[1.0, 2.0, 3.0], [1.0, 2.0]], InvalidRowsError, []),
    "nothing at all": (None, InvalidRowsError, []),
    "a number": (3.0, InvalidRowsError, ["scalar array"]),
    "a word": ("rows", InvalidRowsError, []),
}
WRONG_FEATURES = {
    "too many features": (normal(6, features=4), InvalidRowsError, ["4 features", "3 features"]),
    "too few features": (normal(6, features=2), InvalidRowsError, ["2 features", "3 features"]),
}


def refusals(calls, table):
    cases = [(call, *case) for call in calls for case in table.values()]
    return pytest.mark.parametrize(
        ("call", "rows", "error", "named"), cases, ids=[f"{call} {what}" for call in calls for what in table]
    )


def assert_names(info, named):
    for part in named:
        assert part in str(info.value), f"{part!r} is not in: {info.value}"


@both_models
@refusals([*LEARNING, *SCORING], BAD_ROWS)
def test_bad_rows_are_refused(model, call, rows, error, named):
    """Every call refuses rows that are no finite numbers by row, column, value and advice, and nothing changes."""
    fitted = model(window=40).fit(normal(40)).partial_fit(normal(1, seed=1))
    before, scores = fitted.to_bytes(), fitted.score_samples(normal(9))
    with pytest.raises(error) as info:
        getattr(fitted, call)(rows)
    assert_names(info, named)
    assert fitted.to_bytes() == before
    np.testing.assert_array_equal(fitted.score_samples(normal(9)), scores)


@both_models
@refusals(["partial_fit", *SCORING], WRONG_FEATURES)
def test_another_number_of_features_is_refused(model, call, rows, error, named):
    """After the first rows their number of features is fixed until the next `fit`; the message names both numbers."""
    fitted = model().fit(normal(40))
    before = fitted.to_bytes()
    with pytest.raises(error) as info:
        getattr(fitted, call)(rows)
    assert_names(info, named)
    assert fitted.to_bytes() == before


@both_models
@refusals(LEARNING, BAD_ROWS)
def test_a_first_call_that_fails_learns_nothing(model, call, rows, error, named):
    """What has learnt nothing has learnt nothing after a failure either, not even the number of features."""
    fresh = model()
    before = fresh.to_bytes()
    with pytest.raises(error):
        getattr(fresh, call)(rows)
    assert fresh.to_bytes() == before
    assert not hasattr(fresh, "n_features_in_")
    assert fresh.fit(normal(30, features=5)).is_fitted


@refusals(["watch"], {name: bad for name, bad in (BAD_ROWS | WRONG_FEATURES).items() if name != "no rows"})
def test_a_watcher_refuses_the_same_rows(call, rows, error, named):
    """`watch` refuses what the model refuses, in the same words, while it warms up and after."""
    for count in (20, 60):
        watcher = Watcher(KernelBoundary(window=40))
        watcher.watch(normal(count))
        before = watcher.to_bytes()
        with pytest.raises(error) as info:
            watcher.watch(rows)
        assert_names(info, named)
        assert watcher.to_bytes() == before


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_column_of_a_frame_is_called_by_its_name(frame):
    """In a data frame a bad cell is found by the name of its column as well."""
    fitted = KernelBoundary().fit(frame({name: normal(30)[:, 0] for name in ("flow", "heat")}))
    with pytest.raises(InvalidRowsError, match=r"row 2, column 1 \('heat'\)"):
        fitted.predict(frame({"flow": [0.0, 0.0, 0.0], "heat": [0.0, 0.0, np.nan]}))
    with pytest.raises(InvalidRowTypeError, match=r"row 0, column 1 holds 'hot'"):
        fitted.predict(frame({"flow": [0.0, 0.0, 0.0], "heat": ["hot", "cold", "0.0"]}))
    moments = pd.date_range("2026-01-01", periods=3).to_pydatetime().tolist()
    with pytest.raises(InvalidRowTypeError, match=r"datetime.* in row 0, column 1 \('heat'\).*seconds"):
        fitted.predict(frame({"flow": [0.0, 0.0, 0.0], "heat": moments}))


@pytest.mark.parametrize(
    "rows",
    [normal(5).astype(str), normal(5).astype(str).astype(object), normal(5).astype(str).tolist(), normal(5).astype("S")],
    ids=["array", "objects", "lists", "bytes"],
)
def test_text_that_spells_numbers_is_refused(rows):
    """A column read as text holds something that is no number; converting what happens to spell one would hide that."""
    fitted = KernelBoundary().fit(normal(30))
    with pytest.raises(InvalidRowTypeError, match=r"row 0, column 0 holds b?'.*turn it into a number"):
        fitted.score_samples(rows)


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[s]", "timedelta64[ns]"])
def test_times_are_refused(kind):
    """Nanoseconds since 1970 are numbers, but never the ones that were meant."""
    with pytest.raises(InvalidRowTypeError, match=r"row 0, column 0.*turn times into a number"):
        KernelBoundary().fit((1e9 * normal(30)).astype(kind))
    with pytest.raises(InvalidRowTypeError, match=r"row 1, column 0"):
        KernelBoundary().fit([[1.0, 2.0], [datetime(2026, 1, 1), 2.0], [0.0, 0.0]])  # noqa: DTZ001 - naive on purpose


def test_cells_that_are_no_numbers_are_a_type_error_too():
    """What is no number is refused as InvalidRowTypeError, which is a TypeError."""
    with pytest.raises(InvalidRowTypeError, match="row 1, column 0") as info:
        KernelBoundary().fit([[1.0, 2.0], [{"a": 1}, 2.0], [0.0, 0.0]])
    assert isinstance(info.value, TypeError)


def test_what_is_masked_is_missing():
    """The number under a mask is nobody's: a masked cell is NaN, and is refused with its place; without one the array is taken."""
    rows = np.ma.array(normal(30), mask=False)
    assert KernelBoundary().fit(rows).is_fitted
    rows[3, 1], rows.data[3, 1] = np.ma.masked, -9999.0
    with pytest.raises(InvalidRowsError, match="NaN in row 3, column 1"):
        KernelBoundary().fit(rows)


@both_models
@pytest.mark.parametrize("value", [1.1e100, -1e200, np.finfo(float).max])
def test_numbers_as_good_as_infinite_are_refused(model, value):
    """A number that leaves no room for squares, as a mark for "no data" often is, is refused like infinity; 1e100 itself is far."""
    fitted = model(width=1.0, C=1.0).fit(normal(30))
    for call in (fitted.partial_fit, fitted.predict):
        with pytest.raises(InvalidRowsError, match=r"beyond 1e\+100, in row 4, column 1; 1 of 6 rows"):
            call(with_cell(value))
    assert fitted.predict(with_cell(1e100))[4] == -1


@both_models
@pytest.mark.parametrize("unit", [1e-150, 1e-60, 1e-3, 1.0, 1e60, 1e98])
def test_any_unit_will_do(model, unit):
    """Rows in whatever unit are learnt and scored without a warning, and a row at the end of the range is an alarm."""
    fitted = model(window=40, alarm_rate=0.1).fit(normal(40) * unit).partial_fit(normal(3, seed=1) * unit)
    far = np.array([[1e100, 0.0, 0.0]])
    assert np.isfinite(fitted.offset_)
    assert np.isfinite(fitted.score_samples(normal(5) * unit)).all()
    assert fitted.predict(far).tolist() == [-1]


@both_models
@pytest.mark.parametrize("rows", [normal(1), normal(6)[:0]], ids=["one row", "none"])
def test_a_fit_needs_two_rows(model, rows):
    """`fit` of fewer than two rows is refused and says how many there must be; `partial_fit` learns a single row."""
    with pytest.raises(InvalidRowsError, match=r"minimum of 2|at least 2"):
        model().fit(rows)
    with pytest.raises(InvalidRowsError, match=r"1 rows to learn.*at least 2 that are not labelled -1"):
        model().fit(normal(6), [1, -1, -1, -1, -1, -1])
    assert model(threshold="training").partial_fit(normal(1)).is_fitted


@both_models
@pytest.mark.parametrize("call", LEARNING)
@pytest.mark.parametrize(
    "labels",
    [["1", "-1", "1", "1", "1", "1"], [True] * 6, [1.0, np.nan] * 3, pd.Series([1, -1, None] * 2, dtype="Int64"), [b"-1"] * 6],
    ids=repr,
)
def test_labels_must_be_numbers(model, call, labels):
    """A text "-1" is not -1 to NumPy, and True may mean normal or not: both would be learnt without a word, and are refused."""
    fitted = model(window=40).fit(normal(40))
    before = fitted.to_bytes()
    with pytest.raises(InvalidRowsError, match=r"the label of row \d is .*: labels are 1 \(normal\), -1 \(not normal\) or 0"):
        getattr(fitted, call)(normal(6), labels)
    assert fitted.to_bytes() == before


@both_models
@pytest.mark.parametrize("call", LEARNING)
@pytest.mark.parametrize("labels", [[1, 1], [[1, 1]] * 6, 1], ids=repr)
def test_labels_must_be_one_per_row(model, call, labels):
    """Labels of another shape are refused, and the message names both counts."""
    fitted = model().fit(normal(30))
    before = fitted.to_bytes()
    with pytest.raises(InvalidRowsError, match=r"6 rows.*one label per row"):
        getattr(fitted, call)(normal(6), labels)
    assert fitted.to_bytes() == before


@both_models
@pytest.mark.parametrize("call", [*SCORING, "forget"])
def test_nothing_can_be_asked_before_anything_is_learnt(model, call):
    """Every call that needs a fitted model raises NotLearntError, a NotFittedError, which names the model and what to call."""
    for fresh in (model(), Watcher(model()).model):
        with pytest.raises(NotLearntError, match=f"{model.__name__}.*call fit") as info:
            getattr(fresh, call)(normal(3))
        assert isinstance(info.value, NotFittedError)
    for name in ("offset_", "window_", "width_", "C_", "scale_"):
        assert not hasattr(model(), name)


BAD_PARAMETERS = [
    *[("C", value) for value in (0, 0.0, -1.0, np.nan, np.inf, "much", None, True, [1.0])],
    *[("width", value) for value in (0, -2.0, np.nan, np.inf, "wide", None, False)],
    *[("alarm_rate", value) for value in (0, 1, 0.0, 1.0, -0.05, 5, np.nan, "auto", None)],
    *[("window", value) for value in (1, 0, -5, 2.5, "all", True, np.nan)],
    *[("threshold", value) for value in ("loo", None, 0.5)],
    *[("kernel", value) for value in ("gaussian", None, 3, RBF)],
]


@both_models
@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS, ids=repr)
@pytest.mark.parametrize("call", LEARNING)
def test_parameters_out_of_range_are_refused(model, name, value, call):
    """A parameter outside its range is refused when rows come: the message names it, its value and what it may be."""
    fresh = model(**{name: value})
    with pytest.raises(InvalidParameterError, match=f"^{name}=") as info:
        getattr(fresh, call)(normal(30))
    assert_names(info, [repr(value)])
    assert any(word in str(info.value) for word in ("give a", "choose one"))
    assert not fresh.is_fitted
    fitted = model().fit(normal(30))
    before = fitted.score_samples(normal(5))
    with pytest.raises(InvalidParameterError):
        fitted.set_params(**{name: value}).fit(normal(30))
    np.testing.assert_array_equal(fitted.score_samples(normal(5)), before)


def test_a_width_beside_a_kernel_object_is_refused():
    """A kernel object brings its own width: a second one is a contradiction, not ignored."""
    with pytest.raises(InvalidParameterError, match=r"width=2.0.*RBF\(width=1.0\) brings its own"):
        KernelBoundary(RBF(1.0), width=2.0).fit(normal(30))


@pytest.mark.parametrize("kind", [RBF, Laplacian, RationalQuadratic])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "2", None])
def test_kernels_refuse_widths_that_are_none(kind, value):
    """A kernel with a width that is no positive number cannot be made."""
    with pytest.raises(InvalidParameterError, match=f"{kind.__name__}: width="):
        kind(value)


@pytest.mark.parametrize("wrong", [{"degree": 0}, {"degree": 1.5}, {"offset": -1.0}, {"offset": np.nan}, {"scale": 0.0}])
def test_polynomials_that_are_no_kernels_cannot_be_made(wrong):
    """A fractional or non-positive degree, a negative offset and a scale of zero are refused."""
    with pytest.raises(InvalidParameterError, match="Polynomial"):
        Polynomial(**wrong)


def test_kernels_combine_with_kernels_only():
    """A sum or product with anything else is refused, with the way out for functions."""
    for combine in (lambda: RBF(1.0) + 2, lambda: Linear() * (lambda X, Y: X @ Y.T)):
        with pytest.raises(InvalidParameterError, match="FunctionKernel"):
            combine()


@both_models
@pytest.mark.parametrize("call", ["fit", "partial_fit", "score_samples", "predict", "p_values"])
@pytest.mark.parametrize("kernel", [Polynomial(4), RBF(1.0) + Polynomial(4), Linear() * Polynomial(3)], ids=repr)
def test_a_kernel_that_overflows_is_refused(model, call, kernel):
    """A row at which the kernel is not finite is refused by its number with the advice to scale, and nothing changes."""
    fitted = model(kernel, C=0.01, window=40).fit(normal(40)).partial_fit(normal(1, seed=1))
    before = fitted.to_bytes()
    rows = normal(6)
    rows[3] = 1e90
    with pytest.raises(KernelError, match=r"overflows at row 3.*[Ss]cale the features"):
        getattr(fitted, call)(rows)
    assert fitted.to_bytes() == before


@both_models
@pytest.mark.parametrize("learnt", [5, 40, 60])
def test_the_row_of_an_overflow_counts_in_the_rows_handed_in(model, learnt):
    """While parameters are still chosen, and while the window fills, the row named is that of the call, not of the window."""
    fitted = model("polynomial", window=60, threshold="training").fit(normal(learnt))
    rows = normal(6)
    rows[0] = 1e90
    with pytest.raises(KernelError, match="overflows at row 0"):
        fitted.partial_fit(rows)


def not_symmetric(X, Y):
    return X @ Y.T + X[:, :1]


def not_positive(X, Y):
    return -np.exp(-((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


def indefinite(X, Y):
    return np.sqrt(((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


def transposed(X, Y):
    return Y @ X.T


def flat(X, Y):
    return np.ones(len(X))


def textual(X, Y):
    return np.full((len(X), len(Y)), "one")


def not_finite(X, Y):
    return np.full((len(X), len(Y)), np.nan)


@both_models
@pytest.mark.parametrize("regularisation", ["auto", 0.001, 100.0])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (not_symmetric, "is no kernel: .*differ"),
        (not_positive, "not positive definite on these 30 rows: the smallest eigenvalue"),
        (indefinite, "not positive definite on these 30 rows: the smallest eigenvalue"),
        (flat, r"returned an array of shape .*return numbers of shape \("),
        (textual, r"type <U3.*return numbers"),
        (not_finite, "overflows at row 0"),
    ],
)
def test_functions_that_are_no_kernels_are_refused(model, function, message, regularisation):
    """A callable that is not symmetric, not positive definite, or returns anything but a finite matrix is refused by its name."""
    fresh = model(function, C=regularisation, threshold="training")
    with pytest.raises(KernelError, match=message) as info:
        fresh.fit(normal(30))
    if function is not not_finite:
        assert function.__name__ in str(info.value)
    assert not fresh.is_fitted


def test_a_function_of_the_wrong_shape_is_found_out_when_it_shows():
    """A function that swaps its arguments is right on a square matrix, and is refused at the first row that is scored."""
    fitted = KernelBoundary(transposed, C=0.1).fit(normal(30))
    with pytest.raises(KernelError, match=r"shape \(30, 1\).*\(1, 30\)"):
        fitted.predict(normal(3))


def test_a_function_that_fails_on_later_rows_changes_nothing():
    """If a callable stops being positive definite with a later chunk, that chunk is refused and the model is as it was."""

    def until_large(X, Y):
        return np.where((np.abs(X).max() > 50) | (np.abs(Y).max() > 50), -1.0, 1.0) * (X @ Y.T + np.eye(1))

    fitted = KernelBoundary(until_large, C=1.0, window=40).fit(normal(40))
    before = fitted.to_bytes()
    with pytest.raises(KernelError, match="not positive definite"):
        fitted.partial_fit(normal(5) * 100)
    assert fitted.to_bytes() == before


def test_rows_too_alike_for_a_huge_C_are_refused():
    """When K + I/C cannot be factorised the message names the row, the kernel, C and the way out."""
    rows = np.repeat(normal(2), 20, axis=0)
    fitted = KernelBoundary(width=1.0, C=1.0).fit(rows)
    before = fitted.score_samples(rows)
    with pytest.raises(KernelError, match=r"row \d+ of the window.*RBF\(width=1.0\).*C=1e\+30.*smaller C"):
        fitted.set_params(C=1e30).fit(rows)
    np.testing.assert_array_equal(fitted.score_samples(rows), before)


def test_every_exception_is_ours_and_the_one_that_is_expected():
    """All exceptions have one root, and each is also the standard one that callers and scikit-learn catch."""
    standard = {
        InvalidRowsError: ValueError,
        InvalidRowTypeError: TypeError,
        InvalidParameterError: ValueError,
        KernelError: ValueError,
        NotLearntError: NotFittedError,
        StateError: ValueError,
    }
    for ours, expected in standard.items():
        assert issubclass(ours, OneClassError)
        assert issubclass(ours, expected)
    assert issubclass(InvalidRowTypeError, InvalidRowsError)


def test_a_function_kernel_is_shown_by_its_name():
    """Messages call a user's function by its name."""
    assert repr(FunctionKernel(flat)) == "FunctionKernel(flat)"


def test_a_function_that_writes_to_its_rows_harms_nobody():
    """A kernel function gets copies: whatever it does to them, the window stays as it was learnt."""

    def rude(X, Y):
        X -= Y.mean()
        X[:], Y[:] = X + Y.mean(), Y + 0.0
        K = np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))
        X[:] = Y[:] = np.nan
        return K

    fitted = KernelBoundary(rude, C=1.0).fit(normal(40))
    scores = fitted.score_samples(normal(9, seed=1))
    np.testing.assert_array_equal(fitted.window_, normal(40))
    np.testing.assert_array_equal(fitted.score_samples(normal(9, seed=1)), scores)


def test_a_kernel_class_of_ones_own_is_looked_at_like_a_function():
    """What is taken on trust of the library's kernels is checked in a class of the user's, also within a sum."""

    class Tanh(Kernel):
        def __call__(self, X, Y):
            return np.tanh(X @ Y.T - 1.0)

        def diagonal(self, X):
            return np.tanh((X * X).sum(axis=1) - 1.0)

    for kernel in (Tanh(), Tanh() + Linear()):
        with pytest.raises(KernelError, match="not positive definite on these 40 rows"):
            KernelBoundary(kernel, C=0.001).fit(10 * normal(40))


@pytest.mark.parametrize("made", [lambda: Polynomial(2, "a"), lambda: RBF("wide"), lambda: RBF(np.array([1.0, 2.0]))])
def test_a_kernel_is_made_of_numbers(made):
    """Anything else is an error of ours that names it."""
    with pytest.raises(InvalidParameterError):
        made()


def test_a_width_beside_a_kernel_object_is_refused_whatever_it_is():
    """Also if it is an array, which is neither equal to "auto" nor not."""
    with pytest.raises(InvalidParameterError, match="brings its own width"):
        KernelBoundary(RBF(1.0), width=np.array([1.0, 2.0])).fit(normal(40))


def test_the_row_at_which_a_kernel_overflows_is_counted_in_the_call():
    """Whatever chunks and labels stand between, the message names the row of the caller's that the kernel cannot take."""
    bad, kernel = normal(100, features=5), Polynomial(5, 1.0, 0.01)
    bad[80] = 1e90
    y = np.where(np.arange(100) < 40, -1, 1)
    for call in (
        lambda: KernelBoundary(kernel, C=1.0).fit(bad),
        lambda: KernelBoundary(kernel, C=1.0).fit(bad, y),
        lambda: KernelBoundary(kernel, C=1.0, window=60).fit(normal(60, features=5)).partial_fit(bad, y),
        lambda: KernelBoundary(kernel, C=1.0).fit(normal(60, features=5)).score_samples(bad),
        lambda: Watcher(KernelBoundary(kernel, C=1.0, window=60), chunk=7).watch(bad),
        lambda: Watcher(KernelBoundary(kernel, C=1.0, window=90), chunk=7).watch(bad),
        lambda: Watcher(KernelBoundary(kernel, C=1.0, window=60).fit(normal(60, features=5)), chunk=1).watch(bad),
    ):
        with pytest.raises(KernelOverflowError, match="overflows at row 80"):
            call()
    waits = Watcher(KernelBoundary(kernel, C=1.0, window=90))
    waits.watch(bad[60:])
    with pytest.raises(KernelOverflowError, match="overflows at a row of an earlier call"):
        waits.watch(normal(60, features=5))


@both_models
def test_no_rows_are_watched_without_a_word(model):
    """An empty batch of the right features gets no verdicts and changes nothing; one of other features is refused."""
    watcher = Watcher(model(window=30))
    assert len(watcher.watch(np.empty((0, 5)))) == 0
    watcher.watch(normal(50, features=5))
    before = watcher.to_bytes()
    assert len(watcher.watch(np.empty((0, 5)), labels=[]).p_value) == 0
    assert watcher.to_bytes() == before
    with pytest.raises(InvalidRowsError):
        watcher.watch(np.empty((0, 4)))
