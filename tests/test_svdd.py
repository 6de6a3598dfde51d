"""SVDD and the one-class SVM: the quadratic programme is solved, whatever the rows, and both keep the contract."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from svdd_oracle import by_enumeration, by_pairs, objective, violation

from oneclass.checks import yield_checks
from oneclass.errors import InvalidParameterError, InvalidRowsError, KernelError
from oneclass.kernels import RBF, Laplacian, Linear, Polynomial, RationalQuadratic
from oneclass.rivals import dual
from oneclass.rivals.dual import Solution, solve
from oneclass.rivals.incremental_svdd import IncrementalSVDD
from oneclass.rivals.svdd import SVDD, OneClassSVM

DETECTORS = [SVDD(), OneClassSVM(), IncrementalSVDD(), IncrementalSVDD(window=150)]
KERNELS = [RBF(0.1), RBF(1.0), RBF(3.0), RBF(30.0), Laplacian(2.0), RationalQuadratic(2.0), Linear(), Polynomial(2)]
both = pytest.mark.parametrize("kind", [SVDD, OneClassSVM])
seeds = st.integers(0, 2**32 - 1)


def normal(count=60, features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, features))


def distances(K, weights):
    return np.diag(K) - 2.0 * K @ weights + weights @ K @ weights


def size(K):
    return np.abs(K).max() or 1.0


@parametrize_with_checks(DETECTORS)
def test_scikit_learns_contract(estimator, check):
    """Each check of scikit-learn's `check_estimator` passes, with default arguments and with a window."""
    check(estimator)


@pytest.mark.parametrize(("detector", "check"), [(each, check) for each in DETECTORS for check in yield_checks(each)])
def test_our_contract(detector, check):
    """Each check of `oneclass.checks` that applies passes, with default arguments and with a window."""
    check(detector)


# The dual


@given(seeds, st.integers(2, 5), st.sampled_from(KERNELS), st.floats(0.05, 0.99))
def test_no_division_of_the_rows_is_better(seed, count, kernel, rate):
    """For a handful of rows: of all ways to put them inside, on and outside the sphere, none has a smaller objective."""
    rows = normal(count, 2, seed)
    K, C = kernel(rows, rows), 1.0 / (count * rate)
    best, found = by_enumeration(K, C), solve(K, C).weights
    assert objective(K, found) <= objective(K, best) + 1e-9 * size(K)
    np.testing.assert_allclose(distances(K, found), distances(K, best), atol=1e-4 * size(K))


@given(seeds, st.integers(2, 40), st.sampled_from([RBF(0.5), RBF(1.0), RBF(2.0), Laplacian(2.0)]), st.floats(0.03, 0.9))
def test_the_dual_equals_a_slow_solver(seed, count, kernel, rate):
    """The centre is that of a solver that moves weight between pairs of rows until none violates its conditions."""
    rows = normal(count, 2, seed)
    K, C = kernel(rows, rows), 1.0 / (count * rate)
    np.testing.assert_allclose(distances(K, solve(K, C).weights), distances(K, by_pairs(K, C)), atol=1e-9)


@given(seeds, st.integers(2, 80), st.sampled_from(KERNELS), st.floats(0.01, 1.0), st.booleans(), st.booleans())
def test_the_conditions_hold_whatever_the_rows(seed, count, kernel, rate, has_copies, is_rounded):
    """Weights and radius keep the conditions of Karush, Kuhn and Tucker to 1e-8, with copies, ties and singular matrices too."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 2))
    rows = rows[rng.integers(0, count, count)] if has_copies else rows
    rows = np.round(rows) if is_rounded else rows
    K, C = kernel(rows, rows), 1.0 / (count * rate)
    found = solve(K, C)
    assert found.is_settled
    norm = found.weights @ K @ found.weights
    assert violation(K, C, found.weights, norm + found.level) <= 1e-8 * size(K)


@given(seeds, st.integers(2, 40), st.sampled_from(KERNELS), st.floats(0.02, 1.0))
def test_any_start_leads_to_the_same_sphere(seed, count, kernel, rate):
    """A start that is far from the solution, or not feasible, changes neither the centre nor the radius."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 2))
    K, C = kernel(rows, rows), 1.0 / (count * rate)
    start = rng.choice([0.0, C, rng.random() * C], size=count)
    cold, warm = solve(K, C), solve(K, C, start)
    np.testing.assert_allclose(distances(K, warm.weights), distances(K, cold.weights), atol=1e-6 * size(K))
    assert violation(K, C, warm.weights, warm.weights @ K @ warm.weights + warm.level) <= 1e-8 * size(K)


