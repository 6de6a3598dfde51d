"""The sliding models equal the paper, written literally, on their last window: every kernel, both models, any chunks."""

import warnings
from copy import copy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import reference
from pairs import MODELS, both_models, both_names, both_rules, every_twin, learn_in_chunks, normal
from scipy.linalg import cho_factor, cho_solve

from oneclass import KernelBoundary, KernelReconstruction, Watcher
from oneclass.errors import InvalidParameterError, NoAlarmWarning
from oneclass.inverse import RingInverse
from oneclass.kernels import Polynomial, RationalQuadratic
from oneclass.normality import in_window

C = 10.0
WAYS = {
    "window not yet full": (60, [20, 11, 9]),
    "window just filled": (40, [25, 15, 10]),
    "chunk larger than the window": (25, [21, 30, 5]),
    "chunk as large as the window": (25, [25, 25]),
    "first chunk larger than the window": (25, [60, 4]),
    "chunk over the end while it fills": (40, [30, 20, 7]),
    "one row by the factor": (30, [30] + [1] * 35),
    "one row by the inverse": (40, [40] + [1] * 90),
    "two rows by the inverse": (80, [80] + [2] * 50),
    "sizes that change": (50, [50, 1, 7, 49, 1, 1, 50, 51, 3, 20, 1]),
    "window no multiple of the chunk": (50, [50] + [15] * 7),
    "several blocks": (230, [230, 40, 7, 115, 40, 200, 3]),
    "several blocks, by the inverse": (230, [230, 40, 5, 5, 5, 1, 1]),
    "no window": (None, [20, 1, 15, 30]),
    "no window, one row after the other": (None, [1] * 25),
}
every_way = pytest.mark.parametrize(("window", "chunks"), WAYS.values(), ids=WAYS.keys())


def assert_equal_to_the_twin(model, twin, name):
    """Distances anywhere and in the window, thresholds, p-values: all those of the naive fit of the window."""
    window = model.window_
    naive = reference.fit(window, twin, model.C, name)
    fresh = np.concatenate([normal(15, seed=8), 3 * normal(10, seed=9)])
    d = reference.distances(naive, fresh)
    left_out = reference.leave_one_out_distances(naive)
    np.testing.assert_allclose(model.score_samples(fresh), -d, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.score_samples(window), -reference.training_distances(naive), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.p_values(fresh), reference.p_values(left_out, d), rtol=1e-12)
    if model.threshold == "training":
        theta = reference.training_threshold(reference.training_distances(naive), model.alarm_rate)
    else:
        theta = reference.leave_one_out_threshold(left_out, model.alarm_rate)
    np.testing.assert_allclose(model.offset_, -theta, rtol=1e-7)
    np.testing.assert_array_equal(model.predict(fresh), np.where(d <= theta, 1, -1))


@every_way
@every_twin
@both_names
def test_a_slid_model_is_the_naive_fit_of_its_window(name, chosen, twin, window, chunks):
    """However rows were chunked, the window is the last rows, and scores, θ and p-values are those of a naive fit of it."""
    rows = reference.rows_with_copies(sum(chunks), features=3, seed=5)
    for rule in ("leave-one-out", "training"):
        model = MODELS[name](**chosen, C=C, alarm_rate=0.1, threshold=rule, window=window)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoAlarmWarning)  # a window that begins with one row
            learn_in_chunks(model, rows, chunks)
        np.testing.assert_array_equal(model.window_, rows if window is None else rows[-window:])
        assert_equal_to_the_twin(model, twin, name)


@every_twin
@both_names
@both_rules
def test_a_fit_is_the_naive_fit(name, chosen, twin, rule):
    """`fit` of a batch gives the scores, θ and p-values of the naive fit."""
    rows = reference.rows_with_copies(70, features=3, seed=6)
    assert_equal_to_the_twin(MODELS[name](**chosen, C=C, alarm_rate=0.15, threshold=rule).fit(rows), twin, name)


