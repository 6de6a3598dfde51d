"""A call that fails, or is interrupted, has watched nothing: to the byte, whatever path its rows were learnt by."""

import numpy as np
import pytest
from foreign import MeanDistance
from pairs import both_models, both_rules, normal

from oneclass import Watcher
from oneclass.errors import InvalidParameterError, InvalidRowsError, KernelError
from oneclass.inverse import RingInverse
from oneclass.kernels import RBF, Polynomial


def assert_same_verdicts(one, other):
    """All six columns are equal to the last bit, NaN with NaN."""
    for name, column in one.to_dict().items():
        np.testing.assert_array_equal(column, other.to_dict()[name], err_msg=name)


def stream(bad):
    rows = np.concatenate([normal(200), normal(100, seed=1)])
    rows[150] = bad
    return rows


@both_models
@pytest.mark.parametrize("already", [0, 20, 60, 75])
@pytest.mark.parametrize(("chunk", "window"), [(50, 60), (10, 60), (1, 60), (7, None)])
def test_a_failing_call_watches_nothing(model, already, chunk, window):
    """A call with NaN, or with a row at which the kernel overflows many chunks on, leaves the bytes as they were before it."""
    watcher = Watcher(model(Polynomial(3), C=0.1, window=window, alarm_rate=0.1), chunk=chunk, warm_up=30)
    twin = Watcher(model(Polynomial(3), C=0.1, window=window, alarm_rate=0.1), chunk=chunk, warm_up=30)
    if already:
        watcher.watch(normal(already, seed=2))
        twin.watch(normal(already, seed=2))
    before = watcher.to_bytes()
    for bad, error in ((np.nan, InvalidRowsError), (1e60, KernelError)):
        with pytest.raises(error):
            watcher.watch(stream(bad))
        assert watcher.to_bytes() == before
        with pytest.raises(error):
            watcher.watch(stream(bad)[140:])
        assert watcher.to_bytes() == before
    assert_same_verdicts(watcher.watch(stream(0.0)), twin.watch(stream(0.0)))
    assert watcher.to_bytes() == twin.to_bytes()


class Tripwire(RBF):
    """A kernel during whose next call but so many the user presses a key."""

    calls_left = np.inf

    def __call__(self, X, Y):
        type(self).calls_left -= 1
        if type(self).calls_left < 0:
            raise KeyboardInterrupt
        return super().__call__(X, Y)


@both_models
@pytest.mark.parametrize("chunk", [1, 2, 20])
@pytest.mark.parametrize("calls", [1, 2, 4])
# A turn of the inverse takes window + 1 rows: with 63 it ends where the rows looked ahead at do.
@pytest.mark.parametrize("window", [63, 100])
def test_an_interrupted_call_watches_nothing(model, chunk, calls, window, monkeypatch):
    """Whenever a call is interrupted, the bytes are those before it, and the stream goes on as if it had not been made."""

    def watcher():
        made = Watcher(model(Tripwire(1.5), C=1.0, alarm_rate=0.1, window=window), chunk=chunk)
        made.watch(normal(window + 30, seed=2))
        return made

    interrupted, twin = watcher(), watcher()
    before = interrupted.to_bytes()
    monkeypatch.setattr(Tripwire, "calls_left", calls)
    with pytest.raises(KeyboardInterrupt):
        interrupted.watch(normal(300))
    monkeypatch.setattr(Tripwire, "calls_left", np.inf)
    assert interrupted.to_bytes() == before
    assert_same_verdicts(interrupted.watch(normal(100)), twin.watch(normal(100)))
    assert interrupted.to_bytes() == twin.to_bytes()