def test_a_radius_that_is_left_open_lies_midway():
    """Where every row has weight 0 or C, the sphere lies midway between those inside and those outside."""
    found = Solution(np.array([0.5, 0.5, 0.0]), np.array([-3.0, -2.0, -1.0]), 0.5, 0, is_settled=True)
    assert len(found.free) == 0
    assert found.level == 1.5
    assert found._replace(weights=np.full(3, 0.5)).level == 1.0


@pytest.mark.parametrize(("width", "rate"), [(0.05, 0.05), (1.0, 0.2), (2.0, 0.05)])
def test_many_rows_on_the_sphere_are_freed_together(width, rate):
    """Where most of 400 rows end up on the sphere, as with a narrow kernel, no more than a step for every fourth row is taken."""
    rows = normal(400, 8)
    found = solve(RBF(width)(rows, rows), 1.0 / (400 * rate))
    assert found.is_settled
    assert len(found.free) > 100
    assert found.steps <= 100


@pytest.mark.parametrize("width", [0.3, 1.0, 1.4, 3.0])
@pytest.mark.parametrize("has_copies", [False, True])
def test_many_rows_that_are_free_from_the_start_stay_exact(width, has_copies):
    """With 300 rows free at once, and K near to the unit matrix, ill-conditioned or singular, the conditions hold to 1e-8."""
    rows = normal(300, 8)
    rows = rows[np.arange(300) % 200] if has_copies else rows
    K = RBF(width)(rows, rows)
    found = solve(K, 1.0, np.linspace(0.5, 1.4, 300) / 300)
    assert found.is_settled
    assert violation(K, 1.0, found.weights, found.weights @ K @ found.weights + found.level) <= 1e-10


def test_many_rows_that_nothing_parts_share_what_is_lacking():
    """Where all rows are equally far from each other, the weight that a start lacks is spread evenly."""
    np.testing.assert_allclose(solve(np.eye(150), 1.0, np.full(150, 0.5 / 150)).weights, 1.0 / 150, rtol=1e-14)


def test_a_solution_is_a_start_that_takes_no_step():
    """From its own weights a solution is found again at once, with the same bits."""
    rows = normal(80)
    K = RBF(2.0)(rows, rows)
    first = solve(K, 0.1)
    second = solve(K, 0.1, first.weights)
    assert second.steps == 0
    np.testing.assert_array_equal(second.weights, first.weights)


def test_a_matrix_that_is_no_kernels_is_refused():
    """A matrix with a negative eigenvalue among the rows on the sphere is a KernelError, not an endless descent."""
    K = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
    with pytest.raises(KernelError, match="positive semi-definite"):
        solve(K, 10.0, np.full(3, 0.3))
    with pytest.raises(KernelError, match="positive semi-definite"):
        solve(np.kron(np.eye(50), K), 10.0, np.full(150, 0.006) * np.linspace(0.5, 1.5, 150))


# SVDD