@both_names
@pytest.mark.parametrize("regularisation", [1e-3, 1.0, 1e4])
def test_any_regularisation(name, regularisation):
    """The agreement holds from C = 1e-3 to 1e4, along the per-row inverse, over two turns of the ring."""
    rows = normal(140)
    model = MODELS[name](width=1.5, C=regularisation, alarm_rate=0.1, window=45).fit(rows[:45])
    learn_in_chunks(model, rows[45:], [1] * 95)
    naive = reference.fit(rows[-45:], lambda X, Y: reference.rbf(X, Y, 1.5), regularisation, name)
    np.testing.assert_allclose(model.score_samples(rows), -reference.distances(naive, rows), rtol=1e-6, atol=1e-9)


@both_models
def test_the_path_is_chosen_by_a_fixed_rule(model):
    """Single rows take the explicit inverse from a window of 40 rows on, up to C = 1e4, and with the fourth of them in a row."""

    def takes_the_inverse(window, C, chunks):
        slid = learn_in_chunks(model(width=1.5, C=C, window=window).fit(normal(window)), normal(sum(chunks), seed=1), chunks)
        return slid._sliding.inverse is not None

    assert takes_the_inverse(40, 1e4, [1] * 4)
    assert takes_the_inverse(80, 1.0, [2] * 4)
    assert takes_the_inverse(80, 1.0, [2, 1, 1, 2, 1, 1, 2])
    assert not takes_the_inverse(80, 1.0, [2] * 3)
    assert not takes_the_inverse(80, 1.0, [1, 1, 1, 3, 1, 1, 1])
    assert not takes_the_inverse(39, 1.0, [1] * 9)
    assert not takes_the_inverse(80, 1.0, [3] * 9)
    assert not takes_the_inverse(40, 1.1e4, [1] * 9)


def test_chunks_of_few_and_of_many_in_turns_pay_for_no_inverse(monkeypatch):
    """Where a chunk of few rows comes between chunks of many, no inverse is computed that the next one would throw away."""
    made = []
    afresh = RingInverse.afresh
    monkeypatch.setattr(RingInverse, "afresh", lambda *given: made.append(1) or afresh(*given))
    learn_in_chunks(KernelBoundary(width=1.5, C=1.0, window=80).fit(normal(80)), normal(120, seed=1), [1, 1, 1, 9] * 10)
    assert not made


@both_rules
@both_models
def test_at_most_the_asked_share_of_training_rows_is_flagged(model, rule):
    """Exactly ⌊η n⌋ in-window distances lie strictly above the training θ, and ⌊η (n + 1)⌋ - 1 left-out ones above the other."""
    for n in (19, 20, 50, 99, 100):
        for rate in (0.05, 0.1, 0.29):
            fitted = model(width=1.5, C=1.0, alarm_rate=rate, threshold=rule).fit(normal(n, seed=n))
            now = fitted._sliding.now
            allowed = int(Fraction(str(rate)) * n)
            if rule == "training":
                assert (in_window(now.framework, now.ridge, now.beta) > now.threshold).sum() == allowed
            else:
                assert (now.left_out > now.threshold).sum() == max(0, int(Fraction(str(rate)) * (n + 1)) - 1)


@both_models
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.29, 0.5])
def test_an_alarm_is_a_p_value_of_at_most_the_alarm_rate(model, rate):
    """With the leave-one-out threshold a row is flagged exactly when its p-value is at most alarm_rate, however far out it is."""
    fresh = np.linspace(0.0, 2.5, 400)[:, None] * np.ones(3)
    for n in (20, 39, 40, 79):
        fitted = model(width=1.5, C=1.0, alarm_rate=rate).fit(normal(n, seed=n))
        alarms = fitted.predict(fresh) == -1
        assert 0 < alarms.sum() < 400
        np.testing.assert_array_equal(alarms, fitted.p_values(fresh) <= rate)


