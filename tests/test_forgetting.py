"""`forget` leaves the model that was never told: same scores, same parameters, no trace in any state."""

import numpy as np
import pytest
import reference
from pairs import MODELS, both_models, both_names, both_rules, every_twin, learn_in_chunks, normal

from oneclass import KernelBoundary
from oneclass.errors import InvalidRowsError, NotLearntError
from oneclass.inverse import RingInverse

GONE = [0, 7, 8, 30, 39]
FRESH = 2 * normal(30, seed=9)


def assert_same_model(one, other, **tolerance):
    """The same window to the last bit; scores, offsets and p-values alike."""
    np.testing.assert_array_equal(one.window_, other.window_)
    np.testing.assert_allclose(one.score_samples(FRESH), other.score_samples(FRESH), **({"rtol": 1e-9, "atol": 1e-11} | tolerance))
    np.testing.assert_allclose(one.offset_, other.offset_, rtol=1e-9)
    np.testing.assert_array_equal(one.p_values(FRESH), other.p_values(FRESH))


@every_twin
@both_names
@both_rules
@pytest.mark.parametrize("slides", [[40], [40, 13], [40, 1, 1, 1]], ids=["full", "after a chunk", "after single rows"])
def test_forgetting_is_fitting_without(name, chosen, twin, rule, slides):
    """Whatever has been learnt how, after `forget` the model is the naive fit of the rows that stay, oldest first."""
    rows = normal(60)
    model = learn_in_chunks(MODELS[name](**chosen, C=10.0, alarm_rate=0.1, threshold=rule, window=40), rows, slides)
    window = model.window_
    model.forget(GONE)
    rest = np.delete(window, GONE, axis=0)
    np.testing.assert_array_equal(model.window_, rest)
    d = reference.distances(reference.fit(rest, twin, 10.0, name), FRESH)
    np.testing.assert_allclose(model.score_samples(FRESH), -d, rtol=1e-7, atol=1e-9)
    assert_same_model(model, MODELS[name](**chosen, C=10.0, alarm_rate=0.1, threshold=rule).fit(rest))


@both_models
def test_forgetting_what_was_just_learnt(model):
    """A chunk learnt into free slots and forgotten again leaves what was there before, bytes and all but the count of slots."""
    before = model(width=1.5, C=2.0).fit(normal(30))
    after = model(width=1.5, C=2.0).fit(normal(30)).partial_fit(normal(5, seed=1)).forget(range(30, 35))
    assert after.to_bytes() == before.to_bytes()


@both_models
def test_forgetting_nothing(model):
    """No indices, in any spelling of none, change nothing."""
    fitted = model(window=30).fit(normal(30)).partial_fit(normal(7, seed=1))
    before = fitted.to_bytes()
    for nothing in ([], (), np.array([], dtype=int), np.zeros(30, dtype=bool)):
        assert fitted.forget(nothing).to_bytes() == before


@both_models
def test_forgetting_everything(model):
    """A model that forgets every row has learnt nothing, and begins again with whatever parameters the new rows ask for."""
    fitted = model(window=40).fit(normal(60) * 1e3)
    fitted.forget(range(40))
    with pytest.raises(NotLearntError):
        fitted.score_samples(FRESH)
    assert not fitted.is_fitted
    assert_same_model(fitted.partial_fit(normal(40)), model(window=40).fit(normal(40)), rtol=0, atol=0)


@both_models
def test_all_but_one_row_can_be_forgotten(model):
    """One row is enough of a window for a model: it lies on its own threshold, to rounding."""
    fitted = model(width=1.5, C=1.0, threshold="training").fit(normal(30)).forget(range(29))
    np.testing.assert_array_equal(fitted.window_, normal(30)[29:])
    np.testing.assert_allclose(fitted.score_samples(normal(30)[29:]), fitted.offset_, rtol=1e-12)


