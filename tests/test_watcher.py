"""The watcher tests each row with the model as it stands and learns afterwards, chunk by chunk, what its policy wants."""

import pickle
from copy import copy

import numpy as np
import pandas as pd
import pytest
from foreign import MeanDistance
from pairs import both_models, normal
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import SGDOneClassSVM

from oneclass import KernelBoundary, Watcher
from oneclass import watcher as watcher_module
from oneclass.errors import InvalidParameterError, InvalidRowsError, StateError

FAR = np.full((1, 3), 20.0)


def boundary(**parameters):
    return KernelBoundary(**{"width": 2.0, "C": 1.0, "alarm_rate": 0.1, "window": 40} | parameters)


def assert_same_verdicts(one, other):
    """All six columns are equal to the last bit, NaN with NaN."""
    for name, column in one.to_dict().items():
        np.testing.assert_array_equal(column, other.to_dict()[name], err_msg=name)


def by_hand(model, rows, chunk):
    """Scores and thresholds of a fitted model that tests and then learns each chunk."""
    scores, thresholds, p_values = [], [], []
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        scores.append(-model.score_samples(part))
        thresholds.append(np.full(len(part), -model.offset_))
        p_values.append(model.p_values(part))
        if len(part) == chunk:
            model.partial_fit(part)
    return np.concatenate(scores), np.concatenate(thresholds), np.concatenate(p_values)


@both_models
@pytest.mark.parametrize("rule", ["leave-one-out", "training"])
@pytest.mark.parametrize("chunk", [1, 7, 40, 60])
def test_verdicts_are_those_of_test_then_learn_by_hand(model, rule, chunk):
    """Each row is judged by the model of the chunks before it: score (the paper's d), threshold, p-value and alarm."""
    rows = np.concatenate([normal(50), normal(150, seed=1) * np.linspace(1, 2, 150)[:, None]])
    parameters = {"alarm_rate": 0.1, "threshold": rule, "window": 40}
    watcher = Watcher(model(**parameters), chunk=chunk, warm_up=50)
    verdicts = watcher.watch(rows)
    fitted = model(**parameters).fit(rows[:50])
    score, threshold, p_value = by_hand(fitted, rows[50:], chunk)
    np.testing.assert_array_equal(verdicts.score[50:], score)
    np.testing.assert_array_equal(verdicts.threshold[50:], threshold)
    np.testing.assert_array_equal(verdicts.p_value[50:], p_value)
    np.testing.assert_array_equal(verdicts.alarm[50:], score > threshold)
    assert 0 < verdicts.alarm[50:].sum() < 150
    assert watcher.model.to_bytes() == fitted.to_bytes()


def test_warming_rows_have_no_verdict():
    """While the watcher warms up there is neither score, threshold, p-value nor alarm; then every row has all of them."""
    verdicts = Watcher(boundary()).watch(np.concatenate([normal(40), FAR, normal(9, seed=1)]))
    assert verdicts.state.tolist() == ["warming"] * 40 + ["watching"] * 10
    for column in (verdicts.score, verdicts.threshold, verdicts.p_value):
        np.testing.assert_array_equal(np.isnan(column), np.arange(50) < 40)
    assert verdicts.alarm.dtype == bool
    assert not verdicts.alarm[:40].any()
    assert verdicts.alarm[40]


def test_rows_are_counted_over_the_life_of_the_watcher():
    """`row` goes on from call to call, warm-up included."""
    watcher = Watcher(boundary())
    rows = [watcher.watch(normal(count)).row for count in (1, 30, 20, 3)]
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(54))


def test_verdicts_come_as_columns():
    """`to_dict` has the six columns, each with one entry per row, as a data frame takes them."""
    verdicts = Watcher(boundary()).watch(normal(45))
    frame = pd.DataFrame(verdicts.to_dict())
    assert list(frame) == ["row", "score", "threshold", "p_value", "alarm", "state"]
    assert len(verdicts) == len(frame) == 45


