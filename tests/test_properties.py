"""What holds for any rows, any cuts and any order of calls (Hypothesis)."""

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pairs import KERNELS, MODELS, every_kernel, normal

from oneclass import Watcher
from oneclass.errors import NoAlarmWarning
from oneclass.kernels import RBF
from oneclass.threshold import leave_one_out_threshold, most_at_rate, p_values, training_threshold
from oneclass.window import Ring, counted, overwritten

pytestmark = pytest.mark.filterwarnings("ignore::oneclass.errors.NoAlarmWarning")  # windows here are small

models = st.sampled_from(list(MODELS.values()))
rules = st.sampled_from(["leave-one-out", "training"])
# Quarters from -4 to 4: copies are frequent, and differences are exact.
cells = st.integers(-16, 16).map(lambda quarter: quarter / 4)
rates = st.integers(1, 999).map(lambda thousandths: thousandths / 1000)


def rows_of(least, most, features=2):
    return st.integers(least, most).flatmap(lambda count: arrays(float, (count, features), elements=cells))


def cuts_of(total):
    """Sizes of calls that add up to `total`."""
    return st.lists(st.integers(1, total), min_size=1, max_size=12).map(lambda sizes: cut(total, sizes))


def cut(total, sizes):
    ends = [0]
    while ends[-1] < total:
        ends.append(min(total, ends[-1] + sizes[(len(ends) - 1) % len(sizes)]))
    return list(pairwise(ends))


def columns(parts):
    return {name: np.concatenate([part.to_dict()[name] for part in parts]) for name in parts[0].to_dict()}


@given(models, rules, rows_of(3, 40), st.data())
def test_sliding_is_fitting_the_last_window(model, rule, rows, data):
    """After any chunks the model is the one fitted on the last rows, whatever the window."""
    window = data.draw(st.integers(2, len(rows) + 2))
    asked = {"width": 1.5, "C": 2.0, "threshold": rule, "alarm_rate": 0.2}
    slid = model(window=window, **asked)
    for start, end in data.draw(cuts_of(len(rows))):
        slid.partial_fit(rows[start:end])
    fitted = model(**asked).fit(rows[-window:])
    np.testing.assert_array_equal(slid.window_, fitted.window_)
    np.testing.assert_allclose(slid.score_samples(rows), fitted.score_samples(rows), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slid.offset_, fitted.offset_, rtol=1e-9)


@given(models, rows_of(2, 25), rows_of(1, 12), st.booleans())
def test_forgetting_what_was_just_learnt_is_as_if_nothing_had_happened(model, rows, chunk, is_automatic):
    """Learning a chunk into free slots and forgetting it gives the bytes there were before."""
    asked = {} if is_automatic else {"width": 1.5, "C": 2.0}
    before = model(window=60, **asked).fit(rows).to_bytes()
    after = model(window=60, **asked).fit(rows).partial_fit(chunk).forget(range(len(rows), len(rows) + len(chunk)))
    assert after.to_bytes() == before


@given(models, rows_of(3, 30), st.data())
def test_forgetting_is_never_having_learnt(model, rows, data):
    """Forgetting any rows of a window gives, to rounding, the model fitted without them, automatic parameters included."""
    gone = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=len(rows) - 2))
    rest = np.delete(rows, sorted(gone), axis=0)
    forgotten, fitted = model(window=len(rows)).fit(rows).forget(sorted(gone)), model(window=len(rows)).fit(rest)
    assert forgotten.width_ == fitted.width_
    np.testing.assert_allclose(forgotten.score_samples(rows), fitted.score_samples(rows), rtol=1e-9, atol=1e-12)


@given(models, st.sampled_from(KERNELS), rows_of(1, 30), st.data())
def test_scoring_is_pure_and_each_row_is_scored_alone(model, kernel, rows, data):
    """Scores have the same bits in any batch and any order, and asking for them changes no byte of the model."""
    fitted = model(kernel, C=0.5).fit(normal(40, features=2))
    before, together = fitted.to_bytes(), fitted.score_samples(rows)
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    np.testing.assert_array_equal(fitted.score_samples(rows[order]), together[order])
    parts = [fitted.score_samples(rows[start:end]) for start, end in data.draw(cuts_of(len(rows)))]
    np.testing.assert_array_equal(np.concatenate(parts), together)
    fitted.p_values(rows), fitted.expected(rows), fitted.explain(rows)
    assert fitted.to_bytes() == before


