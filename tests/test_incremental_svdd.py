"""IncrementalSVDD: whatever comes and goes, the sphere is that of the rows held, and saved states go on with the same bits."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from svdd_oracle import by_enumeration, by_pairs, objective, violation

from oneclass import Watcher
from oneclass.errors import InvalidParameterError, InvalidRowsError, KernelError, NotLearntError, OneClassError, StateError
from oneclass.kernels import RBF, FunctionKernel, Laplacian, Linear, Polynomial
from oneclass.rivals import dual
from oneclass.rivals.dual import solve
from oneclass.rivals.incremental_svdd import IncrementalSVDD
from oneclass.rivals.svdd import SVDD
from oneclass.state import Envelope

KERNELS = [RBF(0.5), RBF(2.0), RBF(8.0), Laplacian(2.0), Linear(), Polynomial(2)]
RBF_OF_2 = RBF(2.0)


def rbf_of_2(X, Y):
    """A function kernel that is the RBF of width 2."""
    return RBF_OF_2(X, Y)


def normal(count=60, features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, features))


def alike(found, expected, rows=None, tolerance=1e-9):
    """Whether two detectors score rows alike and draw the line at the same place."""
    rows = 2.0 * normal(30, expected.n_features_in_, seed=9) if rows is None else rows
    size = np.abs(expected.score_samples(rows)).max()
    np.testing.assert_allclose(found.score_samples(rows), expected.score_samples(rows), atol=tolerance * size)
    np.testing.assert_allclose(found.offset_, expected.offset_, atol=tolerance * size)


def require_optimal(model, kernel):
    """The weights keep the conditions of the batch problem to 1e-8, and centre and radius are those of its solution."""
    K = kernel(model.window_, model.window_)
    size, weights = np.abs(K).max() or 1.0, model.weights_
    assert violation(K, model.C_, weights, -model.offset_) <= 1e-8 * size
    batch = solve(K, model.C_).weights
    np.testing.assert_allclose(2.0 * K @ (weights - batch), (weights @ K @ weights) - (batch @ K @ batch), atol=1e-6 * size)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.sampled_from([1, 1, 1, 2, 3, 7, 40])),
        st.tuples(st.just("forget"), st.integers(1, 4)),
    ),
    min_size=3,
    max_size=10,
)


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS),
    C=st.one_of(st.just("auto"), st.floats(0.05, 1.2)),
    rate=st.floats(0.02, 0.9),
    window=st.sampled_from([None, 20, 33]),
    has_copies=st.booleans(),
    todo=operations,
)
def test_every_state_is_the_solution_of_its_window(seed, kernel, C, rate, window, has_copies, todo):
    """Rows come in chunks of any size, and any leave: each state keeps the conditions to 1e-8 and is the batch solution."""
    rng = np.random.default_rng(seed)
    model = IncrementalSVDD(kernel, C=C, alarm_rate=rate, window=window)
    held = []
    for what, count in [("learn", 1), *todo]:
        if what == "learn":
            rows = rng.normal(size=(count, 2))
            rows = np.round(rows) if has_copies else rows
            model.partial_fit(rows)
            held = (held + list(rows))[-window if window else 0 :]
        elif count < len(held):
            gone = rng.choice(len(held), count, replace=False)
            model.forget(gone)
            held = [row for age, row in enumerate(held) if age not in gone]
        np.testing.assert_array_equal(model.window_, held)
        assert pytest.approx(max(1 / (len(held) * rate) if C == "auto" else C, 1 / len(held)), rel=1e-12) == model.C_
        require_optimal(model, kernel)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.22, 0.5))
def test_the_first_rows_are_weighed_right(seed, C):
    """From one row to ten, with the 1/C of 2 to 4.5 that the original starts wrongly, each state equals a slow solver's."""
    rows, model = normal(10, 2, seed), IncrementalSVDD(RBF_OF_2, C=C)
    for row in rows:
        model.partial_fit(row[None])
        K = RBF_OF_2(model.window_, model.window_)
        slow = by_pairs(K, model.C_)
        np.testing.assert_allclose(K @ model.weights_, K @ slow, atol=1e-9)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([RBF(0.5), RBF(1.0), RBF(2.0), Laplacian(2.0)]),
    st.floats(0.05, 0.9),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=8),
)
def test_every_state_equals_a_slow_solver(seed, kernel, rate, has_copies, todo):
    """Whatever was learnt and forgotten, distances and radius are those of weights moved between pairs of rows until none may."""
    rng = np.random.default_rng(seed)
    model = IncrementalSVDD(kernel, alarm_rate=rate, window=14).partial_fit(rng.normal(size=(9, 2)))
    for learnt, forgotten in todo:
        rows = rng.normal(size=(learnt, 2))
        model.partial_fit(np.round(rows) if has_copies else rows)
        held = len(model.window_)
        model.forget(rng.choice(held, min(forgotten, held - 1), replace=False))
        K = kernel(model.window_, model.window_)
        slow = by_pairs(K, model.C_)
        expected = 1.0 - 2.0 * K @ slow + slow @ K @ slow
        np.testing.assert_allclose(-model.score_samples(model.window_), expected, atol=1e-9)
        # Rounding of the slow solver's sums must not say that a row at a bound is on the sphere.
        slow = np.where(slow > (1.0 - 1e-9) * model.C_, model.C_, np.where(slow < 1e-9 * model.C_, 0.0, slow))
        assert violation(K, model.C_, slow, -model.offset_) <= 1e-8


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([RBF(0.5), RBF(2.0), RBF(8.0), Linear(), Polynomial(2)]),
    st.floats(0.1, 0.9),
    st.lists(st.booleans(), min_size=1, max_size=5),
)
def test_every_state_of_a_few_rows_equals_enumeration(seed, kernel, rate, todo):
    """Of up to five rows, learnt and forgotten one at a time, no way to put them inside, on and outside the sphere is better."""
    rng = np.random.default_rng(seed)
    model = IncrementalSVDD(kernel, alarm_rate=rate, window=5).partial_fit(rng.normal(size=(3, 2)))
    for is_learnt in todo:
        if is_learnt or len(model.window_) == 1:
            model.partial_fit(rng.normal(size=(1, 2)))
        else:
            model.forget([rng.integers(len(model.window_))])
        K = kernel(model.window_, model.window_)
        size, best = np.abs(K).max(), by_enumeration(K, model.C_)
        assert objective(K, model.weights_) <= objective(K, best) + 1e-9 * size
        expected = np.diag(K) - 2.0 * K @ best + best @ K @ best
        np.testing.assert_allclose(-model.score_samples(model.window_), expected, atol=1e-4 * size)