@pytest.mark.parametrize(
    ("model", "warm_up", "expected"),
    [
        (boundary(), None, 40),
        (boundary(window=None), None, 150),
        (boundary(), 10, 10),
        (boundary(), 0, 2),
        (boundary(), 70, 70),
        (boundary().fit(normal(60)), None, 0),
        (boundary().fit(normal(60)), 5, 5),
        (boundary().fit(normal(60)), 0, 0),
    ],
)
@pytest.mark.filterwarnings("ignore::oneclass.errors.NoAlarmWarning")  # two rows are enough to begin, and too few for an alarm
def test_length_of_the_warm_up(model, warm_up, expected):
    """The warm-up is the window, 150 rows without one, what was asked for (2 at least), or nothing if the model is fitted."""
    states = Watcher(model, warm_up=warm_up).watch(normal(160)).state
    assert (states == "warming").sum() == expected


def test_only_rows_that_would_be_learnt_count_as_warm_up():
    """Rows the policy does not want, or that are labelled -1, prolong the warm-up and are not learnt."""
    rows, labels = normal(60), np.zeros(60, dtype=int)
    labels[::4] = -1
    watcher = Watcher(boundary(), warm_up=30)
    assert (watcher.watch(rows, labels).state == "warming").sum() == 40
    np.testing.assert_array_equal(watcher.model.window_, rows[:40][labels[:40] == 0])
    watcher = Watcher(boundary(), learn="labelled", warm_up=30)
    assert (watcher.watch(rows).state == "warming").all()
    assert (watcher.watch(rows, np.ones(60, dtype=int)).state == "warming").sum() == 30


def test_a_chunk_counts_all_rows_seen_after_the_warm_up():
    """The model learns after every `chunk` rows seen, whether the policy wants them or not, and not in between."""
    rows, labels, done = normal(30, seed=1), np.where(np.arange(30) % 3 == 0, -1, 0), 0
    watcher = Watcher(boundary(window=None).fit(normal(40)), chunk=10)
    for count, learnt in ((9, 0), (1, 6), (9, 6), (11, 20)):
        watcher.watch(rows[done : done + count], labels[done : done + count])
        done += count
        np.testing.assert_array_equal(watcher.model.window_[40:], rows[labels == 0][:learnt])


@pytest.mark.parametrize(("learn", "wanted"), [("auto", "all"), ("all", "all"), ("accepted", "accepted"), ("labelled", "none")])
def test_policies(learn, wanted):
    """ "auto" and "all" learn every row, "accepted" those without an alarm, "labelled" none; +1 is always learnt and -1 never."""
    rows, labels = np.concatenate([normal(20, seed=1), normal(20, seed=2) * 4]), np.zeros(40, dtype=int)
    labels[[1, 21, 35]], labels[[2, 22]] = 1, -1
    watcher = Watcher(boundary(window=None).fit(normal(40)), learn=learn, chunk=40)
    alarm = watcher.watch(rows, labels).alarm
    assert 0 < alarm.sum() < 40
    mask = {"all": np.ones(40, dtype=bool), "accepted": ~alarm, "none": np.zeros(40, dtype=bool)}[wanted]
    mask[[1, 21, 35]], mask[[2, 22]] = True, False
    np.testing.assert_array_equal(watcher.model.window_[40:], rows[mask])


class EveryOther:
    """A policy of one's own."""

    def learns(self, alarms):
        return np.arange(len(alarms)) % 2 == 0


def test_a_policy_of_ones_own():
    """Any object with `learns` is a policy; it is code, so a saved watcher needs it again."""
    watcher = Watcher(boundary(window=None).fit(normal(40)), learn=EveryOther(), chunk=10)
    watcher.watch(normal(10, seed=1))
    np.testing.assert_array_equal(watcher.model.window_[40:], normal(10, seed=1)[::2])
    with pytest.raises(StateError, match="learn=policy"):
        Watcher.from_bytes(watcher.to_bytes())
    assert Watcher.from_bytes(watcher.to_bytes(), learn=EveryOther()).to_bytes() == watcher.to_bytes()


@pytest.mark.parametrize(
    "answer", [lambda alarms: [True] * 3, lambda alarms: np.ones(3, dtype=int), lambda alarms: np.array([True, True])]
)
@pytest.mark.parametrize("chunk", [1, 7])
def test_a_policy_must_answer_with_one_boolean_per_row(answer, chunk):
    """A policy that answers with anything else is refused by name, and nothing is watched."""

    class Wrong:
        learns = staticmethod(answer)

        def __repr__(self):
            return "Wrong()"

    watcher = Watcher(boundary().fit(normal(40)).partial_fit(normal(1)), learn=Wrong(), chunk=chunk)
    before = watcher.to_bytes()
    with pytest.raises(InvalidParameterError, match=r"Wrong\(\).*one boolean per row"):
        watcher.watch(normal(7))
    assert watcher.to_bytes() == before


