"""The linear algebra under the models: the factor in ring slots, the explicit inverse, and the threads they run on."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
import reference
import scipy.linalg
from pairs import both_models, normal
from threadpoolctl import threadpool_info, threadpool_limits

from oneclass import KernelBoundary, Watcher
from oneclass.factor import BLOCK, ONE_BLOCK_UP_TO, Factor, IndefiniteError, block_size
from oneclass.inverse import RingInverse
from oneclass.threads import one_blas_thread
from oneclass.window import Ring, overwritten


def kernel_of(rows):
    return reference.rbf(rows, rows, 1.7)


def ridge_of(size):
    """A ridge that differs from slot to slot, as rows of different weight will have it."""
    return 0.1 + np.arange(size) % 5 / 10.0


def lower_of(factor):
    """L of a factor, put together from its blocks."""
    lower = np.zeros((factor.size, factor.size))
    for index, diagonal in enumerate(factor._diagonal):
        start = index * factor.block
        end = start + len(diagonal)
        lower[start:end, start:end] = np.tril(diagonal)  # what is above it means nothing
        lower[start:end, :start] = factor._front[index].T
    return lower


def factor_of(kernel, block):
    factor = Factor(block)
    factor.write(slice(0, len(kernel)), kernel)
    factor.factorise(ridge_of(len(kernel)))
    return factor


def assert_same_bits(one, other):
    """L, a solution and the diagonal of the inverse are equal to the last bit."""
    targets = normal(one.size, features=2, seed=5)
    np.testing.assert_array_equal(lower_of(one), lower_of(other))
    np.testing.assert_array_equal(one.solve(targets), other.solve(targets))
    np.testing.assert_array_equal(one.inverse_diagonal(), other.inverse_diagonal())


sizes_and_blocks = pytest.mark.parametrize(("n", "block"), [(1, 10), (10, 10), (37, 10), (40, 10), (95, 30), (250, 100), (60, 7)])


@sizes_and_blocks
def test_a_factor_is_that_of_scipy(n, block):
    """L, solutions of one column or several, and the diagonal of the inverse are those of SciPy, whatever the block size."""
    kernel, ridge = kernel_of(reference.rows_with_copies(n, features=3, seed=1)), ridge_of(n)
    phi = kernel + np.diag(ridge)
    factor = factor_of(kernel, block)
    np.testing.assert_allclose(lower_of(factor), scipy.linalg.cholesky(phi, lower=True), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diag(np.linalg.inv(phi)), rtol=1e-11)
    for targets in (np.ones(n), normal(n, features=4)):
        np.testing.assert_allclose(factor.solve(targets), np.linalg.solve(phi, targets), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("block", [7, 10, 40, 64])
@pytest.mark.parametrize("asks_every", [1, 3, 30])
def test_a_factor_has_no_history(block, asks_every):
    """After any writes (growth, chunks over the end of the ring) a factor has the bits of one given its matrix in one piece."""
    rng, rows, ring = np.random.default_rng(block), np.empty((0, 3)), Ring(64)
    factor = Factor(block)
    for step in range(30):
        count = int(rng.integers(1, min(30, 65 - ring.size if not ring.is_full else 30)))
        ring, slots = ring.place(count)
        rows = overwritten(rows, slots, normal(count, seed=100 + step))
        kernel = kernel_of(rows)
        for part in slots:
            factor.write(part, kernel[part])
        factor.factorise(ridge_of(len(rows)))
        if step % asks_every == 0:
            assert_same_bits(factor, factor_of(kernel, block))
    assert ring.is_full
    assert_same_bits(factor, factor_of(kernel_of(rows), block))


def test_what_lies_in_front_of_a_write_is_not_computed_again():
    """A write leaves the blocks in front of it as they are: spoilt on purpose, they stay spoilt."""
    kernel = kernel_of(normal(40))
    factor = factor_of(kernel, 10)
    factor._diagonal[0][0, 0] += 1.0
    spoilt = factor._diagonal[0].copy()
    factor.write(slice(25, 30), kernel[25:30])
    factor.factorise(ridge_of(40))
    np.testing.assert_array_equal(factor._diagonal[0], spoilt)
    factor.write(slice(3, 5), kernel[3:5])
    factor.factorise(ridge_of(40))
    np.testing.assert_array_equal(lower_of(factor), lower_of(factor_of(kernel, 10)))


def test_behind_a_write_only_the_columns_from_it_on_are_computed_again():
    """Of the rows behind a write L keeps the columns in front of it, and the sums that make L⁻¹ go on: spoilt, they stay spoilt."""
    kernel = kernel_of(normal(40))
    sound, spoilt = factor_of(kernel, 10), factor_of(kernel, 10)
    for first in (10, 20):
        for factor in (sound, spoilt):
            factor.write(slice(first, first + 10), kernel[first : first + 10])
            factor.factorise(ridge_of(40))
            factor.inverse_diagonal()  # puts sums aside for a chunk that begins where this one ended
        if first == 10:
            spoilt._front[3][5, 0] += 1e-6
            spoilt._sums[3][7, 0] += 1.0
    assert spoilt._front[3][5, 0] == sound._front[3][5, 0] + 1e-6
    assert spoilt._sums[3][7, 0] == pytest.approx(sound._sums[3][7, 0] + 1.0, abs=1e-4)
    spoilt.write(slice(3, 5), kernel[3:5])
    spoilt.factorise(ridge_of(40))
    assert_same_bits(spoilt, sound)


@pytest.mark.parametrize("bad", [0, 9, 10, 33, 39])
def test_an_indefinite_matrix_is_refused_at_its_slot(bad):
    """The first slot at which the matrix stops being positive definite is named; mended, the factor is as if nothing had been."""
    kernel = kernel_of(normal(40))
    factor = factor_of(kernel, 10)
    broken = kernel.copy()
    broken[bad, bad] = -5.0
    factor.write(slice(bad, bad + 1), broken[bad : bad + 1])
    with pytest.raises(IndefiniteError, match=f"at row {bad}$") as info:
        factor.factorise(ridge_of(40))
    assert info.value.slot == bad
    factor.write(slice(bad, bad + 1), kernel[bad : bad + 1])
    factor.factorise(ridge_of(40))
    assert_same_bits(factor, factor_of(kernel, 10))


def test_an_ill_matrix_of_copies_is_solved_as_well_as_scipy_does():
    """With a fifth of the rows copied and C = 1e8 the backward error stays at rounding, of one block and of several."""
    rows = reference.rows_with_copies(250, features=2, seed=2)
    phi = kernel_of(rows) + np.eye(250) / 1e8
    for block in (250, 100, 50):
        factor = Factor(block)
        factor.write(slice(0, 250), kernel_of(rows))
        factor.factorise(np.full(250, 1e-8))
        solution = factor.solve(np.ones(250))
        backward = np.abs(phi @ solution - 1).max() / (np.abs(phi).sum(axis=1).max() * np.abs(solution).max())
        assert backward < 1e-14


def test_blocks_are_the_whole_window_or_a_few_equal_parts():
    """A small window is one block; a larger one blocks of equal size but for rounding, 100 rows at most, by its capacity alone."""
    assert block_size(None) == BLOCK
    for capacity in range(2, ONE_BLOCK_UP_TO + 1):
        assert block_size(capacity) == capacity
    for capacity in range(ONE_BLOCK_UP_TO + 1, 5001, 7):
        size = block_size(capacity)
        blocks = -(-capacity // size)
        assert BLOCK / 2 < size <= BLOCK
        assert 0 <= blocks * size - capacity < blocks


def whole(inverse):
    """Both triangles of P: only the lower one means anything."""
    lower = np.tril(inverse.inverse)
    return lower + np.tril(lower, -1).T


@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize(("C", "tolerance"), [(1.0, 1e-12), (1e4, 1e-8)])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_an_explicit_inverse_is_that_of_numpy_over_a_turn(features, C, tolerance, share):
    """While each row of the ring is overwritten once, P, its diagonal and β stay those of a fresh inverse, copies or not."""
    rows = reference.rows_with_copies(100, features=features, seed=3, share=share)
    now, ridge = rows[:50].copy(), np.full(50, 1 / C)
    inverse = RingInverse.afresh(kernel_of(now), ridge, now.copy())
    for slot in range(50):
        now[slot] = rows[50 + slot]
        kernel = kernel_of(now)
        assert inverse.replace(slot, kernel[slot], ridge, now[slot])
        assert inverse.settle(1, ridge, now)
        fresh = np.linalg.inv(kernel + np.diag(ridge))
        size = np.abs(fresh).max()
        np.testing.assert_allclose(whole(inverse), fresh, rtol=0, atol=tolerance * size)
        np.testing.assert_allclose(inverse.diagonal(), np.diag(fresh), rtol=0, atol=tolerance * size)
        np.testing.assert_allclose(inverse.solution, fresh @ now, rtol=0, atol=tolerance * size)
    assert inverse.replaced == 50


def test_an_inverse_of_one_target_is_the_boundary_models():
    """With one target per row β is a vector, and equals the solution of the system."""
    now, ridge = normal(40), ridge_of(40)
    inverse = RingInverse.afresh(kernel_of(now), ridge, np.ones(40))
    now[7] = normal(1, seed=1)
    ridge[7] = 0.3
    assert inverse.replace(7, kernel_of(now)[7], ridge, 1.0)
    np.testing.assert_allclose(inverse.solution, np.linalg.solve(kernel_of(now) + np.diag(ridge), np.ones(40)), rtol=1e-9)


def test_a_pivot_that_is_not_positive_is_refused_unchanged():
    """A row that would make the matrix indefinite is refused, and P, β and the kernel are as they were."""
    now = normal(40)
    inverse = RingInverse.afresh(kernel_of(now), np.full(40, 1e-3), np.ones(40))
    before = inverse.inverse.copy(), inverse.solution.copy(), inverse.kernel.copy(), inverse.replaced
    row = kernel_of(now)[3].copy()
    row[5] = -4.0
    assert not inverse.replace(5, row, np.full(40, 1e-3), 1.0)
    for one, other in zip(before, (inverse.inverse, inverse.solution, inverse.kernel, inverse.replaced), strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_inverse_of_an_indefinite_matrix():
    """A matrix that cannot be factorised has no inverse to begin with."""
    assert RingInverse.afresh(np.diag([1.0, -2.0]), np.zeros(2), np.ones(2)) is None


def test_a_solution_that_has_drifted_is_refined_or_given_up():
    """Settling mends a β that is slightly off, and gives up where P itself is wrong."""
    now, ridge = normal(40), np.full(40, 0.1)
    exact = np.linalg.solve(kernel_of(now) + np.diag(ridge), np.ones(40))
    inverse = RingInverse.afresh(kernel_of(now), ridge, np.ones(40))
    inverse.solution = exact * (1 + 1e-7)
    assert inverse.settle(1, ridge, np.ones(40))
    np.testing.assert_allclose(inverse.solution, exact, rtol=1e-10)
    wrong = RingInverse(inverse.kernel, np.zeros((40, 40), order="F"), exact * (1 + 1e-3), inverse.replaced)
    assert not wrong.settle(1, ridge, np.ones(40))


def blas_threads():
    return {library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_is_held_to_one_thread():
    """BLAS has one thread inside the context, nested or not; afterwards what it had before."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert set(before.values()) == {2}
        with one_blas_thread():
            assert set(blas_threads().values()) == {1}
            with one_blas_thread():
                assert set(blas_threads().values()) == {1}
            assert set(blas_threads().values()) == {1}
        assert blas_threads() == before