@pytest.mark.parametrize(("width", "features"), [(0.3, 8), (1.0, 8), (1.4, 8), (4.0, 50)])
@pytest.mark.parametrize("window", [None, 300])
def test_a_window_of_which_most_is_on_the_sphere_stays_exact(width, features, window):
    """With most of 300 rows on the sphere each state keeps the conditions to 1e-8, and after saving goes on with the same bits."""
    rows = normal(330, features)
    model = IncrementalSVDD(width=width, window=window).fit(rows[:300])
    other = IncrementalSVDD.from_bytes(model.to_bytes())
    for step, row in enumerate(rows[300:]):
        for each in (model, other):
            each.partial_fit(row[None])
            if step % 3 == 0:
                each.forget([0, 40])
        require_optimal(model, RBF(width))
        assert model.to_bytes() == other.to_bytes()
    assert ((model.weights_ > 0.0) & (model.weights_ < model.C_)).mean() > 0.5


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 30), min_size=1, max_size=12), st.floats(0.03, 0.5))
def test_the_cut_of_the_chunks_does_not_matter(seed, chunks, rate):
    """A stream cut anyhow ends in the sphere that `SVDD` fits to the last rows."""
    rows = normal(25 + sum(chunks), 2, seed)
    model = IncrementalSVDD(width=2.0, alarm_rate=rate, window=25).fit(rows[:25])
    for start, count in zip(25 + np.cumsum([0, *chunks[:-1]]), chunks, strict=True):
        model.partial_fit(rows[start : start + count])
    alike(model, SVDD(width=2.0, alarm_rate=rate).fit(rows[-25:]))
    np.testing.assert_array_equal(model.window_, rows[-25:])


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 2.0, 20.0]), st.floats(0.05, 0.6), st.floats(0.3, 2.0))
def test_of_rows_with_copies_no_more_than_the_share_lies_outside(seed, width, rate, spread):
    """On a stream of rounded rows each window has n · alarm_rate alarms at most, rounded down, and `SVDD` flags the same rows."""
    rows = np.round(spread * normal(60, 2, seed))
    model = IncrementalSVDD(width=width, alarm_rate=rate, window=20).fit(rows[:20])
    for row in rows[20:]:
        window = model.partial_fit(row[None]).window_
        flagged = model.predict(window) == -1
        assert flagged.sum() <= np.floor(20 * rate + 1e-9)
        np.testing.assert_array_equal(flagged, SVDD(width=width, alarm_rate=rate).fit(window).predict(window) == -1)