@both_models
@both_rules
@pytest.mark.parametrize("fails", ["replace", "settle"])
def test_an_inverse_that_loses_its_accuracy_is_left_for_the_factor(model, rule, fails, monkeypatch):
    """Where the explicit inverse gives up, rows are learnt by the factor for one window: exact, and the same bits for any cuts."""
    works = getattr(RingInverse, fails)
    monkeypatch.setattr(RingInverse, fails, lambda self, *given: self.replaced != 20 and works(self, *given))
    rows = normal(200)

    def watcher():
        return Watcher(model(width=2.0, C=1.0, alarm_rate=0.1, threshold=rule, window=45), chunk=1)

    whole, pieces = watcher(), watcher()
    together = whole.watch(rows)
    for start, end in ((0, 66), (66, 67), (67, 80), (80, 120), (120, 200)):
        part = pieces.watch(rows[start:end])
        np.testing.assert_array_equal(part.score, together.score[start:end])
        np.testing.assert_array_equal(part.threshold, together.threshold[start:end])
        pieces = Watcher.from_bytes(pieces.to_bytes())
    assert pieces.to_bytes() == whole.to_bytes()
    np.testing.assert_array_equal(whole.model.window_, rows[-45:])
    fitted = model(width=2.0, C=1.0, alarm_rate=0.1, threshold=rule).fit(rows[-45:])
    np.testing.assert_allclose(whole.model.score_samples(rows), fitted.score_samples(rows), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.model.offset_, fitted.offset_, rtol=1e-9)


def test_a_foreign_detector_is_put_back_too():
    """A call that fails half-way leaves the detector as it was."""

    class Breaks(MeanDistance):
        def partial_fit(self, X, y=None):
            super().partial_fit(X, y)
            if np.abs(X).max() > 1e6:
                raise ArithmeticError
            return self

    watcher = Watcher(Breaks(window=40).fit(normal(40)), chunk=10)
    before, mean = watcher.watch(normal(5)).row[-1], watcher.model.mean_.copy()
    with pytest.raises(ArithmeticError):
        watcher.watch(np.concatenate([normal(20), np.full((10, 3), 1e7), normal(20)]))
    np.testing.assert_array_equal(watcher.model.mean_, mean)
    assert watcher.watch(normal(1)).row[0] == before + 1


@both_models
@pytest.mark.parametrize("chunk", [1, 2])
def test_a_short_failing_call_watches_nothing_either(model, chunk):
    """A call of a few rows along the per-row path, at whose last row the kernel overflows, leaves the bytes as they were."""
    watcher = Watcher(model(Polynomial(3), C=0.01, window=100, alarm_rate=0.1), chunk=chunk)
    watcher.watch(normal(120))
    assert watcher.model._sliding.inverse is not None
    before, rows = watcher.to_bytes(), normal(20, seed=1)
    rows[15] = 1e60
    for call in (watcher.watch, watcher.model.partial_fit, lambda rows: watcher.model.partial_fit(rows[14:16])):
        with pytest.raises(KernelError):
            call(rows)
        assert watcher.to_bytes() == before


@both_models
def test_a_policy_that_breaks_has_decided_nothing(model):
    """A policy of the user's that raises, or answers nonsense, in the middle of a short call leaves the bytes as they were."""

    class Moody:
        answers = iter([])

        def learns(self, alarms):
            return next(self.answers)

    mask = np.ones(2, dtype=bool)
    moody = Moody()
    moody.answers = iter([np.ones(110, dtype=bool), *[mask] * 5])
    watcher = Watcher(model(width=1.5, C=1.0, window=100), learn=moody, chunk=2)
    watcher.watch(normal(110))
    assert watcher.model._sliding.inverse is not None
    before = watcher.to_bytes()
    for answers, error in (([mask] * 3, StopIteration), ([mask, mask, [True]], InvalidParameterError)):
        moody.answers = iter(answers)
        with pytest.raises(error):
            watcher.watch(normal(10, seed=1))
        assert watcher.to_bytes() == before


def test_a_foreign_detector_that_writes_in_place_is_put_back():
    """What a detector keeps in an array and writes to is put back as well."""

    class InPlace(MeanDistance):
        def partial_fit(self, X, y=None):
            super().partial_fit(X, y)
            self.sums_ = getattr(self, "sums_", np.zeros(3))
            self.sums_ += X.sum(axis=0)
            if np.abs(X).max() > 1e6:
                raise ArithmeticError
            return self

    watcher = Watcher(InPlace(window=40), chunk=10, warm_up=40)
    watcher.watch(normal(60))
    before = watcher.model.sums_.copy()
    rows = normal(30)
    with pytest.raises(ArithmeticError):
        watcher.watch(np.concatenate([rows, 1e7 * rows]))
    np.testing.assert_array_equal(watcher.model.sums_, before)