@both_models
def test_a_row_on_the_threshold_is_accepted(model):
    """A distance of exactly θ is no alarm: accepted iff d <= θ."""
    fitted, row = model().fit(normal(60)), normal(1, seed=3)
    distance = -fitted.score_samples(row)[0]
    for threshold, verdict in ((distance, 1), (np.nextafter(distance, 0.0), -1)):
        fitted._sliding.now = replace(fitted._sliding.now, threshold=threshold)
        assert fitted.predict(row) == [verdict]
        assert (fitted.decision_function(row)[0] >= 0) == (verdict == 1)


@both_models
def test_p_values_do_not_depend_on_the_threshold_rule(model):
    """The training threshold computes the same leave-one-out p-values, when they are asked for."""
    by_rule = [model(width=1.5, C=1.0, threshold=rule).fit(normal(60)) for rule in ("training", "leave-one-out")]
    np.testing.assert_allclose(*(fitted.p_values(2 * normal(50, seed=1)) for fitted in by_rule), rtol=1e-12)


@both_models
def test_too_few_rows_for_an_alarm_are_said_once(model):
    """While (n + 1) · alarm_rate < 1 the threshold is infinite, nothing is flagged, and one warning says how many rows it takes."""
    rows = normal(30)
    growing = model(alarm_rate=0.05)
    with pytest.warns(NoAlarmWarning, match="before 19 rows") as said:
        learn_in_chunks(growing, rows, [5, 5, 8])
    assert len(said) == 1
    assert growing.offset_ == -np.inf
    assert (growing.predict(100 * rows) == 1).all()
    assert (growing.decision_function(100 * rows) == np.inf).all()
    growing.partial_fit(rows[18:19])
    assert np.isfinite(growing.offset_)
    assert (growing.predict(100 * rows) == -1).any()


@both_models
def test_fit_says_again_that_rows_are_too_few(model):
    """Each `fit` is a new beginning, and warns again."""
    fitted = model()
    for _ in range(2):
        with pytest.warns(NoAlarmWarning):
            fitted.fit(normal(10))


@both_models
def test_labelled_anomalies_are_not_learnt(model):
    """Rows with y = -1 leave no trace; a chunk of nothing else changes nothing; any other label is learnt."""
    rows, y = normal(60), np.ones(60)
    y[::7] = -1
    some = model(window=40).fit(rows, y)
    np.testing.assert_array_equal(some.score_samples(rows), model(window=40).fit(rows[y == 1]).score_samples(rows))
    before = some.to_bytes()
    assert some.partial_fit(rows[:5], -np.ones(5)).to_bytes() == before
    np.testing.assert_array_equal(some.partial_fit(rows[:5], np.zeros(5)).window_[-5:], rows[:5])


@both_models
def test_automatic_parameters_are_chosen_until_enough_rows_are_learnt(model):
    """Width, C and scale are those of all rows learnt so far until 150 rows (or the window) are, and are then kept."""
    rows = normal(400) * [1.0, 10.0, 0.1] * np.linspace(1, 5, 400)[:, None]
    growing = learn_in_chunks(model(), rows, [20, 60, 70])
    batch = model().fit(rows[:150])
    assert (growing.width_, growing.C_) == (batch.width_, batch.C_)
    np.testing.assert_array_equal(growing.scale_, batch.scale_)
    growing.partial_fit(rows[150:])
    assert growing.width_ == batch.width_
    assert growing.fit(rows[300:]).width_ != batch.width_


@both_models
def test_automatic_parameters_are_scale_free(model):
    """With width="auto" the units of the features change nothing: rows times powers of two give the same bits."""
    rows, fresh, units = normal(80), 2 * normal(20, seed=1), np.array([1.0, 1024.0, 0.125])
    fitted, rescaled = model().fit(rows), model().fit(rows * units)
    np.testing.assert_array_equal(rescaled.score_samples(fresh * units), fitted.score_samples(fresh))
    np.testing.assert_array_equal(rescaled.scale_, fitted.scale_ * units)