@given(st.integers(0, 2**32 - 1), st.sets(st.integers(0, 39), min_size=1, max_size=37))
def test_forget_is_fit_without(seed, gone):
    """Forgetting any rows leaves what a fit of the others gives, the automatic width, scale and C included."""
    rows = normal(40, 2, seed)
    rest = np.delete(rows, sorted(gone), axis=0)
    alike(IncrementalSVDD().fit(rows).forget(sorted(gone)), IncrementalSVDD().fit(rest))


@pytest.mark.parametrize(("run", "C", "width"), [(1, 0.5, 2), (2, 1, 2), (3, 1, 3), (4, 0.16, 8), (5, 0.22, 5)])
def test_the_windows_of_the_toolbox_agree(toolbox, run, C, width):
    """Five runs of dd_tools' inc_add and inc_remove: b, θ and test scores to 1e-9, weights to 1e-8, and every row on its side."""
    states, scores, weights = (toolbox(f"incsvdd_window_cfg{run}_{what}.csv") for what in ("state", "scores_test", "alpha"))
    train, test = toolbox("train2d.csv"), toolbox("test2d.csv")
    model = IncrementalSVDD(width=width, C=C).fit(train[:20])
    for step, theta, _, b, _, *sides in states:
        if step and len(model.window_) == 20:
            model.forget(range(5))
        if step.is_integer() and step:
            at = 15 + 5 * int(step)
            model.partial_fit(train[at : at + 5])
        a = model.weights_
        assert [((a > 0) & (a < C)).sum(), (a == C).sum(), (a == 0).sum()] == sides
        norm = a @ RBF(width)(model.window_, model.window_) @ a
        np.testing.assert_allclose(-model.offset_ - norm, b, rtol=1e-9)
        if step.is_integer():
            np.testing.assert_allclose(-model.offset_, theta, rtol=1e-9)
            np.testing.assert_allclose(-model.score_samples(test), scores[:, int(step)], rtol=1e-9)
    np.testing.assert_allclose(np.sort(model.weights_), np.sort(weights[:, -1]), atol=1e-8)


def test_the_automatic_width_is_kept_once_enough_is_learnt():
    """Width and scale are chosen with every chunk until the window is full once; `forget` may have them chosen again."""
    rows = normal(100)
    model = IncrementalSVDD(window=30)
    widths = [model.partial_fit(rows[at : at + 10]).width_ for at in range(0, 50, 10)]
    assert len(set(widths[:3])) == 3
    assert set(widths[2:]) == {widths[2]}
    kept = model.forget([29]).width_
    assert kept == widths[2]  # a row that had no part in the choice
    assert model.forget([0]).width_ != kept
    np.testing.assert_allclose(model.scale_, model.window_.std(axis=0))
    assert np.isnan(IncrementalSVDD("linear").fit(rows).width_)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 1e3, 1e6]))
