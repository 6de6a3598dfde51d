"""Late labels: `Watcher.confirm` takes learnt rows back and hands skipped ones in."""

import numpy as np
import pytest
from foreign import MeanDistance
from pairs import both_models, normal

from oneclass import KernelBoundary, Watcher
from oneclass.errors import InvalidParameterError, InvalidRowsError, KernelError


def watcher_of(rows, labels=None, *, model=KernelBoundary, window=40, **arguments):
    """A watcher with a window of 40 that has seen these rows, 40 of them to warm up."""
    watcher = Watcher(model(width=2.0, C=1.0, alarm_rate=0.1, window=window), **{"chunk": 10, "warm_up": 40} | arguments)
    watcher.watch(rows, labels)
    return watcher


def scores_of(rows, fresh):
    return KernelBoundary(width=2.0, C=1.0, alarm_rate=0.1).fit(rows).score_samples(fresh)


@both_models
def test_a_learnt_row_is_taken_back(model):
    """-1 for rows that were learnt leaves the model that never learnt them; they were known."""
    rows = normal(60)
    watcher = watcher_of(rows, model=model)
    assert watcher.confirm([25, 50, 59], [-1, -1, -1]).tolist() == [True, True, True]
    rest = np.delete(rows, [25, 50, 59], axis=0)[-37:]
    np.testing.assert_array_equal(watcher.model.window_, rest)
    alone = model(width=2.0, C=1.0, alarm_rate=0.1).fit(rest)
    np.testing.assert_allclose(watcher.model.score_samples(rows), alone.score_samples(rows), rtol=1e-9, atol=1e-12)


def test_a_taken_back_row_leaves_a_free_place():
    """The window refills before it forgets, after a row was taken back."""
    watcher = watcher_of(normal(60))
    watcher.confirm([25], [-1])
    assert len(watcher.model.window_) == 39
    watcher.watch(normal(10, seed=1))
    np.testing.assert_array_equal(
        watcher.model.window_, np.concatenate([np.delete(normal(60), 25, axis=0), normal(10, seed=1)])[-40:]
    )


def test_a_waiting_row_is_labelled():
    """A row that waits for its chunk is learnt or not as its late label says."""
    rows = normal(50)
    watcher = watcher_of(rows[:47])
    assert watcher.confirm([41, 46], [-1, 1]).tolist() == [True, True]
    watcher.watch(rows[47:])
    np.testing.assert_array_equal(watcher.model.window_, np.delete(rows, 41, axis=0)[-40:])


def test_a_skipped_row_is_handed_in():
    """+1 for a row that was not learnt hands it in at once; a second time there is nothing to do."""
    rows = normal(50)
    watcher = watcher_of(rows, np.where(np.arange(50) == 43, -1, 0))
    assert not (watcher.model.window_ == rows[43]).all(axis=1).any()
    assert watcher.confirm([43], [1]).tolist() == [True]
    np.testing.assert_array_equal(watcher.model.window_[-1], rows[43])
    before = watcher.to_bytes()
    assert watcher.confirm([43], [1]).tolist() == [True]
    assert watcher.to_bytes() == before


@pytest.mark.parametrize("learn", ["accepted", "labelled"])
def test_rows_the_policy_skipped_are_handed_in(learn):
    """A false alarm that the policy did not learn is learnt once it is confirmed as normal."""
    rows = np.concatenate([normal(40), normal(10, seed=1), np.full((1, 3), 20.0), normal(9, seed=2)])
    watcher = watcher_of(rows, np.where(np.arange(60) < 40, 1, 0), learn=learn, chunk=20)
    assert watcher.confirm([50], [1]).tolist() == [True]
    np.testing.assert_array_equal(watcher.model.window_[-1], rows[50])
    assert watcher.watch(rows[50:51]).p_value[0] > 1 / 41


def test_rows_older_than_the_window_are_not_known():
    """For rows that slid out of the window, for those not seen yet and for nonsense the answer is False, and nothing changes."""
    watcher = watcher_of(normal(100))
    before = watcher.to_bytes()
    assert watcher.confirm([0, 59, 100, -1, 2**62], [-1, 1, -1, 1, -1]).tolist() == [False] * 5
    assert watcher.to_bytes() == before
    assert watcher.confirm([60], [-1]).tolist() == [True]