@both_models
@pytest.mark.parametrize("window", [10, 40, 200])
def test_any_window_beside_any_chunk(model, window):
    """A window smaller or larger than the chunk holds the last rows learnt; the rows after the last full chunk wait."""
    watcher = Watcher(model(alarm_rate=0.2, window=window), chunk=25, warm_up=30)
    watcher.watch(normal(30 + 4 * 25 + 24))
    np.testing.assert_array_equal(watcher.model.window_, normal(154)[:130][-window:])


def test_a_model_that_was_fitted_before_goes_on():
    """A fitted model is watched from the first row on, and its rows slide out like any others."""
    fitted = boundary().fit(normal(40))
    scores = fitted.score_samples(normal(30, seed=1))
    watcher = Watcher(fitted, chunk=30)
    np.testing.assert_array_equal(watcher.watch(normal(30, seed=1)).score, -scores)
    np.testing.assert_array_equal(watcher.model.window_, np.concatenate([normal(40)[-10:], normal(30, seed=1)]))


def test_frames_are_watched_and_their_columns_checked():
    """A data frame is watched as its numbers; a later one with columns in another order is refused, and nothing is watched."""
    frame = pd.DataFrame(normal(60), columns=list("abc"))
    watcher, plain = Watcher(boundary()), Watcher(boundary())
    assert_same_verdicts(watcher.watch(frame), plain.watch(normal(60)))
    before = watcher.to_bytes()
    with pytest.raises(InvalidRowsError, match="feature names"):
        watcher.watch(frame[list("bac")])
    assert watcher.to_bytes() == before


@pytest.mark.parametrize("labels", [[2] * 5, ["a"] * 5, [1] * 4, [[1, 1]] * 5, [0.5] * 5, [None] * 5, [True] * 5, ["1"] * 5])
def test_labels_that_are_none_are_refused(labels):
    """Labels other than 1, -1 and 0, or not one per row, are refused, and nothing is watched."""
    watcher = Watcher(boundary().fit(normal(40)))
    before = watcher.to_bytes()
    with pytest.raises(InvalidRowsError, match="label"):
        watcher.watch(normal(5), labels)
    assert watcher.to_bytes() == before


@pytest.mark.parametrize(
    "arguments", [{"chunk": 0}, {"chunk": 2.5}, {"chunk": True}, {"warm_up": -1}, {"learn": "some"}, {"learn": 3}]
)
def test_parameters_are_checked_when_the_watcher_is_made(arguments):
    """A chunk below 1, a negative warm-up and an unknown policy are refused by name and value."""
    (name, value), *_ = arguments.items()
    with pytest.raises(InvalidParameterError, match=f"{name}={value!r}"):
        Watcher(boundary(), **arguments)


def test_bytes_hold_the_rows_that_wait():
    """A watcher saved in the middle of its warm-up, or of a chunk, goes on with the rows it had collected."""
    rows = normal(150)
    kept, resumed = Watcher(boundary(), chunk=20), Watcher(boundary(), chunk=20)
    for start in range(0, 150, 13):
        resumed = Watcher.from_bytes(resumed.to_bytes())
        assert_same_verdicts(kept.watch(rows[start : start + 13]), resumed.watch(rows[start : start + 13]))
        assert kept.to_bytes() == resumed.to_bytes()


def test_damaged_newer_and_foreign_bytes_are_refused():
    """Bytes changed anywhere, a model's bytes and others are StateErrors."""
    data = Watcher(boundary()).to_bytes()
    for place in np.random.default_rng(0).integers(0, len(data), 100):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        with pytest.raises(StateError):
            Watcher.from_bytes(bytes(damaged))
    for other in (b"", data[:-1], boundary().to_bytes(), b"x" * 100):
        with pytest.raises(StateError):
            Watcher.from_bytes(other)