def test_units_do_not_matter(seed, unit):
    """Rows and width in other units have the same weights, automatic parameters or not, and keep them on the way."""
    rows = normal(60, 2, seed)
    for given_width in ("auto", 2.0):
        widths = [given_width, given_width if given_width == "auto" else given_width * unit]
        here, there = (IncrementalSVDD(width=width, alarm_rate=0.1, window=40) for width in widths)
        here.fit(rows[:40]).partial_fit(rows[40:]).forget([3, 5])
        there.fit(unit * rows[:40]).partial_fit(unit * rows[40:]).forget([3, 5])
        np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-6)
        assert there.offset_ == pytest.approx(here.offset_, rel=1e-8)


def test_the_order_of_forgetting_does_not_matter():
    """Rows forgotten one by one, all at once, or in another order leave the same sphere; a mask does as well as indices."""
    start = [IncrementalSVDD(width=2.0, alarm_rate=0.1).fit(normal(50)) for _ in range(4)]
    for age in (40, 11, 3):
        start[0].forget(age)
    for age in (3, 10, 38):
        start[1].forget([age])
    start[2].forget([40, 3, 11])
    start[3].forget(np.isin(np.arange(50), [3, 11, 40]))
    for each in start:
        alike(each, SVDD(width=2.0, alarm_rate=0.1).fit(np.delete(normal(50), [3, 11, 40], axis=0)))


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5])
def test_a_radius_that_is_left_open_follows_the_rows_inside(rate):
    """Where no row is on the sphere, as with a very wide kernel and whole 1/C, its radius is the batch's after every row."""
    rows = normal(120, 2)
    model = IncrementalSVDD(width=500.0, alarm_rate=rate, window=20).fit(rows[:20])
    was_open = False
    for row in rows[20:]:
        model.partial_fit(row[None])
        was_open = was_open or np.isin(model.weights_, [0.0, model.C_]).all()
        batch = SVDD(width=500.0, alarm_rate=rate).fit(model.window_)
        assert model.offset_ == pytest.approx(batch.offset_, rel=1e-7)
    assert was_open


def test_a_long_stream_needs_no_more_memory_than_a_short_one():
    """The saved state of a window is its rows, two numbers for each and 2 KB, however long the stream was."""
    model = IncrementalSVDD(width=4.0, window=60).fit(normal(60, 4))
    for seed in range(40):
        model.partial_fit(normal(7, 4, seed))
    assert len(model.to_bytes()) <= 8 * 60 * (4 + 2) + 2000
    assert len(model._spheres._gram._room) <= 60


def test_a_number_for_C_waits_for_rows_enough():
    """Below 1/C rows each has the same weight, 1/n; from then on C is in force. A window that is always smaller is refused."""
    model = IncrementalSVDD(C=0.25).partial_fit(normal(2))
    assert model.C_ == 0.5
    np.testing.assert_allclose(model.weights_, 0.5)
    assert model.partial_fit(normal(8)).C_ == 0.25
    with pytest.raises(InvalidParameterError, match=r"at least 1/20 = 0\.05"):
        IncrementalSVDD(C=0.04, window=20).fit(normal())


def test_a_function_kernel_gives_what_the_kernel_gives():
    """A function of the user's is asked for the whole matrix each time, and learns and forgets as a built-in kernel does."""
    ours, theirs = IncrementalSVDD(rbf_of_2, window=30), IncrementalSVDD(RBF_OF_2, window=30)
    for model in (ours, theirs):
        model.fit(normal(40)).partial_fit(normal(3, seed=1)).forget([2, 5]).partial_fit(normal(9, seed=2))
    alike(ours, theirs)