def test_skipped_rows_are_kept_as_long_as_the_window_is():
    """Of skipped rows the last `window` are kept to be handed in; of older ones nothing is known."""
    rows = normal(130)
    watcher = watcher_of(rows, np.where(np.arange(130) >= 40, -1, 0))
    assert watcher.confirm([89, 90, 129], [1, 1, 1]).tolist() == [False, True, True]
    np.testing.assert_array_equal(watcher.model.window_[-2:], rows[[90, 129]])


def test_a_label_may_be_corrected_and_corrected_again():
    """A row taken back can be handed in again, and taken back again: the last label counts."""
    rows = normal(50)
    watcher = watcher_of(rows)
    for label, is_there in ((-1, False), (1, True), (-1, False), (-1, False), (1, True), (1, True)):
        assert watcher.confirm([45], [label]).tolist() == [True]
        assert (watcher.model.window_ == rows[45]).all(axis=1).any() == is_there
    assert len(watcher.model.window_) == 40
    rest = np.concatenate([np.delete(rows, 45, axis=0), rows[45:46]])[-40:]
    np.testing.assert_allclose(watcher.model.score_samples(rows), scores_of(rest, rows), rtol=1e-9, atol=1e-12)


def test_labels_of_the_waiting_may_be_corrected():
    """A waiting row labelled twice is treated by its last label."""
    rows = normal(50)
    watcher = watcher_of(rows[:48], np.where(np.arange(48) == 45, -1, 0))
    watcher.confirm([44, 45], [-1, 1])
    watcher.confirm([44], [1])
    watcher.confirm([46], [-1])
    watcher.watch(rows[48:])
    np.testing.assert_array_equal(watcher.model.window_, np.delete(rows, 46, axis=0)[-40:])


def test_labels_during_the_warm_up():
    """While the watcher warms up, -1 takes a row out of those collected, and +1 puts a skipped one in."""
    rows = normal(60)
    watcher = watcher_of(rows[:30], np.where(np.arange(30) == 7, -1, 0))
    assert watcher.confirm([3, 7], [-1, 1]).tolist() == [True, True]
    states = watcher.watch(rows[30:]).state
    assert (states == "warming").sum() == 11
    collected = [*[row for row in range(41) if row not in (3, 7)]]
    learnt = np.concatenate([rows[[*collected[:28], 7, *collected[28:]]], rows[41:51]])
    np.testing.assert_array_equal(np.sort(watcher.model.window_, axis=0), np.sort(learnt[-40:], axis=0))


def test_a_label_can_end_the_warm_up():
    """When the row that was missing is confirmed as normal, the watcher begins to watch."""
    rows = normal(42)
    watcher = watcher_of(rows[:41], np.where(np.arange(41) < 2, -1, 0))
    assert watcher.watch(rows[41:], [-1]).state.tolist() == ["warming"]
    watcher.confirm([0], [1])
    assert watcher.model.is_fitted
    assert watcher.watch(rows[:1]).state.tolist() == ["watching"]


def test_without_any_row_left_the_watcher_warms_up_again():
    """When every learnt row is taken back there is nothing to test with: the watcher warms up again, and then watches."""
    rows = normal(130)
    watcher = watcher_of(rows[:60])
    assert watcher.confirm(np.arange(20, 60), [-1] * 40).all()
    assert not watcher.model.is_fitted
    verdicts = watcher.watch(rows[60:])
    assert (verdicts.state == "warming").sum() == 40
    np.testing.assert_array_equal(watcher.model.window_, rows[90:130])


def test_rows_that_waited_survive_a_restart():
    """Rows that waited for their chunk when everything was taken back count for the new warm-up."""
    rows = normal(110)
    watcher = watcher_of(rows[:65])
    watcher.confirm(np.arange(20, 60), [-1] * 40)
    states = watcher.watch(rows[65:]).state
    assert (states == "warming").sum() == 35
    np.testing.assert_array_equal(watcher.model.window_, rows[70:110])