@pytest.mark.parametrize(
    ("name", "width", "rate"),
    [("svdd_s2", 2, 0.1), ("svdd_s5_f05", 5, 0.05), ("incsvdd_s1_f05", 1, 0.05), ("incsvdd_s5_f20", 5, 0.2)],
)
def test_the_toolbox_agrees(toolbox, name, width, rate):
    """Scores and threshold of dd_tools are met to 1e-9, by the batch and by the incremental form."""
    train, expected = toolbox("train2d.csv"), toolbox(f"{name}.csv")
    rows = np.concatenate([train, toolbox("test2d.csv")])
    for kind in (SVDD, IncrementalSVDD):
        model = kind(width=width, alarm_rate=rate).fit(train)
        np.testing.assert_allclose(model.score_samples(rows), expected[:, 0], rtol=1e-9)
        np.testing.assert_allclose(model.offset_, expected[0, 1], rtol=1e-9)


def test_one_output_of_the_toolbox_is_not_optimal(toolbox):
    """The sphere of incsvdd_s2.csv, spoilt by the start-up of the original, costs more than ours: R² + C · what lies outside."""
    train, C = toolbox("train2d.csv"), 1.0 / (40 * 0.1)
    theirs = -toolbox("incsvdd_s2.csv")
    ours = IncrementalSVDD(width=2, alarm_rate=0.1).fit(train)
    cost = -ours.offset_ + C * np.maximum(0.0, ours.offset_ - ours.score_samples(train)).sum()
    their_cost = theirs[0, 1] + C * np.maximum(0.0, theirs[:40, 0] - theirs[0, 1]).sum()
    assert their_cost > 1.001 * cost


@given(seeds, st.integers(10, 80), st.floats(0.03, 0.5))
def test_at_most_the_share_asked_for_lies_outside(seed, count, rate):
    """No more than n · alarm_rate of the rows learnt are flagged, and the weights tell which: those at C."""
    rows = normal(count, 2, seed)
    model = SVDD(alarm_rate=rate).fit(rows)
    flagged = model.predict(rows) == -1
    assert flagged.sum() <= count * rate + 1e-9
    assert (model.weights_[flagged] == model.C_).all()
    assert model.weights_.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=300)
@given(seeds, st.integers(2, 120), st.sampled_from(["auto", 0.5, 2.0, 20.0]), st.floats(0.02, 0.99), st.floats(0.3, 3.0))
def test_of_rows_with_copies_no_more_than_the_share_lies_outside(seed, count, width, rate, spread):
    """Rounded rows, many of them the same, are flagged no more often than asked for: n · alarm_rate at most, rounded down."""
    rows = np.round(spread * normal(count, 2, seed))
    for kind in (SVDD, OneClassSVM):
        flagged = kind(width=width, alarm_rate=rate).fit(rows).predict(rows) == -1
        assert flagged.sum() <= np.floor(count * rate + 1e-9)


@pytest.mark.parametrize("kind", [SVDD, OneClassSVM, IncrementalSVDD])
def test_one_row_apart_from_copies_is_the_only_alarm(kind):
    """Of 99 copies of a row and one other, the other alone is flagged, or none."""
    rows = np.r_[np.ones((99, 2)), [[1.0, 5.0]]]
    assert not (kind(alarm_rate=0.1).fit(rows).predict(rows) == -1)[:99].any()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(np.random.default_rng(0).poisson(2.0, (300, 2)), id="counts"),
        pytest.param(np.r_[np.ones((270, 2)), normal(30, 2)], id="nine copies in ten"),
        pytest.param(1e8 + 1e-3 * normal(300), id="far from the origin"),
    ],
)
def test_rows_on_the_boundary_are_accepted(kernel, rows):
    """A plane through many rows flags none of them by rounding: no more than n · alarm_rate, whatever libsvm's tolerance."""
    for tolerance in (1e-3, 1e-6):
        plane = OneClassSVM(kernel, alarm_rate=0.05, tol=tolerance).fit(rows)
        assert (plane.predict(rows) == -1).sum() <= 15


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "rational_quadratic", "linear", "polynomial", lambda X, Y: X @ Y.T + 1.0])
def test_scores_are_distances_in_the_kernels_space(kernel):
    """-score is ||φ(x) - centre||², for every kernel."""
    rows, fresh = normal(50), normal(20, seed=1)
    model = SVDD(kernel, alarm_rate=0.2).fit(rows)
    k = model._sphere.parameters.kernel
    seen, new = rows / model.scale_, fresh / model.scale_
    a = model.weights_
    expected = np.diag(k(new, new)) - 2.0 * k(new, seen) @ a + a @ k(seen, seen) @ a
    np.testing.assert_allclose(-model.score_samples(fresh), expected, rtol=1e-9, atol=1e-9)