def test_p_values_count_the_rows_held():
    """A p-value is (1 + rows held that lie as far out) / (n + 1), and follows the window."""
    model = IncrementalSVDD(window=30).fit(normal(30)).partial_fit(normal(5, seed=1) * 2.0)
    fresh = normal(10, seed=3)
    as_far = (-model.score_samples(model.window_) >= -model.score_samples(fresh)[:, None]).sum(axis=1)
    np.testing.assert_array_equal(model.p_values(fresh), (1 + as_far) / 31)
    np.testing.assert_array_equal(model.training_distances_, np.sort(-model.score_samples(model.window_)))


def test_a_stream_can_be_watched():
    """Under a `Watcher` it warms up, raises alarms for rows far away, and ends where the same rows learnt by hand end."""
    rows = normal(120)
    rows[100] = 9.0
    model = IncrementalSVDD(width=4.0, window=40)
    verdicts = Watcher(model, learn="all", chunk=10, warm_up=40).watch(rows)
    assert verdicts.alarm[100]
    assert np.isnan(verdicts.score[:40]).all()
    np.testing.assert_array_equal(model.window_, rows[-40:])
    alike(model, SVDD(width=4.0).fit(rows[-40:]))


@pytest.mark.parametrize("window", [None, 40])
def test_nothing_of_a_forgotten_row_stays(window):
    """After `forget`, neither the saved bytes nor the kernel matrix kept aside hold a number of the rows that are gone."""
    model = IncrementalSVDD(width=2.0, window=window).fit(normal(40)).partial_fit(normal(3, seed=1))
    gone = model.window_[[0, 17, 39]]
    model.forget([0, 17, 39])
    size, room = len(model.window_), model._spheres._gram._room
    slots = model._held.order
    np.testing.assert_array_equal(room[np.ix_(slots, slots)], RBF_OF_2(model.window_, model.window_))
    assert not room[size:].any()
    assert not room[:, size:].any()
    saved = model.to_bytes()
    assert all(number.tobytes() not in saved for number in gone.ravel())
    assert all(number.tobytes() in saved for number in model.window_.ravel())


# States


@pytest.mark.parametrize("kernel", ["rbf", "linear", Polynomial(2), rbf_of_2, FunctionKernel(rbf_of_2)])
@pytest.mark.parametrize("window", [None, 30])
def test_saved_states_go_on_with_the_same_bits(kernel, window):
    """Saved in mid-stream, by bytes or pickle, the detector goes on with the same bits: learning, forgetting, scoring."""
    model = IncrementalSVDD(kernel, alarm_rate=0.2, window=window).fit(normal(40)).partial_fit(normal(3, seed=1))
    function = rbf_of_2 if callable(kernel) else None
    others = [IncrementalSVDD.from_bytes(model.to_bytes(), kernel=function), pickle.loads(pickle.dumps(model)), copy.copy(model)]
    for step in range(12):
        for each in (model, *others):
            each.partial_fit(normal(1 + step % 3, seed=step))
            if step == 6:
                each.forget([1, 7])
        assert {each.to_bytes() for each in others} == {model.to_bytes()}
        for each in others:
            np.testing.assert_array_equal(each.score_samples(normal()), model.score_samples(normal()))


def test_the_names_of_the_features_are_saved():
    """Columns of a data frame are known again after `from_bytes`, and other columns are refused."""
    frame = pd.DataFrame(normal(), columns=list("abc"))
    restored = IncrementalSVDD.from_bytes(IncrementalSVDD().fit(frame).to_bytes())
    assert list(restored.feature_names_in_) == list("abc")
    with pytest.raises(InvalidRowsError, match="feature names"):
        restored.predict(frame[list("cba")])