@both_models
def test_late_labels_survive_a_save(model):
    """Skipped and learnt rows are known to a watcher out of its bytes, which goes on with the same bits."""
    rows = normal(90)
    kept = watcher_of(rows[:65], np.where(np.arange(65) == 43, -1, 0), model=model)
    resumed = Watcher.from_bytes(kept.to_bytes())
    for each in (kept, resumed):
        assert each.confirm([43, 50, 62, 1], [1, -1, -1, 1]).tolist() == [True, True, True, False]
    np.testing.assert_array_equal(kept.watch(rows[65:]).score, resumed.watch(rows[65:]).score)
    assert kept.to_bytes() == resumed.to_bytes()


def test_rows_learnt_before_the_watch_are_out_of_reach():
    """The rows a model was fitted with have no `row`: nothing takes them back."""
    fitted = KernelBoundary(width=2.0, C=1.0, alarm_rate=0.1, window=40).fit(normal(40))
    watcher = Watcher(fitted, chunk=10)
    before = watcher.to_bytes()
    assert watcher.confirm([-1, 0], [-1, -1]).tolist() == [False, False]
    assert watcher.to_bytes() == before
    watcher.watch(normal(10, seed=1))
    assert watcher.confirm([0], [-1]).tolist() == [True]
    np.testing.assert_array_equal(watcher.model.window_, np.concatenate([normal(40)[10:], normal(10, seed=1)[1:]]))


class ForgettingMean(MeanDistance):
    """A foreign detector that can forget."""

    def forget(self, indices):
        return self._keep(np.empty((0, 0)), np.delete(self.window_, indices, axis=0))


@pytest.mark.parametrize("detector", [ForgettingMean(window=40), MeanDistance(window=40)], ids=["forgets", "cannot forget"])
def test_a_foreign_detector_is_corrected_if_it_can_forget(detector):
    """Rows are taken back from any detector with `forget` and `window_`; what another has learnt is out of reach."""
    watcher = Watcher(detector, chunk=10)
    watcher.watch(normal(60), np.where(np.arange(60) == 55, -1, 0))
    before = detector.window_
    can_forget = isinstance(detector, ForgettingMean)
    assert watcher.confirm([50, 55], [-1, 1]).tolist() == [can_forget, True]
    kept = np.delete(before, -9, axis=0) if can_forget else before
    np.testing.assert_array_equal(detector.window_, np.concatenate([kept, normal(60)[55:56]])[-40:])


def test_no_labels_change_nothing():
    """An empty batch of late labels is no error."""
    watcher = watcher_of(normal(63))
    before = watcher.to_bytes()
    assert watcher.confirm(np.array([], dtype=int), np.array([], dtype=int)).tolist() == []
    assert watcher.to_bytes() == before


@pytest.mark.parametrize(
    ("rows", "labels"), [([1, 1], [1, -1]), ([1.5], [1]), (["a"], [1]), ([1], [0]), ([1], [2]), ([1, 2], [1]), ([1], ["normal"])]
)
def test_labels_that_make_no_sense_are_refused(rows, labels):
    """Repeated or fractional row numbers, a label of 0 or of anything but 1 and -1 are refused, and nothing changes."""
    watcher = watcher_of(normal(60))
    before = watcher.to_bytes()
    with pytest.raises((InvalidParameterError, InvalidRowsError), match="label"):
        watcher.confirm(rows, labels)
    assert watcher.to_bytes() == before


def test_a_failing_correction_changes_nothing():
    """If a row that is handed in makes the kernel overflow, nothing of the call has happened, the row taken back included."""
    rows = normal(60)
    rows[5] = 1e60
    watcher = Watcher(KernelBoundary("polynomial", C=0.1, window=40), chunk=10, warm_up=40)
    watcher.watch(rows, np.where(np.arange(60) == 5, -1, 0))
    before = watcher.to_bytes()
    with pytest.raises(KernelError, match="overflow"):
        watcher.confirm([50, 5], [-1, 1])
    assert watcher.to_bytes() == before


def test_a_window_set_later_waits_for_the_next_fit():
    """A window set on the model while it is watched is not in force: the row that is taken back is the row that was meant."""
    rows = normal(150)
    watcher = watcher_of(rows[:130], window=100, warm_up=100)
    watcher.model.set_params(window=50)
    watcher.watch(rows[130:])
    assert watcher.confirm([149, 60, 49], [-1, -1, -1]).tolist() == [True, True, False]
    np.testing.assert_array_equal(watcher.model.window_, np.delete(rows, [60, 149], axis=0)[-98:])