def test_given_numbers_mean_raw_rows():
    """With a width of one's own nothing is scaled, and what was given is what is in force."""
    fitted = KernelBoundary(width=2.0, C=5.0).fit(normal(30) * [1.0, 100.0, 1.0])
    assert (fitted.width_, fitted.C_) == (2.0, 5.0)
    np.testing.assert_array_equal(fitted.scale_, np.ones(3))


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_a_kernel_without_a_width_says_so(kernel):
    """`width_` is NaN for kernels that have none, and C is balanced against the size of k(x, x)."""
    rows = 10 * normal(40)
    fitted = KernelReconstruction(kernel).fit(rows)
    twin = reference.linear if kernel == "linear" else reference.polynomial
    assert np.isnan(fitted.width_)
    assert pytest.approx(1 / np.diag(twin(rows, rows)).mean()) == fitted.C_


@both_models
def test_copies_and_constant_features_are_learnt(model):
    """A window of copies of one row, and a constant feature, are learnt like any other rows."""
    same = model(window=50).fit(np.full((50, 3), 7.0))
    learn_in_chunks(same, np.full((20, 3), 7.0), [1] * 20)
    assert same.predict(np.full((1, 3), 7.0)) == [1]
    constant = model().fit(np.column_stack([normal(60), np.full(60, 1e9)]))
    fresh = np.column_stack([normal(30, seed=1), np.full(30, 1e9)])
    assert np.isfinite(constant.score_samples(fresh)).all()
    assert (constant.predict(fresh) == 1).mean() > 0.7


@pytest.mark.parametrize(
    ("file", "name", "regularisation", "width", "rate"),
    [
        ("elm_s2_C100.csv", "boundary", 100.0, 2.0, 0.1),
        ("elm_s1_C1_f05.csv", "boundary", 1.0, 1.0, 0.05),
        ("aaelm_s2_C100.csv", "reconstruction", 100.0, 2.0, 0.1),
        ("aaelm_s1_C1_f05.csv", "reconstruction", 1.0, 1.0, 0.05),
    ],
)
def test_fit_meets_the_toolbox(toolbox, file, name, regularisation, width, rate):
    """`fit` gives the scores and the offset of the authors' toolbox to 1e-10."""
    train, test = toolbox("train2d.csv"), toolbox("test2d.csv")
    model = MODELS[name](width=width, C=regularisation, alarm_rate=rate, threshold="training").fit(train)
    scores, offset = toolbox(file).T
    np.testing.assert_allclose(model.score_samples(np.vstack([train, test])), scores, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.offset_, offset, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("prefix", "name"), [("elm", "boundary"), ("aaelm", "reconstruction")])
def test_sliding_meets_the_toolbox(toolbox, prefix, name):
    """Slid by chunks of five, θ and the test distances are those of the toolbox fitted on each window, to 1e-10."""
    train, test = toolbox("train2d.csv"), toolbox("test2d.csv")
    expected = toolbox(f"{prefix}_window20_chunk5_C10_s15_f05.csv")
    model = MODELS[name](width=1.5, C=10.0, alarm_rate=0.05, threshold="training", window=20).fit(train[:20])
    for step, column in enumerate(expected.T):
        if step:
            model.partial_fit(train[15 + 5 * step : 20 + 5 * step])
        np.testing.assert_allclose(-model.offset_, column[0], rtol=0, atol=1e-10)
        np.testing.assert_allclose(-model.score_samples(test), column[1:], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.window_, train[-20:])