def test_a_copy_goes_its_own_way():
    """What a copy learns changes nothing in the original, and the other way round."""
    model = IncrementalSVDD(width=2.0, window=30).fit(normal(30))
    other = copy.copy(model).partial_fit(normal(5, seed=1))
    model.partial_fit(normal(5, seed=2))
    for each, seed in ((other, 1), (model, 2)):
        alike(each, SVDD(width=2.0).fit(np.concatenate([normal(30)[5:], normal(5, seed=seed)])))


def test_nothing_learnt_can_be_saved_too():
    """Before the first row, and after every row was forgotten, there is nothing to score with; both states can be saved."""
    fresh, emptied = IncrementalSVDD(alarm_rate=0.1), IncrementalSVDD(window=40).fit(normal(40)).forget(range(40))
    for model in (fresh, emptied):
        restored = IncrementalSVDD.from_bytes(model.to_bytes())
        assert restored.get_params() == model.get_params()
        for call in (restored.score_samples, restored.p_values, restored.forget):
            with pytest.raises(NotLearntError):
                call(normal())
        assert not hasattr(restored, "window_")
    alike(emptied.partial_fit(normal()), IncrementalSVDD(window=40).fit(normal()))


def test_foreign_bytes_and_functions_are_refused():
    """Bytes of another class or of parts that do not fit, and a function that is not the one learnt with, are named."""
    model = IncrementalSVDD(rbf_of_2).fit(normal())
    with pytest.raises(KernelError, match="is code and not saved"):
        IncrementalSVDD.from_bytes(model.to_bytes())
    with pytest.raises(KernelError, match="not the kernel this was saved with"):
        IncrementalSVDD.from_bytes(model.to_bytes(), kernel=lambda X, Y: X @ Y.T)
    envelope = Envelope.from_bytes(IncrementalSVDD().fit(normal()).to_bytes())
    bad = Envelope(envelope.kind, envelope.values, {**envelope.arrays, "weights": np.zeros(3)})
    with pytest.raises(StateError, match="does not fit together"):
        IncrementalSVDD.from_bytes(bad.to_bytes())
    with pytest.raises(StateError):
        IncrementalSVDD.from_bytes(Envelope("IncrementalSVDD", envelope.values).to_bytes())
    with pytest.raises(StateError, match="saved state of a KernelBoundary"):
        IncrementalSVDD.from_bytes(Envelope("KernelBoundary", envelope.values).to_bytes())


def _with(change):
    """A saved state of 30 rows in a window of 30 after `change`, given its values and arrays as they are; the checksum is right."""
    envelope = Envelope.from_bytes(IncrementalSVDD(window=30).fit(normal(40)).to_bytes())
    values, arrays = copy.deepcopy(envelope.values), {name: array.copy() for name, array in envelope.arrays.items()}
    change(values, arrays)
    return Envelope(envelope.kind, values, arrays).to_bytes()


def _held(**changes):
    return lambda values, arrays: values["held"].update(changes)


def _terms(**changes):
    return lambda values, arrays: values["terms"].update(changes)


def _entry(name, at, number):
    return lambda values, arrays: arrays[name].__setitem__(at, number)


def _request(**changes):
    return lambda values, arrays: values["terms"]["request"].update(changes)


def _parameter(**changes):
    return lambda values, arrays: values["held"]["parameters"].update(changes)


def _fifty_rows(values, arrays):
    arrays |= {"rows": normal(50), "weights": np.full(50, 0.02), "order": np.arange(50.0)}