@given(rows_of(3, 30), rows_of(1, 10), st.integers(-30, 30))
def test_scaling_rows_and_width_together_changes_no_boundary_score(rows, fresh, exponent):
    """Rows and width in other units, by a power of two, give the same bits of the boundary scores and the same offset."""
    unit = 2.0**exponent
    plain = MODELS["boundary"](width=1.5, C=3.0, alarm_rate=0.2).fit(rows)
    scaled = MODELS["boundary"](width=1.5 * unit, C=3.0, alarm_rate=0.2).fit(rows * unit)
    np.testing.assert_array_equal(scaled.score_samples(fresh * unit), plain.score_samples(fresh))
    assert scaled.offset_ == plain.offset_


@given(rows_of(4, 30), st.integers(1, 10**6).map(lambda whole: whole / 1000))
def test_scaling_by_any_number_changes_boundary_scores_by_rounding_alone(rows, unit):
    """The same holds to rounding for a factor that is no power of two."""
    plain = MODELS["boundary"](width=1.5, C=3.0).fit(rows)
    scaled = MODELS["boundary"](width=1.5 * unit, C=3.0).fit(rows * unit)
    np.testing.assert_allclose(scaled.score_samples(rows * unit), plain.score_samples(rows), rtol=1e-9, atol=1e-12)


@given(
    models,
    rules,
    st.sampled_from(["all", "accepted"]),
    st.integers(2, 60),
    st.integers(1, 60),
    st.integers(40, 140),
    st.booleans(),
    st.data(),
)
@example(MODELS["boundary"], "leave-one-out", "all", 45, 1, 140, False, None)
@example(MODELS["reconstruction"], "training", "all", 45, 1, 140, False, None)
@example(MODELS["boundary"], "training", "accepted", 45, 1, 140, False, None)
def test_cuts_and_saves_change_no_bit_of_a_watcher(model, rule, learn, window, chunk, count, is_automatic, data):
    """However the rows are cut into calls, saved and loaded in between, verdicts and bytes of a watcher are the same."""
    rows = normal(count, features=2, seed=count)
    asked = {} if is_automatic else {"width": 1.5, "C": 2.0}

    def watcher():
        return Watcher(model(threshold=rule, alarm_rate=0.2, window=window, **asked), learn=learn, chunk=chunk)

    whole, pieces = watcher(), watcher()
    together = whole.watch(rows).to_dict()
    parts = []
    for start, end in cut(count, [1, 7, 2]) if data is None else data.draw(cuts_of(count)):
        parts.append(pieces.watch(rows[start:end]))
        if data is None or data.draw(st.booleans()):
            pieces = Watcher.from_bytes(pieces.to_bytes())
    for name, column in columns(parts).items():
        np.testing.assert_array_equal(column, together[name], err_msg=name)
    assert pieces.to_bytes() == whole.to_bytes()


@given(models, rules, st.integers(1, 50), st.data())
def test_labels_and_corrections_do_not_depend_on_cuts_either(model, rule, chunk, data):
    """With labels, late labels and saves in between, the same calls give the same bits, however the rows between them were cut."""
    rows, labels = (
        normal(160, features=2),
        np.array(data.draw(st.lists(st.sampled_from([-1, 0, 0, 0, 1]), min_size=160, max_size=160))),
    )
    late = data.draw(st.dictionaries(st.integers(0, 99), st.sampled_from([-1, 1]), min_size=1, max_size=15))

    def run(cuts):
        watcher = Watcher(model(threshold=rule, alarm_rate=0.2, window=45), chunk=chunk)
        parts = [watcher.watch(rows[start:end], labels[start:end]) for start, end in cuts if end <= 100]
        known = watcher.confirm(list(late), list(late.values()))
        watcher = Watcher.from_bytes(watcher.to_bytes())
        parts += [watcher.watch(rows[start:end], labels[start:end]) for start, end in cuts if start >= 100]
        return columns(parts), known, watcher.to_bytes()

    one, known, data_of_one = run([(0, 100), (100, 160)])
    pieces = data.draw(cuts_of(100)) + [(100 + start, 100 + end) for start, end in data.draw(cuts_of(60))]
    other, known_too, data_of_other = run(pieces)
    for name, column in one.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)
    np.testing.assert_array_equal(known, known_too)
    assert data_of_one == data_of_other