@both_models
@pytest.mark.parametrize("chunk", [1, 4, 9])
def test_the_window_refills_before_it_forgets(model, chunk):
    """After `forget` the next rows take the free places, and only then push out the oldest."""
    rows, more = normal(50), normal(36, seed=1)
    fitted = model(width=1.5, C=2.0, window=50).fit(rows).partial_fit(more[:3]).forget([0, 1, 10, 20, 49])
    kept = np.delete(np.concatenate([rows, more[:3]])[-50:], [0, 1, 10, 20, 49], axis=0)
    for start in range(0, 27, chunk):
        fitted.partial_fit(more[start : start + chunk])
        kept = np.concatenate([kept, more[start : start + chunk]])
        np.testing.assert_array_equal(fitted.window_, kept[-50:])
        assert len(fitted.window_) == min(50, len(kept))
        assert_same_model(fitted, model(width=1.5, C=2.0).fit(kept[-50:]))


@both_models
def test_a_window_sums_up_its_life(model):
    """Learning and forgetting in turns ends in the fit of the rows that are left."""
    rng = np.random.default_rng(0)
    fitted, rows = model(width=1.5, C=2.0, window=60).fit(normal(60)), normal(60)
    for step in range(15):
        chunk = normal(int(rng.integers(1, 9)), seed=100 + step)
        gone = rng.choice(len(rows), size=int(rng.integers(0, 5)), replace=False)
        fitted.forget(gone).partial_fit(chunk)
        rows = np.concatenate([np.delete(rows, gone, axis=0), chunk])[-60:]
    assert_same_model(fitted, model(width=1.5, C=2.0).fit(rows))


@both_models
@pytest.mark.parametrize("window", [None, 40])
def test_automatic_parameters_are_chosen_anew(model, window):
    """Parameters that the forgotten rows helped to choose are chosen from those that stay, as if the others had never been."""
    rows = normal(40)
    rows[GONE] *= 1e3
    fitted = model(window=window).fit(rows).forget(GONE)
    without = model(window=window).fit(np.delete(rows, GONE, axis=0))
    assert (fitted.width_, fitted.C_) == (without.width_, without.C_)
    np.testing.assert_array_equal(fitted.scale_, without.scale_)
    assert_same_model(fitted, without, rtol=0, atol=0)


@both_models
def test_parameters_others_chose_are_kept(model):
    """Forgetting rows that had no part in the choice of the parameters leaves them as they are."""
    fitted = model(window=200).fit(normal(150)).partial_fit(50 * normal(20, seed=1))
    before = fitted.width_, fitted.C_, fitted.scale_.tolist()
    fitted.forget(range(150, 170))
    assert (fitted.width_, fitted.C_, fitted.scale_.tolist()) == before


@both_models
@both_rules
@pytest.mark.parametrize("slides", [[60], [60, 9], [60, 1, 1, 1]], ids=["full", "after a chunk", "after single rows"])
@pytest.mark.parametrize("asked", [{}, {"width": 1.5, "C": 3.0}], ids=["automatic", "given"])
def test_no_trace_of_a_forgotten_row(model, rule, slides, asked):
    """None of the forgotten row's numbers, raw or scaled, is in the saved bytes or in the pickled state."""
    rows = normal(80)
    fitted = learn_in_chunks(model(**asked, threshold=rule, window=60), rows, slides)
    gone = fitted.window_[[5, 58]]
    numbers = [number.tobytes() for number in np.concatenate([gone.ravel(), (gone / fitted.scale_).ravel()])]
    assert any(number in fitted.to_bytes() for number in numbers)
    fitted.p_values(FRESH)
    fitted.forget([5, 58]).p_values(FRESH)
    for state in (fitted.to_bytes(), fitted.__reduce_ex__(4)[2]["_sliding"].now.scaled.tobytes(), everything_in(fitted)):
        assert not any(number in state for number in numbers)


def everything_in(fitted):
    """The bytes of every array that the model holds anywhere, caches included."""
    found, seen, waiting = [], set(), [fitted]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | str | bytes):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            found.append(np.ascontiguousarray(each).tobytes())
            waiting.extend([] if each.base is None else [each.base])
        else:
            waiting.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list | tuple) else [])
            waiting.extend(vars(each).values() if hasattr(each, "__dict__") else [])
    return b"".join(found)