MADE_UP = {
    "weights that add up to 5": lambda values, arrays: arrays["weights"].__imul__(5.0),
    "a weight that is NaN": _entry("weights", 3, np.nan),
    "a weight below 0": _entry("weights", 3, -1e-3),
    "all weight on one row": lambda values, arrays: arrays.update(weights=np.eye(30)[0]),
    "no weights": lambda values, arrays: arrays.update(weights=np.zeros(30)),
    "too few weights": lambda values, arrays: arrays.update(weights=arrays["weights"][:-1]),
    "a row that is NaN": _entry("rows", 3, np.nan),
    "a row that is infinite": _entry("rows", (3, 1), np.inf),
    "rows that are numbers": lambda values, arrays: arrays.update(rows=arrays["rows"].ravel()),
    "no rows": lambda values, arrays: arrays.clear(),
    "columns missing": lambda values, arrays: arrays.update(rows=arrays["rows"][:, :2].copy()),
    "more rows than the window holds": _fifty_rows,
    "half a place": _entry("order", 3, 1.5),
    "the same place twice": _entry("order", slice(2, 4), 1.0),
    "an order too short": lambda values, arrays: arrays.update(order=np.arange(29.0)),
    "a threshold that is NaN": _held(threshold=np.nan),
    "a threshold in words": _held(threshold="small"),
    "a threshold that is no radius": _held(threshold=50.0),
    "a threshold below 0": _held(threshold=-1.0),
    "no threshold": lambda values, arrays: values["held"].pop("threshold"),
    "a norm of 99": _held(norm=99.0),
    "a norm that is NaN": _held(norm=np.nan),
    "fewer learnt than none": _held(learnt=-4),
    "fewer learnt than held": _held(learnt=3),
    "parts of rows learnt": _held(learnt=40.5),
    "chosen from more than there are": _held(chosen_from=31),
    "no parameters": lambda values, arrays: values["held"].pop("parameters"),
    "a width of 0": _parameter(kernel={"kind": "RBF", "width": 0.0}),
    "another width": _parameter(kernel={"kind": "RBF", "width": 9.0}),
    "another C": _parameter(C=0.5),
    "a C that is NaN": _parameter(C=np.nan),
    "a scale of 0": _parameter(scale=[1.0, 0.0, 1.0]),
    "a scale that is NaN": _parameter(scale=[1.0, np.nan, 1.0]),
    "a scale too short": _parameter(scale=[1.0]),
    "no terms": lambda values, arrays: values.pop("terms"),
    "terms without a request": lambda values, arrays: values["terms"].pop("request"),
    "terms that allow no weights": _terms(C=0.01),
    "a C in words": _terms(C="large"),
    "a negative C": _terms(C=-1.0),
    "a window of 1": _request(window=1),
    "a rate of 2": _request(alarm_rate=2.0),
    "features fewer than columns": lambda values, arrays: values.update(n_features=2),
    "features in words": lambda values, arrays: values.update(n_features="three"),
    "a name too many": lambda values, arrays: values.update(feature_names=list("abcd")),
}


@pytest.mark.parametrize("made_up", MADE_UP)
def test_made_up_content_is_refused(made_up):
    """What a right checksum covers and yet cannot have been learnt is an error of ours, whatever is wrong with it."""
    assert IncrementalSVDD.from_bytes(_with(lambda values, arrays: None)).window_.shape == (30, 3)
    with pytest.raises(OneClassError):
        IncrementalSVDD.from_bytes(_with(MADE_UP[made_up]))


# Calls that fail


def test_a_call_that_fails_leaves_the_detector_as_it_was():
    """Rows that cannot be learnt, a kernel that overflows or breaks off, indices that are not there: same bytes, same future."""
    model = IncrementalSVDD(Polynomial(8), C=0.2, window=30).fit(normal(30))
    twin, before = copy.deepcopy(model), model.to_bytes()
    failing = [
        (InvalidRowsError, lambda: model.partial_fit([[np.nan, 0.0, 0.0]])),
        (KernelError, lambda: model.partial_fit(np.full((1, 3), 1e60))),
        (KernelError, lambda: model.partial_fit(np.full((40, 3), 1e60))),
        (KernelError, lambda: model.score_samples(np.full((1, 3), 1e60))),
        (InvalidRowsError, lambda: model.forget([30])),
        (InvalidParameterError, lambda: model.set_params(C=0.001).fit(normal())),
    ]
    for kind, call in failing:
        with pytest.raises(kind):
            call()
        model.set_params(C=0.2)
        assert model.to_bytes() == before
    assert model.partial_fit(normal(4, seed=1)).to_bytes() == twin.partial_fit(normal(4, seed=1)).to_bytes()


