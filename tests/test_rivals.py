"""Every classifier of the paper's tables: the contract, the toolbox's numbers, the formulas written literally, ugly rows."""

import numpy as np
import pytest
from pairs import normal
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.estimator_checks import parametrize_with_checks

import oneclass as oc
from oneclass import rivals
from oneclass.checks import yield_checks
from oneclass.errors import InvalidParameterError, InvalidRowsError, NoAlarmWarning, NotLearntError
from oneclass.rivals.bandwidth import likeliest_width, toolbox_width
from oneclass.rivals.neighbours import _likeliest_count
from oneclass.threshold import midway_threshold

EVERY = [getattr(rivals, name)() for name in rivals.__all__ if name != "Refitted"]
DEFAULTS = [each for each in EVERY if "SV" not in type(each).__name__]  # spheres and hyperplanes: tests/test_svdd.py
VARIANTS = [
    rivals.KNearest(k=5, method="delta"),
    rivals.KNearest(k=5, method="gamma"),
    rivals.Parzen(width="likeliest", threshold="training"),
    rivals.Gaussian(threshold="training"),
    rivals.KMeans(k=3, threshold="training"),
    rivals.PCA(components=1, threshold="training"),
    rivals.OCKELM(threshold="training"),
    rivals.GOCELM(scatter="within-class", threshold="training"),
    rivals.OnlineKernelPCA(window=150, threshold="training"),
    rivals.RandomFeatureBoundary(window=150, threshold="training"),
    rivals.RandomFeatureReconstruction(window=150),
    rivals.Refitted(rivals.KNearest(k=5)),
    rivals.Refitted(LocalOutlierFactor(novelty=True), window=None),
]
each_rival = pytest.mark.parametrize("rival", EVERY, ids=lambda rival: type(rival).__name__)


@pytest.mark.parametrize(("rival", "check"), [(each, check) for each in DEFAULTS + VARIANTS for check in yield_checks(each)])
def test_our_contract(rival, check):
    """Each check of `oneclass.checks` passes for every rival as it comes, and in its variants."""
    check(rival)


# Several of scikit-learn's checks fit ten rows or so, too few for any p-value of 0.05: the warning is then the right answer.
@pytest.mark.filterwarnings("ignore::oneclass.errors.NoAlarmWarning")
@parametrize_with_checks([*DEFAULTS, rivals.Refitted(rivals.KNearest(k=5))])
def test_scikit_learns_contract(estimator, check):
    """Each check of scikit-learn's `check_estimator` passes for every rival as it comes."""
    check(estimator)


# The toolbox


@pytest.mark.parametrize(
    ("file", "rival", "reads"),
    [
        ("gauss_dd_f05.csv", rivals.Gaussian(alarm_rate=0.05, threshold="training"), None),
        ("gauss_dd_f10.csv", rivals.Gaussian(alarm_rate=0.1, threshold="training"), None),
        ("parzen_dd_h05.csv", rivals.Parzen(width=0.5, alarm_rate=0.1, threshold="training"), np.exp),
        ("parzen_dd_ml.csv", rivals.Parzen(alarm_rate=0.1, threshold="training"), np.exp),
        ("nparzen_dd_ml.csv", rivals.NaiveParzen(alarm_rate=0.1, threshold="training"), np.exp),
        ("knndd_k3.csv", rivals.KNearest(k=3, alarm_rate=0.1), None),
        ("knndd_opt.csv", rivals.KNearest(k=1, alarm_rate=0.1), None),
        ("pca_dd_1.csv", rivals.PCA(components=1, alarm_rate=0.1, threshold="training"), None),
        ("pca_dd_09.csv", rivals.PCA(components=0.9, alarm_rate=0.1, threshold="training"), None),
        ("mpm_dd_s1.csv", rivals.MinimaxProbability(width=1.0, alarm_rate=0.1, threshold="training"), None),
        ("mpm_dd_s2_l3.csv", rivals.MinimaxProbability(width=2.0, regularisation=1e-3, alarm_rate=0.1, threshold="training"), None),
        (
            "mpm_dd_s2_rho.csv",
            rivals.MinimaxProbability(
                width=2.0, regularisation=1e-3, mean_uncertainty=0.1, covariance_uncertainty=0.2, threshold="training"
            ),
            None,
        ),
        ("elm_s2_C100.csv", rivals.OCKELM(width=2.0, C=100.0, alarm_rate=0.1, threshold="training"), None),
        ("elm_s1_C1_f05.csv", rivals.OCKELM(width=1.0, C=1.0, threshold="training"), None),
        ("elm_thr2_s2_C100.csv", rivals.OCKELM(width=2.0, C=100.0, threshold="mean-deviation"), None),
        ("aaelm_s2_C100.csv", rivals.AAKELM(width=2.0, C=100.0, alarm_rate=0.1, threshold="training"), None),
        ("aaelm_s1_C1_f05.csv", rivals.AAKELM(width=1.0, C=1.0, threshold="training"), None),
    ],
)
def test_the_toolboxs_numbers_are_met(toolbox, file, rival, reads):
    """Scores and threshold are those of dd_tools and of the authors' toolbox, to a relative 1e-10.

    The absolute 1e-25 is for distances that are 0 but for rounding: of rows to themselves, or from a subspace that holds all.
    """
    train, test = toolbox("train2d.csv"), toolbox("test2d.csv")
    expected = toolbox(file)
    fitted = rival.fit(train)
    found = np.column_stack([fitted.score_samples(np.vstack([train, test])), np.full(70, fitted.offset_)])
    np.testing.assert_allclose(found if reads is None else reads(found), expected, rtol=1e-10, atol=1e-25)