class TestForeignDetectors:
    """Any detector with `partial_fit`, `score_samples` and `offset_` can be watched."""

    def test_verdicts(self):
        """Scores and thresholds are minus the detector's; p-values it does not have are NaN."""
        rows = normal(200)
        verdicts = Watcher(MeanDistance(window=60), chunk=30).watch(rows)
        assert (verdicts.state == "warming").sum() == 60
        fitted = MeanDistance(window=60).fit(rows[:60])
        np.testing.assert_array_equal(verdicts.score[60:90], -fitted.score_samples(rows[60:90]))
        np.testing.assert_array_equal(verdicts.threshold[60:90], np.full(30, -fitted.offset_))
        fitted.partial_fit(rows[60:90])
        np.testing.assert_array_equal(verdicts.score[90:120], -fitted.score_samples(rows[90:120]))
        assert np.isnan(verdicts.p_value).all()
        np.testing.assert_array_equal(verdicts.alarm[60:], verdicts.score[60:] > verdicts.threshold[60:])

    @pytest.mark.parametrize("cuts", [[1] * 120, [50, 70], [7] * 17 + [1]])
    def test_cuts(self, cuts):
        """Its verdicts do not depend on how the rows were cut into calls."""
        rows = normal(120)
        whole, cut = Watcher(MeanDistance(window=40), chunk=20), Watcher(MeanDistance(window=40), chunk=20)
        parts = [cut.watch(rows[end - count : end]) for end, count in zip(np.cumsum(cuts), cuts, strict=True)]
        together = whole.watch(rows)
        for name in ("row", "score", "threshold", "alarm", "state"):
            np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(together, name))

    def test_what_cannot_be_watched(self):
        """A detector without `partial_fit` is refused by name; one that could not be brought back is watched, but not saved."""
        with pytest.raises(InvalidParameterError, match=r"IsolationForest.*partial_fit"):
            Watcher(IsolationForest())

        class SavesItself(MeanDistance):
            def to_bytes(self):
                return b"in a way of its own"

        for detector in (MeanDistance(), SavesItself()):
            with pytest.raises(StateError, match=r"cannot be saved .* KernelBoundary, KernelReconstruction"):
                Watcher(detector).to_bytes()

    def test_an_estimator_of_scikit_learn(self):
        """SGDOneClassSVM, whose `offset_` is an array of one, is watched."""
        verdicts = Watcher(SGDOneClassSVM(random_state=0, nu=0.1), chunk=25, warm_up=100).watch(normal(200))
        assert np.isfinite(verdicts.score[100:]).all()
        np.testing.assert_array_equal(verdicts.alarm[100:], verdicts.score[100:] > verdicts.threshold[100:])

    def test_no_estimator_at_all(self):
        """Three names are enough: what is no scikit-learn estimator counts as fitted once it has an `offset_`."""

        class Plain:
            def partial_fit(self, X):
                self.offset_ = -10.0

            def score_samples(self, X):
                return -np.abs(X).sum(axis=1)

        verdicts = Watcher(Plain(), chunk=5, warm_up=10).watch([*normal(19), [9.0, 9.0, 9.0]])
        assert verdicts.state.tolist() == ["warming"] * 10 + ["watching"] * 10
        assert verdicts.alarm.tolist() == [False] * 19 + [True]


@both_models
def test_p_values_that_nobody_reads_do_not_pile_up(model, monkeypatch):
    """With "training" the windows kept for p-values are bounded in a call, let go once read, and not pickled; no bit differs."""
    rows, asked = normal(400), {"width": 1.5, "C": 1.0, "threshold": "training", "window": 40}
    verdicts = Watcher(model(**asked), chunk=5).watch(rows)
    assert len(verdicts.pending) == 72
    monkeypatch.setattr(watcher_module, "_PENDING_NUMBERS", 10 * 40 * 3)
    bounded = Watcher(model(**asked), chunk=5).watch(rows)
    assert len(bounded.pending) <= 10
    assert np.isfinite(bounded.known[40:300]).all()
    unpickled = pickle.loads(pickle.dumps(bounded))
    np.testing.assert_array_equal(bounded.p_value, verdicts.p_value)
    np.testing.assert_array_equal(unpickled.p_value, verdicts.p_value)
    assert (verdicts.pending, bounded.pending, unpickled.pending) == ((), (), ())


def test_a_copy_watches_on_its_own():
    """What a copy of a watcher sees changes nothing in the original, and the other way round."""
    watcher = Watcher(KernelBoundary(window=40), chunk=7)
    watcher.watch(normal(60))
    before, twin = watcher.to_bytes(), copy(watcher)
    assert twin.to_bytes() == before
    twin.watch(normal(60, seed=1))
    assert watcher.to_bytes() == before != twin.to_bytes()