@every_kernel
@given(X=rows_of(1, 12, features=3), Y=rows_of(1, 12, features=3))
def test_kernels_are_symmetric_positive_and_pairwise(kernel, X, Y):
    """A kernel matrix is symmetric, without negative eigenvalue, with `diagonal` for diagonal; entries have the same bits alone."""
    K, cross = kernel(X, X), kernel(X, Y)
    size = np.abs(K).max() + 1.0
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    np.testing.assert_allclose(cross, kernel(Y, X).T, rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * size * len(K)
    if kernel.is_pairwise:
        np.testing.assert_array_equal(K, K.T)
        for i, j in np.ndindex(*cross.shape):
            assert kernel(X[i : i + 1], Y[j : j + 1])[0, 0] == cross[i, j]


@every_kernel
@given(rows=rows_of(1, 5, features=3), others=rows_of(1, 6, features=3))
def test_gradients_are_differences(kernel, rows, others):
    """The gradient is the limit of differences wherever there is one: the Laplacian has none where two rows share a value."""
    assume(not any((rows[:, None] == others).ravel()))
    weights = normal(len(rows), features=len(others))
    steps = 1e-5 * np.eye(3)
    up, down = (
        np.stack([(weights * kernel(rows + sign * step, others)).sum(axis=1) for step in steps], axis=1) for sign in (1, -1)
    )
    found = kernel.gradient(rows, others, weights)
    np.testing.assert_allclose(found, (up - down) / 2e-5, rtol=1e-5, atol=1e-6 * (1 + np.abs(found).max()))


def slots_of(parts):
    return [slot for part in parts for slot in range(part.start, part.stop)]


@given(st.integers(1, 30), st.lists(st.integers(1, 29), max_size=20))
def test_a_ring_holds_the_last_rows_in_order(capacity, counts):
    """By age the slots of a ring hold the last rows placed, none was moved, and a chunk lies in one part or two."""
    ring, rows, placed = Ring(capacity), np.empty((0, 1)), 0
    for count in counts:
        if not ring.can_place(count):
            assert ring.size + count > capacity
            continue
        ring, parts = ring.place(count)
        before, taken = rows.copy(), slots_of(parts)
        assert len(parts) <= 2
        assert len(set(taken)) == count
        assert slots_of(counted(parts)) == list(range(count))
        rows = overwritten(rows, parts, np.arange(placed, placed + count, dtype=float)[:, None])
        placed += count
        assert rows[ring.by_age, 0].tolist() == list(range(placed - ring.size, placed))
        others = [slot for slot in range(len(before)) if slot not in taken]
        np.testing.assert_array_equal(rows[others], before[others])
        assert ring.size == len(rows) == min(capacity, placed)
        assert ring.is_full == (placed >= capacity)


def test_a_ring_without_capacity_only_grows():
    """Without a capacity every chunk has a place behind the others."""
    ring = Ring(None)
    for count in (1, 30, 500):
        assert ring.can_place(count)
        ring, parts = ring.place(count)
        assert slots_of(parts) == list(range(ring.size - count, ring.size))
        assert not ring.is_full
    assert ring.by_age.tolist() == list(range(531))


@given(st.integers(1, 10_000), rates)
@example(100, 0.29)
@example(20, 0.05)
@example(1, 0.999)
def test_the_share_of_rows_is_exact(n, rate):
    """The most rows that are no more than the rate are ⌊η n⌋ of the decimal that was typed, without a rounding getting in."""
    assert most_at_rate(n, rate) == math.floor(Fraction(str(rate)) * n)


@given(arrays(float, st.integers(1, 60), elements=cells.map(abs)), rates)
def test_thresholds_flag_what_their_definition_says(distances, rate):
    """No more than ⌊η n⌋ distances lie above the training θ; d > the leave-one-out θ exactly when its p-value is at most η."""
    ascending = np.sort(distances)
    n, eta = len(ascending), Fraction(str(rate))
    above = int((ascending > training_threshold(ascending, rate)).sum())
    assert above <= math.floor(eta * n)
    assert int((ascending >= training_threshold(ascending, rate)).sum()) > math.floor(eta * n)
    theta = leave_one_out_threshold(ascending, rate)
    probes = np.concatenate([ascending, np.nextafter(ascending, np.inf), np.nextafter(ascending, -np.inf), [0.0, 99.0]])
    shares = [Fraction(1 + int((ascending >= probe).sum()), n + 1) for probe in probes]
    np.testing.assert_array_equal(p_values(ascending, probes), [float(share) for share in shares])
    np.testing.assert_array_equal(probes > theta, [share <= eta for share in shares])
    assert (theta == np.inf) == ((n + 1) * eta < 1)


@given(models, st.integers(2, 30), rates)
def test_the_warning_names_the_least_rows_that_do(model, n, rate):
    """The number of rows the warning asks for is the smallest with (n + 1) · alarm_rate >= 1."""
    fitted = model(RBF(1.0), alarm_rate=rate)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", NoAlarmWarning)
        fitted.fit(normal(n))
    needed = math.ceil(1 / Fraction(str(rate))) - 1
    assert [f"before {needed} rows" in str(each.message) for each in said] == ([True] if n < needed else [])