def test_the_toolboxs_centres_are_met_from_the_same_start(toolbox):
    """k-means from the toolbox's first three rows ends where the toolbox does."""
    train, test = toolbox("train2d.csv"), toolbox("test2d.csv")
    fitted = rivals.KMeans(k=3, start=train[:3], threshold="training", alarm_rate=0.1).fit(train)
    expected = toolbox("kmeans_dd_k3.csv")
    np.testing.assert_allclose(fitted.score_samples(np.vstack([train, test])), expected[:, 0], rtol=1e-10)
    assert fitted.offset_ == pytest.approx(expected[0, 1], rel=1e-10)


def test_the_toolboxs_choices_are_met(toolbox):
    """Widths are those of parzenml, and the number of neighbours that of knn_optk, once one alone is allowed."""
    train = toolbox("train2d.csv")
    assert toolbox_width(train) == pytest.approx(float(toolbox("parzenml_h.csv").squeeze()), rel=1e-12)
    np.testing.assert_allclose(rivals.NaiveParzen().fit(train).width_, toolbox("nparzenml_h.csv").ravel(), rtol=1e-12)
    squares = np.sort(((train[:, None] - train) ** 2).sum(axis=2), axis=1)[:, 1:]
    sums = (np.log(np.arange(1, 40)) - np.log(np.pi) - np.log(squares)).sum(axis=0)  # log k - log V - d log r, two features
    assert np.argmax(sums) + 1 == int(toolbox("knn_optk.csv").squeeze())
    assert _likeliest_count(squares, 2) == np.argmax(sums[1:]) + 2


def test_the_toolboxs_width_is_not_the_likeliest(toolbox):
    """parzenml ends at .333 where the rows, each given the others, are likeliest at .247: the log-likelihoods say so."""
    train = toolbox("train2d.csv")
    squares = ((train[:, None] - train) ** 2).sum(axis=2) + np.diag(np.full(40, np.inf))

    def likelihood(h):
        return np.log(np.exp(-squares / (2 * h * h)).sum(axis=1) / h**2).sum()

    best = likeliest_width(train)
    assert best == pytest.approx(0.24674, abs=1e-5)
    assert likelihood(best) > max(likelihood(0.99 * best), likelihood(1.01 * best), likelihood(toolbox_width(train)) + 1.0)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.1, 0.14, 0.15, 0.25, 0.5, 0.9, 0.95, 1.0])
def test_the_toolboxs_threshold_is_met(toolbox, rate):
    """Of the distances 1 to 10 the rate parts those that dd_threshold parts."""
    rates, thetas = toolbox("dd_threshold_1to10.csv")
    theta = float(thetas[np.argmin(np.abs(rates - rate))])
    from_above = midway_threshold(np.arange(1.0, 11.0), 1.0 - rate)
    assert from_above == theta