def test_threads_are_given_back_after_an_error():
    """An exception inside the context does not leave the process on one thread."""
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert set(blas_threads().values()) == {2}


def in_another_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def inside_and_after():
    with one_blas_thread():
        inside = set(blas_threads().values())
    return inside, set(blas_threads().values())


def test_any_thread_holds_blas_to_one_thread():
    """The context does the same in whatever thread of the process, one after the other."""
    with threadpool_limits(2, user_api="blas"):
        for work in (inside_and_after, lambda: in_another_thread(inside_and_after), inside_and_after):
            assert work() == ({1}, {2})


def test_the_last_of_several_threads_gives_blas_back():
    """While any thread is inside BLAS has one thread; the last one out, which need not be the first one in, gives it back."""
    entered, may_leave = Event(), Event()

    def other():
        with one_blas_thread():
            entered.set()
            assert may_leave.wait(60)
        return set(blas_threads().values())

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        with one_blas_thread():
            found = pool.submit(other)
            assert entered.wait(60)
        assert set(blas_threads().values()) == {1}
        may_leave.set()
        assert found.result() == {2}
        assert set(blas_threads().values()) == {2}


def test_limits_of_others_go_on_working():
    """Once the context has been used, another thread can set its own limit with threadpoolctl."""

    def limited():
        with threadpool_limits(1, user_api="blas"):
            return set(blas_threads().values())

    with one_blas_thread():
        pass
    assert in_another_thread(limited) == {1}