@both_models
def test_indices_may_be_a_mask_or_repeat_or_come_in_any_order(model):
    """The rows to forget are a set: a mask, any order and repetitions mean the same."""
    mask = np.zeros(40, dtype=bool)
    mask[GONE] = True
    plain = model().fit(normal(40)).forget(GONE).to_bytes()
    for spelling in (mask, GONE[::-1], GONE + GONE, np.array(GONE, dtype=np.uint8)):
        assert model().fit(normal(40)).forget(spelling).to_bytes() == plain
    assert model().fit(normal(40)).forget(3).to_bytes() == model().fit(normal(40)).forget([3]).to_bytes()


@pytest.mark.parametrize("indices", [[40], [-1], [0.5], ["a"], [[0, 1]], [True, False], [None], [2**70]])
def test_indices_that_are_none_are_refused(indices):
    """Indices outside the window, fractions, text and masks of another length are refused, and nothing is forgotten."""
    fitted = KernelBoundary().fit(normal(40))
    before = fitted.to_bytes()
    with pytest.raises(InvalidRowsError, match=r"row|indices"):
        fitted.forget(indices)
    assert fitted.to_bytes() == before


@both_models
def test_nothing_can_be_forgotten_before_anything_is_learnt(model):
    """`forget` of a model that has learnt nothing raises NotLearntError."""
    with pytest.raises(NotLearntError, match="learnt no rows"):
        model().forget([0])


def test_a_function_kernel_forgets_too():
    """A model with a kernel function forgets as exactly, and keeps its function."""

    def kernel(X, Y):
        return np.exp(-np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))

    fitted = KernelBoundary(kernel, C=2.0, window=40).fit(normal(50)).forget(GONE)
    assert_same_model(fitted, KernelBoundary(kernel, C=2.0).fit(np.delete(normal(50)[-40:], GONE, axis=0)))
    assert fitted.kernel is kernel


@both_models
def test_no_trace_of_a_retreat_is_left(model, monkeypatch):
    """A row that made the inverse give up, and is forgotten, leaves no turn of the factor behind."""
    works = RingInverse.settle
    monkeypatch.setattr(RingInverse, "settle", lambda self, *given: self.replaced != 4 and works(self, *given))
    slid = learn_in_chunks(model(width=1.5, C=1.0, window=45).fit(normal(45)), normal(20, seed=1), [1] * 9)
    resting = slid._sliding.rest
    assert 0 < resting <= 45
    slid.partial_fit(normal(20, seed=2))
    assert slid._sliding.rest == resting - 20
    slid.forget([44])
    twin = model(width=1.5, C=1.0, window=45).fit(slid.window_)
    assert slid._sliding.rest == 0
    np.testing.assert_array_equal(slid.score_samples(normal(9)), twin.score_samples(normal(9)))


@both_models
def test_parameters_outlive_the_rows_that_did_not_help_to_choose_them(model):
    """Automatic parameters stay when only later rows are forgotten, however the rows that chose them have left the window since."""
    slid = model(window=150).fit(normal(150)).partial_fit(3 * normal(120, seed=1))
    slid.forget(range(5))  # of those that chose
    slid = model(window=150).fit(normal(150)).partial_fit(3 * normal(120, seed=1))
    kept = slid.width_, slid.C_, slid.scale_.tolist()
    slid.forget(range(40, 60))
    assert (slid.width_, slid.C_, slid.scale_.tolist()) == kept
    slid.forget([3])
    assert (slid.width_, slid.C_, slid.scale_.tolist()) != kept
    larger = model(window=150).fit(normal(150)).partial_fit(3 * normal(149, seed=1)).partial_fit(normal(40, seed=2))
    kept = larger.width_
    assert larger.forget([0, 5, 149]).width_ == kept