# Literal formulas


def test_minus_score_is_the_formula():
    """Distances are what the docstrings say, written down once more for one row."""
    X, x = normal(60), np.array([0.3, -1.0, 2.0])
    squares = ((X - x) ** 2).sum(axis=1)
    nearest = X[np.argsort(squares)[:4]]
    weights = np.exp(-squares / (2 * 0.7**2)) / (0.7 * np.sqrt(2 * np.pi)) ** 3
    columns = np.exp(-((X - x) ** 2) / (2 * 0.7**2)) / (0.7 * np.sqrt(2 * np.pi))
    expected = {
        rivals.KNearest(k=4): np.sort(squares)[3],
        rivals.KNearest(k=4, method="gamma"): np.sort(squares)[:4].mean(),
        rivals.KNearest(k=4, method="delta"): ((nearest.mean(axis=0) - x) ** 2).sum(),
        rivals.Parzen(width=0.7): -np.log(weights.mean()),
        rivals.NaiveParzen(width=0.7): -np.log(columns.mean(axis=0)).sum(),
    }
    for rival, distance in expected.items():
        assert -rival.fit(X).score_samples(x[None])[0] == pytest.approx(distance, rel=1e-12), rival


def test_kernel_pca_is_hoffmanns():
    """The distance is what lies outside the leading directions of the centred kernel matrix, spelt out with eigh."""
    X, Z = normal(60), 2.0 * normal(5, seed=1)
    K, k = (np.exp(-((rows[:, None] - X) ** 2).sum(axis=2) / 4.0) for rows in (X, Z))
    centre = np.eye(60) - 1 / 60
    values, vectors = np.linalg.eigh(centre @ K @ centre)
    alpha = vectors[:, -10:] / np.sqrt(values[-10:])
    projections = (k - K.mean(axis=1) - k.mean(axis=1)[:, None] + K.mean()) @ alpha
    expected = 1.0 - 2.0 * k.mean(axis=1) + K.mean() - (projections**2).sum(axis=1)
    np.testing.assert_allclose(-rivals.OnlineKernelPCA(width=2.0, components=10).fit(X).score_samples(Z), expected, rtol=1e-10)


def test_without_weight_the_graph_says_nothing():
    """GOCELM with weight 0 is OCKELM, and with weight its outputs differ less between rows that belong together."""
    X, asked = normal(80), {"width": 1.5, "C": 100.0}
    plain = rivals.OCKELM(**asked).fit(X)
    np.testing.assert_allclose(rivals.GOCELM(weight=0.0, **asked).fit(X).score_samples(X), plain.score_samples(X), rtol=1e-9)
    for scatter in ("laplacian", "within-class"):
        spread = [np.ptp(rivals.GOCELM(scatter=scatter, weight=w, **asked).fit(X).score_samples(X)) for w in (0.0, 1e4)]
        assert spread[1] < spread[0]