@both_models
@pytest.mark.parametrize(("window", "chunk"), [(None, 20), (600, 1)])
def test_a_large_window_has_the_same_bits_however_it_is_cut(model, window, chunk):
    """Beyond the sizes at which BLAS begins to use a second thread, cuts and saves change no bit, if it has two to use."""
    rows = normal(800, features=4)
    with threadpool_limits(2, user_api="blas"):
        whole, cut = (Watcher(model(C=100.0, window=window), chunk=chunk, warm_up=300) for _ in range(2))
        scores, parts = whole.watch(rows).score, []
        for start in range(0, 800, 111):
            parts.append(cut.watch(rows[start : start + 111]).score)
            cut = Watcher.from_bytes(cut.to_bytes())
    np.testing.assert_array_equal(np.concatenate(parts), scores)
    assert cut.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("chunk", [1, 20])
def test_a_stream_has_the_same_bits_in_any_thread(chunk):
    """Verdicts do not depend on the thread that watches, nor on how many watch at the same time."""

    def watched(seed):
        return Watcher(KernelBoundary(window=60), chunk=chunk).watch(normal(200, seed=seed)).score

    alone = [watched(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(watched, range(4)))
    np.testing.assert_array_equal(together, alone)


def test_refinement_recovers_what_products_with_inverted_blocks_lose():
    """At n = 400 and a ridge of 1e-8 one step of refinement takes the error of β below a third of what it was."""
    rows = reference.rows_with_copies(400, features=3, seed=1)
    kernel, ridge, targets = reference.rbf(rows, rows, 2.4), np.full(400, 1e-8), np.ones(400)
    factor = Factor(100)
    factor.write(slice(0, 400), kernel)
    factor.factorise(ridge)
    assert factor.is_hasty
    assert factor.peak == kernel.diagonal().max()
    lower = reference.lower_factor(kernel.astype(np.longdouble) + np.diag(ridge.astype(np.longdouble)))
    exact = reference.solve_upper(lower, reference.solve_lower(lower, targets.astype(np.longdouble)))
    beta = factor.solve(targets)
    errors = [float(np.abs(each - exact).max()) for each in (beta, factor.refined(beta, targets, ridge))]
    assert errors[1] < errors[0] / 3