def test_a_warning_that_is_an_error_leaves_the_detector_as_it_was(monkeypatch):
    """Where a ConvergenceWarning is made an error, in mid-call, the state before is whole, and the next call is right."""
    model = IncrementalSVDD(width=2.0, window=30).fit(normal(30))
    before = model.to_bytes()
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(dual, "_STEPS_PER_ROW", 0)
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.partial_fit(normal(10, seed=1))
    assert model.to_bytes() == before
    alike(model.partial_fit(normal(10, seed=1)), SVDD(width=2.0).fit(model.window_))


class _InterruptingRBF(RBF):
    """An RBF that is interrupted at its n-th call."""

    calls_left = 10**9

    def __call__(self, X, Y):
        type(self).calls_left -= 1
        if type(self).calls_left == 0:
            raise KeyboardInterrupt
        return super().__call__(X, Y)


@pytest.mark.parametrize("calls", range(1, 5))
@pytest.mark.parametrize("change", ["learn", "learn many", "forget"])
def test_an_interrupt_leaves_the_detector_as_it_was(change, calls):
    """Wherever the kernel is interrupted in mid-call, the state before is whole, and the call can be made again."""
    todo = {
        "learn": lambda model: model.partial_fit(normal(4, seed=1) * 2.0),
        "learn many": lambda model: model.partial_fit(normal(35, seed=1)),
        "forget": lambda model: model.forget([0, 7, 29]),
    }[change]
    model = IncrementalSVDD(_InterruptingRBF(2.0), alarm_rate=0.1, window=30).fit(normal(30))
    before, twin = model.score_samples(normal()), IncrementalSVDD(RBF(2.0), alarm_rate=0.1, window=30).fit(normal(30))
    _InterruptingRBF.calls_left = calls
    try:
        todo(model)
    except KeyboardInterrupt:
        np.testing.assert_array_equal(model.score_samples(normal()), before)
        np.testing.assert_array_equal(model.window_, normal(30))
        todo(model)
    _InterruptingRBF.calls_left = 10**9
    alike(model, todo(twin))
    alike(model.partial_fit(normal(2, seed=5)), twin.partial_fit(normal(2, seed=5)))


def test_cells_that_are_no_numbers_are_refused_before_anything_is_learnt():
    """Text, NaN and rows of another width are named, for a new detector as well, which then has learnt nothing."""
    for wrong in ([["one", "two"]], [[np.nan, 1.0]], [[1.0], [2.0, 3.0]], []):
        model = IncrementalSVDD()
        with pytest.raises(InvalidRowsError):
            model.partial_fit(wrong)
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(InvalidRowsError, match="features"):
        IncrementalSVDD().fit(normal()).partial_fit(normal(3, 2))


def test_rows_labelled_minus_one_are_passed_over():
    """A chunk of nothing but such rows changes nothing, and before the first row leaves a detector that has learnt nothing."""
    model = IncrementalSVDD().partial_fit(normal(3), [-1, -1, -1])
    with pytest.raises(NotLearntError):
        model.predict(normal())
    before = model.partial_fit(normal()).to_bytes()
    assert model.partial_fit(normal(3), [-1, -1, -1]).forget([]).to_bytes() == before


@pytest.mark.slow
def test_ten_thousand_rows_leave_no_error_behind():
    """After 10 000 rows and as many forgotten ones the sphere is that of the window to 1e-9."""
    rng = np.random.default_rng(0)
    model = IncrementalSVDD(width=4.0, window=150).fit(rng.normal(size=(150, 4)))
    for _ in range(10_000):
        model.partial_fit(rng.normal(size=(1, 4)))
    alike(model, SVDD(width=4.0).fit(model.window_))