@pytest.mark.parametrize("kind", [rivals.RandomFeatureBoundary, rivals.RandomFeatureReconstruction])
@pytest.mark.parametrize("activation", ["fourier", "sigmoid"])
def test_sums_are_the_recursion_of_os_elm(kind, activation):
    """Chunk by chunk without a window the weights are those of P ← P - P Hᵀ(I + H P Hᵀ)⁻¹ H P, β ← β + P Hᵀ(T - Hβ)."""
    X, asked = normal(220), {"nodes": 20, "C": 10.0, "activation": activation, "width": 3.0}
    model, parts = kind(**asked).fit(X[:160]), (X[:160], X[160:180], X[180:181], X[181:])
    hidden = [model._hidden(part / model.scale_) for part in parts]
    targets = [model._framework.targets(part / model.scale_) for part in parts]
    P = np.linalg.inv(hidden[0].T @ hidden[0] + np.eye(20) / 10.0)
    beta = P @ hidden[0].T @ targets[0]
    for H, T in zip(hidden[1:], targets[1:], strict=True):
        P = P - P @ H.T @ np.linalg.inv(np.eye(len(H)) + H @ P @ H.T) @ H @ P
        beta = beta + P @ H.T @ (T - H @ beta)
    for part in parts[1:]:
        model.partial_fit(part)
    np.testing.assert_allclose(model._beta, beta, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", [rivals.RandomFeatureBoundary, rivals.RandomFeatureReconstruction])
def test_left_out_distances_of_random_features_are_exact(kind):
    """Those that θ rests on are the distances of each row from a fit without it, nodes and scale being the same."""
    X = normal(40)
    model = kind(nodes=15, width=3.0, C=5.0).fit(X)
    H, T = model._hidden(X), model._framework.targets(X)
    found = []
    for row in range(40):
        others = np.arange(40) != row
        beta = np.linalg.solve(H[others].T @ H[others] + np.eye(15) / 5.0, H[others].T @ T[others])
        found.append(float(np.sum((T[row] - H[row] @ beta) ** 2)))
    expected = np.sort(np.sqrt(found) if kind is rivals.RandomFeatureBoundary else found)
    np.testing.assert_allclose(model.training_distances_, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [rivals.RandomFeatureBoundary, rivals.RandomFeatureReconstruction])
def test_many_random_features_are_the_kernel_model(kind):
    """With thousands of nodes the scores come near those of the model with the kernel they stand for."""
    X, fresh = normal(80), normal(200, seed=1)
    exact = (oc.KernelBoundary if kind is rivals.RandomFeatureBoundary else oc.KernelReconstruction)(width=3.0, C=1.0).fit(X)
    many = kind(nodes=4000, width=3.0).fit(X)
    assert np.corrcoef(many.score_samples(fresh), exact.score_samples(fresh))[0, 1] > 0.99


def test_the_map_lays_itself_over_the_rows():
    """The prototypes end among the rows, near all of them, and neighbours in the grid near each other."""
    X = np.random.default_rng(0).uniform(size=(400, 2))
    fitted = rivals.SelfOrganisingMap().fit(X)
    grid = fitted.prototypes_.reshape(5, 5, 2)
    assert (fitted.prototypes_ > 0).all()
    assert (fitted.prototypes_ < 1).all()
    assert np.sqrt(-fitted.score_samples(X)).max() < 0.3
    steps = np.concatenate([np.diff(grid, axis=0).reshape(-1, 2), np.diff(grid, axis=1).reshape(-1, 2)])
    assert np.linalg.norm(steps, axis=1).max() < 0.7


def test_a_network_returns_what_lies_on_a_curve():
    """Rows beside the curve that the training rows lie on have larger distances than any on it."""
    along = np.linspace(-1.0, 1.0, 300)
    curve = np.column_stack([along, along**2])
    fitted = rivals.AutoEncoder(hidden=4).fit(curve + 0.01 * normal(300, features=2))
    off = fitted.score_samples([[0.0, 0.7], [0.0, -0.4], [0.9, 0.1]])
    assert off.max() < fitted.score_samples(curve).min()


# Thresholds


@each_rival
def test_about_the_asked_share_of_new_rows_is_flagged(rival):
    """Of fresh normal rows between a third of the asked tenth and a quarter are alarms (mean of 5 draws of 300 rows)."""
    shares = []
    for seed in range(5):
        fitted = clone(rival).set_params(alarm_rate=0.1).fit(normal(300, features=4, seed=seed))
        shares.append(float(np.mean(fitted.predict(normal(1000, features=4, seed=100 + seed)) == -1)))
    assert 0.03 <= np.mean(shares) <= 0.25, shares


@pytest.mark.parametrize(
    "rival",
    [rivals.KMeans(), rivals.SelfOrganisingMap(), rivals.AutoEncoder(), rivals.OCKELM(threshold="leave-one-out")],
    ids=lambda rival: type(rival).__name__,
)
def test_held_out_distances_keep_the_rate(rival):
    """With distances of rows that were not learnt, 8 to 12 % of fresh rows are flagged at an asked 10 %, and by their p-values."""
    shares = []
    for seed in range(10):
        fitted = clone(rival).set_params(alarm_rate=0.1).fit(normal(300, features=2, seed=seed))
        fresh = normal(1000, features=2, seed=100 + seed)
        np.testing.assert_array_equal(fitted.predict(fresh) == -1, fitted.p_values(fresh) <= 0.1)
        shares.append(float(np.mean(fitted.predict(fresh) == -1)))
    assert 0.08 <= np.mean(shares) <= 0.12, shares


def test_features_out_of_proportion_are_counted():
    """AAKELM's third threshold counts the features that are off by more than half of their sum with what was expected."""
    X = normal(100) + 10.0
    fitted = rivals.AAKELM(threshold="feature-count", alarm_rate=0.34, width=5.0, C=1e4).fit(X)
    assert fitted.offset_ == -1.0
    row = X[:1].copy()
    assert fitted.score_samples(row)[0] == 0.0
    row[0, 1] = -10.0
    off = np.abs(row - fitted.model_.expected(row)) / np.abs(row + fitted.model_.expected(row)) > 0.5
    assert fitted.score_samples(row)[0] == -off.sum() < 0.0


# Ugly rows


@each_rival
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(np.repeat(normal(2), 10, axis=0), id="two rows, ten times each"),
        pytest.param(np.column_stack([normal(40), np.full(40, 1e6)]), id="a constant feature"),
        pytest.param(normal(30, features=1), id="one feature"),
        pytest.param(normal(20, features=40), id="fewer rows than features"),
        pytest.param(normal(40) * [1.0, 1e-6, 1e6], id="wild scales"),
        pytest.param(normal(40) + 1e8, id="far from the origin"),
        pytest.param(np.full((20, 3), 7.0), id="the same row throughout"),
        pytest.param(normal(2), id="two rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::oneclass.errors.NoAlarmWarning")
def test_ugly_rows_are_learnt(rival, rows):
    """Copies, constants, few rows and wild units give finite scores, and most of what was learnt is accepted."""
    fitted = clone(rival).fit(rows)
    assert np.isfinite(fitted.score_samples(rows)).all()
    assert np.mean(fitted.predict(rows) == 1) >= 0.5


def test_far_rows_keep_their_order_without_densities():
    """Where every density is 0 in floats, its logarithm still tells far from farther."""
    fitted = rivals.NaiveParzen().fit(normal(50))
    scores = fitted.score_samples(np.array([[1e3] * 3, [1e4] * 3, [1e5] * 3]))
    assert scores[0] > scores[1] > scores[2] > -np.inf
    assert (fitted.predict(np.full((1, 3), 1e4)) == -1).all()


@pytest.mark.parametrize(
    ("rival", "message"),
    [
        (rivals.KNearest(k=0), "k=0"),
        (rivals.KNearest(k=60), "60 rows have 59 neighbours"),
        (rivals.KNearest(method="theta"), "'kappa', 'delta', 'gamma'"),
        (rivals.Parzen(width=-1.0), "width=-1.0"),
        (rivals.NaiveParzen(width="silverman"), "'auto' or 'likeliest'"),
        (rivals.Gaussian(regularisation=2.0), "regularisation=2.0"),
        (rivals.KMeans(start=np.zeros((3, 2))), r"start has shape \(3, 2\)"),
        (rivals.KMeans(threshold="loose"), "'training', 'held-out'"),
        (rivals.SelfOrganisingMap(epochs=(1,)), "are not of one length"),
        (rivals.PCA(components=1.5), "components=1.5"),
        (rivals.MinimaxProbability(regularisation=0.0), "regularisation=0.0"),
        (rivals.AutoEncoder(hidden=0), "hidden=0"),
        (rivals.OCKELM(threshold="feature-count"), "'training', 'mean-deviation', 'leave-one-out'"),
        (rivals.AAKELM(C=0.0), "C=0.0"),
        (rivals.GOCELM(scatter="total"), "'laplacian' or 'within-class'"),
        (rivals.GOCELM(weight=-1.0), "weight=-1.0"),
        (rivals.OnlineKernelPCA(components=60), "60 rows spread in 59 directions"),
        (rivals.OnlineKernelPCA(window=1), "window=1"),
        (rivals.RandomFeatureBoundary(nodes=0), "nodes=0"),
        (rivals.RandomFeatureBoundary(activation="relu"), "'fourier', 'sigmoid'"),
        (rivals.Refitted(DBSCAN()), "cannot be refitted"),
        (rivals.Gaussian(alarm_rate=0.0), "alarm_rate=0.0"),
    ],
)
def test_parameters_out_of_range_are_refused(rival, message):
    """The message says what was wrong, with the value, and what may be."""
    with pytest.raises(InvalidParameterError, match=message):
        rival.fit(normal(60))


@pytest.mark.parametrize(
    "rival",
    [
        rivals.RandomFeatureBoundary(C=1e18),
        rivals.MinimaxProbability(regularisation=1e-18),
        rivals.Gaussian(regularisation=0.0),
    ],
    ids=repr,
)
def test_what_cannot_be_solved_says_what_to_change(rival):
    """A matrix that float64 cannot factorise is an error of ours, and leaves the detector as it was."""
    rows = np.column_stack([normal(60), normal(60)])
    with pytest.raises(InvalidParameterError, match="more regularisation is needed"):
        rival.fit(rows)
    assert not hasattr(rival, "offset_")


@pytest.mark.parametrize("unit", [1e-90, 1e90])
@pytest.mark.parametrize("rival", [rivals.Parzen(), rivals.NaiveParzen(), rivals.Parzen(width="likeliest")], ids=repr)
def test_densities_know_no_unit(rival, unit):
    """In units so small or so large that squares are no numbers, the same rows are alarms."""
    X, fresh = normal(60), 2.0 * normal(40, seed=1)
    plain, scaled = (clone(rival).fit(X * each).predict(fresh * each) for each in (1.0, unit))
    np.testing.assert_array_equal(scaled, plain)


@pytest.mark.parametrize("rival", [rivals.KMeans(), rivals.Parzen(), rivals.OCKELM(), rivals.OnlineKernelPCA()], ids=repr)
def test_too_few_rows_for_the_rate_are_told(rival):
    """Where no p-value can be as small as the rate, θ is infinite, and that is said."""
    with pytest.warns(NoAlarmWarning, match="10 rows are too few for alarm_rate=0.05"):
        clone(rival).fit(normal(10))


@each_rival
def test_the_bad_cell_is_named(rival):
    """NaN is refused with its row and column, before and after learning, and nothing changes."""
    X = normal(60)
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(InvalidRowsError, match="row 7, column 2"):
        rival.fit(bad)
    with pytest.raises(NotLearntError, match=type(rival).__name__):
        type(rival)().score_samples(X)


# Saying that something did not converge


def test_a_network_that_has_not_settled_says_so():
    """Too few steps of L-BFGS: ConvergenceWarning with what to change."""
    with pytest.warns(ConvergenceWarning, match="after 3 of 3 steps: raise steps"):
        rivals.AutoEncoder(steps=3).fit(normal(60))


def test_centres_that_still_move_say_so():
    """Too few steps of Lloyd's iteration: ConvergenceWarning with what to change."""
    with pytest.warns(ConvergenceWarning, match="after 1 steps: raise steps"):
        rivals.KMeans(steps=1).fit(normal(200))


def test_a_half_space_that_cannot_hold_says_so():
    """Where uncertainty leaves no half-space: ConvergenceWarning, and scores that still rise with normality."""
    model = rivals.MinimaxProbability(mean_uncertainty=1e3)
    with pytest.warns(ConvergenceWarning, match="mean_uncertainty=1000"):
        model.fit(normal(60))
    assert model.score_samples([[0.0] * 3])[0] > model.score_samples([[9.0] * 3])[0]


# Names


def test_every_rival_has_a_name_in_the_paper():
    """`by_name` knows the paper's names and ours, whatever their capitals, and says which there are."""
    assert rivals.by_name("knndd") is rivals.KNearest
    assert rivals.by_name("ockelm") is rivals.OCKELM
    assert rivals.by_name("Refitted") is rivals.Refitted
    assert {each.__name__ for each in rivals.PAPER_NAMES.values()} | {"Refitted"} == set(rivals.__all__)
    with pytest.raises(InvalidParameterError, match=r"no classifier 'lof'.*knndd.*KNearest"):
        rivals.by_name("lof")