def test_far_from_the_origin_a_linear_kernel_finds_the_same_sphere():
    """Rows moved by 10 000 have the same centre among them, and the same alarms."""
    rows = normal(60, 2)
    near, far = SVDD("linear", alarm_rate=0.1).fit(rows), SVDD("linear", alarm_rate=0.1).fit(rows + 1e4)
    np.testing.assert_allclose(far.weights_, near.weights_, atol=1e-5)
    np.testing.assert_array_equal(far.predict(rows + 1e4), near.predict(rows))


def test_the_smallest_sphere_around_two_rows_goes_through_both():
    """With a linear kernel and two rows the centre lies midway, and d is the squared distance from it."""
    model = SVDD("linear").fit([[0.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(model.weights_, [0.5, 0.5])
    np.testing.assert_allclose(-model.score_samples([[1.0, 0.0], [1.0, 3.0]]), [0.0, 9.0], atol=1e-12)
    np.testing.assert_array_equal(model.predict([[0.0, 0.0], [2.0, 0.0], [2.1, 0.0]]), [1, 1, -1])


@both
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_are_all_the_same_are_accepted(kind, kernel):
    """Copies of one row are a sphere of radius 0 or a plane through it: the row is accepted."""
    rows = np.ones((20, 2))
    model = kind(kernel).fit(rows)
    assert np.isfinite(model.score_samples(rows)).all()
    assert (model.decision_function(rows) >= -1e-6).all()


def test_what_cannot_be_is_said():
    """A C that leaves no weights, a parameter outside its range and a function that is no kernel are named."""
    rows = normal(40)
    with pytest.raises(InvalidParameterError, match=r"at least 1/40 = 0\.025"):
        SVDD(C=0.02).fit(rows)
    for wrong in ({"C": -1.0}, {"C": "large"}, {"width": 0.0}, {"alarm_rate": 1.0}, {"kernel": "none"}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            SVDD(**wrong).fit(rows)
    with pytest.raises(KernelError, match="not positive definite"):
        SVDD(lambda X, Y: -X @ Y.T).fit(rows)
    with pytest.raises(KernelError, match="overflows"):
        SVDD(Polynomial(8)).fit(rows * 1e60)
    with pytest.raises(InvalidRowsError, match="at least 2"):
        SVDD().fit(rows, np.where(np.arange(40) < 39, -1, 1))


@pytest.mark.parametrize("kind", [SVDD, OneClassSVM, IncrementalSVDD])
@pytest.mark.parametrize("kernel", [Polynomial(8), lambda X, Y: (X @ Y.T) ** 8])
def test_a_row_that_cannot_be_scored_is_named(kind, kernel):
    """Where k(x, y) overflows while scoring, the message says at which row, and no other row is scored either."""
    rows = normal(20)
    model = kind(kernel, alarm_rate=0.2).fit(rows)
    rows[13] = 1e60
    with np.errstate(over="ignore"), pytest.raises(KernelError, match="row 13"):
        model.predict(rows)


@pytest.mark.parametrize("kind", [SVDD, IncrementalSVDD])
def test_what_does_not_converge_says_so(kind, monkeypatch):
    """Weights that are not optimal come with scikit-learn's ConvergenceWarning, which says what to change."""
    monkeypatch.setattr(dual, "_STEPS_PER_ROW", 0)
    with pytest.warns(ConvergenceWarning, match="narrower width"):
        kind().fit(normal())


def test_p_values_count_training_distances():
    """A p-value is (1 + training rows at least as far out) / (n + 1), and falls as rows lie farther out."""
    model, fresh = SVDD(alarm_rate=0.1).fit(normal()), normal(20, seed=1)
    as_far = (-model.score_samples(normal()) >= -model.score_samples(fresh)[:, None]).sum(axis=1)
    np.testing.assert_array_equal(model.p_values(fresh), (1 + as_far) / 61)
    np.testing.assert_array_equal(model.training_distances_, np.sort(-model.score_samples(normal())))


def test_rows_on_the_sphere_are_accepted():
    """A row with a weight between 0 and C is as far from the centre as the radius, and never an alarm by rounding."""
    for seed in range(20):
        rows = normal(80, 2, seed)
        model = SVDD(alarm_rate=0.1).fit(rows)
        is_free = (model.weights_ > 0.0) & (model.weights_ < model.C_)
        decision = model.decision_function(rows)
        assert (model.predict(rows)[is_free] == 1).all()
        assert (np.abs(decision[is_free]) < 1e-10).all()
        assert (decision[model.weights_ == 0.0] >= -1e-10).all()


def test_a_higher_rate_makes_the_sphere_smaller():
    """The radius falls as more rows may lie outside, and so does the largest weight."""
    models = [SVDD(width=2.0, alarm_rate=rate).fit(normal(100)) for rate in (0.05, 0.1, 0.3, 0.6, 0.9)]
    assert (np.diff([-model.offset_ for model in models]) < 0.0).all()
    assert (np.diff([model.C_ for model in models]) < 0.0).all()


# The one-class SVM


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_machine_is_scikit_learns(rate):
    """Scores are those of scikit-learn's OneClassSVM with nu = alarm_rate, gamma = 1/width²; its offset is lower by about `tol`."""
    rows, fresh = normal(80), normal(30, seed=1)
    rows -= rows.mean(axis=0)
    ours = OneClassSVM(width=2.0, alarm_rate=rate).fit(rows)
    theirs = svm.OneClassSVM(gamma=0.25, nu=rate, tol=1e-6).fit(rows)
    np.testing.assert_allclose(ours.score_samples(fresh), theirs.score_samples(fresh), rtol=1e-6)
    assert 0.0 <= theirs.offset_[0] - ours.offset_ <= 2e-6
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_a_kernel_of_ours_gives_what_libsvms_own_gives():
    """A kernel handed to libsvm as a matrix gives the scores of the same kernel computed by libsvm."""
    rows, fresh = normal(80), normal(30, seed=1)
    ours = OneClassSVM("linear", alarm_rate=0.2, tol=1e-8).fit(rows + 3.0)
    theirs = svm.OneClassSVM(kernel="linear", nu=0.2, tol=1e-8).fit(rows + 3.0)
    np.testing.assert_allclose(ours.score_samples(fresh), theirs.score_samples(fresh), rtol=1e-4)


def test_sphere_and_plane_flag_the_same_rows():
    """Where k(x, x) is the same for all rows, SVDD and the one-class SVM part normal rows from others alike."""
    rows, fresh = normal(150), 2.0 * normal(400, seed=1)
    sphere, plane = SVDD(alarm_rate=0.13).fit(rows), OneClassSVM(alarm_rate=0.13, tol=1e-9).fit(rows)
    for each in (fresh, rows):
        np.testing.assert_array_equal(sphere.predict(each), plane.predict(each))


def test_parameters_of_the_machine_are_checked():
    """A width, a rate or a kernel outside its range is named before libsvm sees it, and a failed fit leaves nothing behind."""
    for wrong in ({"width": -1.0}, {"alarm_rate": 0.0}, {"kernel": "none"}, {"tol": -1.0}):
        model = OneClassSVM(**wrong)
        with pytest.raises(ValueError, match=next(iter(wrong))):
            model.fit(normal())
        assert not hasattr(model, "offset_")
        assert not hasattr(model, "n_features_in_")


def test_a_machine_that_is_stopped_early_says_so():
    """Too few steps of libsvm are scikit-learn's ConvergenceWarning."""
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        OneClassSVM(max_iter=2).fit(normal())