@both_models
@both_rules
@pytest.mark.parametrize("chunks", [[1] * 10 + [30] + [1] * 5, [2] * 8 + [99] + [1] * 60, [1, 3, 1, 40, 1, 2, 1], [30, 1, 120, 1]])
def test_the_paths_take_turns(model, rule, chunks):
    """Single rows, then a chunk, then single rows again: after each the model is that of a fit of its window."""
    asked = {"width": 1.5, "C": 10.0, "alarm_rate": 0.1, "threshold": rule}
    rows = normal(100 + sum(chunks), seed=3)
    slid, done = model(**asked, window=100).fit(rows[:100]), 100
    for count in chunks:
        slid.partial_fit(rows[done : done + count])
        done += count
        fitted = model(**asked).fit(rows[done - 100 : done])
        np.testing.assert_allclose(slid.score_samples(rows[::9]), fitted.score_samples(rows[::9]), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(slid.offset_, fitted.offset_, rtol=1e-9)


@pytest.mark.parametrize("kernel", [Polynomial(2), RationalQuadratic(1.5) * Polynomial(1, 99.0)], ids=repr)
def test_the_path_depends_on_the_size_of_the_kernel(kernel):
    """The rule for the per-row path is C · k(x, x) <= 1e4, for kernels that are not 1 where rows are the same."""
    rows = normal(60)
    peak = kernel.peak(np.concatenate([rows[4:], normal(4, seed=1)]))
    for C, takes_the_inverse in ((0.99e4 / peak, True), (1.01e4 / peak, False)):
        slid = learn_in_chunks(KernelBoundary(kernel, C=C, window=60).fit(rows), normal(4, seed=1), [1] * 4)
        assert (slid._sliding.inverse is not None) == takes_the_inverse


@both_models
def test_near_copies_within_a_chunk_cost_no_retreat(model):
    """Two rows of a chunk that are almost the same are learnt one after the other by the inverse, which stays sound."""
    rows, fresh = normal(100), normal(20, seed=1)
    slid = model(width=2.0, C=1e4, window=100).fit(rows)
    for count, row in enumerate(fresh, 1):
        slid.partial_fit(np.stack([row, row + 1e-9]))
        assert (slid._sliding.inverse is not None) == (count >= 4)


@both_models
@pytest.mark.parametrize("d", [3, 8])
def test_many_blocks_are_refined_where_C_is_large(model, d):
    """At n = 400 and C = 1e8 the weights solve the regularised system as closely as a fresh factor's, to a factor of ten."""
    rows = reference.rows_with_copies(440, features=d, seed=2)
    slid = model(width=np.sqrt(2 * d), C=1e8, window=400).fit(rows[:400]).partial_fit(rows[400:])
    now = slid._sliding.now
    kernel, targets = now.parameters.kernel(now.scaled, now.scaled), now.framework.targets(now.scaled)

    def residual(beta):
        return np.abs(targets - kernel @ beta - (now.ridge * beta.T).T).max()

    fresh = cho_solve(cho_factor(kernel + np.diag(now.ridge), lower=True), targets)
    assert residual(now.beta) <= 10 * residual(fresh)


@both_models
def test_a_copy_learns_on_its_own(model):
    """`copy.copy` gives a model that shares nothing that is written to."""
    fitted = model(window=45).fit(normal(45)).partial_fit(normal(1, seed=1))
    before, copied = fitted.to_bytes(), copy(fitted)
    assert copied.to_bytes() == before
    copied.partial_fit(normal(3, seed=2))
    assert fitted.to_bytes() == before


@both_models
def test_a_warning_points_at_the_callers_line(model):
    """Whatever call says that rows are too few, the line that is shown is the caller's."""
    for call in (
        lambda: model().fit(normal(5)),
        lambda: model().partial_fit(normal(5)),
        lambda: Watcher(model(), warm_up=5).watch(normal(6)),
        lambda: model().fit(normal(30)).forget(range(20)),
    ):
        with pytest.warns(NoAlarmWarning) as said:
            call()
        assert [Path(each.filename).name for each in said] == [Path(__file__).name]


@both_models
def test_a_parameter_outside_its_range_shows_with_the_first_rows(model):
    """Not when a warm-up of days is over, nor when the first row is learnt at last."""
    with pytest.raises(InvalidParameterError, match="C=-1"):
        Watcher(model(C=-1)).watch(normal(5))
    with pytest.raises(InvalidParameterError, match="C=-1"):
        model(C=-1).partial_fit(normal(5), -np.ones(5))
