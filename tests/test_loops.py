"""The compiled loops and SciPy, which stands in for them, do the same: each of these claims holds for both."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from pairs import both_models, both_rules, learn_in_chunks, normal

from oneclass import loops
from oneclass.symmetric import Symmetric

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 31, 50, 97, 100, 150, 151, 200]


needs_compiled = pytest.mark.skipif(not loops.is_compiled(), reason="no compiled loops: no compiler, or a processor without AVX2")


@pytest.fixture(params=[pytest.param("compiled", marks=needs_compiled), "SciPy"])
def way(request, monkeypatch):
    if request.param == "SciPy":
        monkeypatch.setattr(loops, "_loops", None)


each_way = pytest.mark.usefixtures("way")


def positive_definite(n):
    X = normal(n, features=n, seed=n)
    return X @ X.T + np.eye(n)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="nothing to ask without gcc on Linux")
def test_they_are_compiled_where_that_is_possible():
    """With gcc on Linux, and a processor with AVX2 and FMA, the installation has the compiled loops."""
    processor = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    assert loops.is_compiled() == ("avx2" in processor and "fma" in processor)


@each_way
@pytest.mark.parametrize(("m", "n", "d"), [(1, 1, 1), (3, 7, 2), (5, 8, 64), (2, 20, 65), (50, 150, 8), (9, 33, 200), (0, 5, 3)])
def test_distances_are_sums_over_the_features(m, n, d):
    """Squared and city-block distances are what their formulas say, times the factor."""
    X, Y = normal(m, features=d), normal(n, features=d, seed=1)
    gaps = X[:, None] - Y
    np.testing.assert_allclose(loops.squared_distances(X, Y, -2.0), -2.0 * (gaps**2).sum(axis=2), rtol=1e-13)
    np.testing.assert_allclose(loops.cityblock_distances(X, Y, 0.5), 0.5 * np.abs(gaps).sum(axis=2), rtol=1e-13)


@each_way
@pytest.mark.parametrize("d", [1, 3, 8, 64, 65, 130])
@pytest.mark.parametrize("distances", ["squared_distances", "cityblock_distances"])
def test_a_distance_depends_on_its_two_rows_alone(distances, d):
    """Whatever else is in the call, and in which order the two are named: the same bits; and exactly 0 between equal rows."""
    distances = getattr(loops, distances)
    X = normal(45, features=d) + 1e3
    whole = distances(X, X, -1.0 / 3.0)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(np.diag(whole), np.zeros(45))
    for rows, columns in ((slice(0, 1), slice(0, 1)), (slice(3, 20), slice(40, 45)), (slice(0, 45, 7), slice(1, 45, 2))):
        np.testing.assert_array_equal(distances(X[rows], X[columns], -1.0 / 3.0), whole[rows, columns])


@each_way
@pytest.mark.parametrize("n", SIZES)
def test_a_factor_is_the_cholesky_factor(n):
    """The lower triangle is that of NumPy's factor of the matrix with its ridge, whatever stands below the diagonal."""
    matrix, ridge, factor = positive_definite(n), np.linspace(0.5, 2.0, n), np.empty((n, n), order="F")
    given = matrix + np.tril(np.full((n, n), 7.0), -1)
    before = given.copy()
    assert loops.cholesky(given, ridge, factor) == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix + np.diag(ridge)), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(given, before)


@each_way
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("pivot", [-1.0, 0.0])
def test_the_first_row_that_is_not_positive_definite_is_named(n, pivot):
    """The answer is the 1-based row of the first pivot that is not positive, in whichever part of a panel it stands."""
    for row in {0, n // 2, n - 1}:
        matrix = positive_definite(n)
        matrix[row, row] = pivot
        assert loops.cholesky(matrix, np.zeros(n), np.empty((n, n), order="F")) == row + 1


@each_way
@pytest.mark.parametrize("n", SIZES)
def test_an_inverse_is_lower_triangular_too(n):
    """The inverse of the lower triangle, with exact zeros above, and blind to what stood there."""
    lower = np.tril(normal(n, features=n)) / n + np.eye(n)
    inverse = loops.invert_lower(np.asfortranarray(lower + np.triu(np.full((n, n), np.nan), 1)))
    np.testing.assert_allclose(inverse @ lower, np.eye(n), atol=1e-11)
    np.testing.assert_array_equal(np.triu(inverse, 1), np.zeros((n, n)))


def updates(n, count):
    return np.random.default_rng(n).normal(size=(count, 2, n)) * 0.1


@each_way
@pytest.mark.parametrize("n", SIZES)
def test_a_symmetric_matrix_is_updated_and_multiplied(n):
    """After updates of rank two, columns, diagonal and products are those of the whole matrix; what stood above does not matter."""
    whole, values = positive_definite(n), normal(n, features=3, seed=5)
    matrix = Symmetric(np.asfortranarray(np.tril(whole) + np.triu(np.full((n, n), 7.0), 1)))
    for first, second in updates(n, 3):
        matrix.add(first, second)
        whole += np.outer(first, second) + np.outer(second, first)
        np.testing.assert_allclose(matrix.diagonal(), np.diag(whole), rtol=1e-12)
        np.testing.assert_allclose(matrix.times(values[:, 0]), whole @ values[:, 0], rtol=1e-10, atol=1e-10)
    matrix.add(first, second)
    whole += np.outer(first, second) + np.outer(second, first)
    np.testing.assert_allclose(matrix.times(values), whole @ values, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(matrix.column(n // 2), whole[n // 2], rtol=1e-12)


@each_way
@pytest.mark.parametrize("n", SIZES)
def test_when_an_update_is_written_makes_no_difference(n):
    """Read in between or not, the array and the products have the same bits, zeros of either sign included."""
    start = np.asfortranarray(positive_definite(n))
    start[n // 2 :] *= -0.0
    read, unread = Symmetric(start.copy(order="F")), Symmetric(start.copy(order="F"))
    for first, second in updates(n, 4):
        first[: n // 3] = 0.0
        for matrix in (read, unread):
            matrix.add(first, second)
        assert read.lower.tobytes() == read.lower.tobytes()
        assert read.times(second).tobytes() == unread.times(second).tobytes()
    assert np.tril(read.lower).tobytes() == np.tril(unread.lower).tobytes()


@each_way
def test_reading_a_matrix_does_not_write_into_what_was_read_before():
    """`lower` with an update to be written is a new array: who holds the old one keeps it as it was."""
    matrix = Symmetric(np.asfortranarray(np.eye(9)))
    before = matrix.lower
    matrix.add(np.ones(9), np.ones(9))
    assert matrix.lower is not before
    np.testing.assert_array_equal(before, np.eye(9))


@needs_compiled
@both_models
@both_rules
@pytest.mark.parametrize("window", [60, 230])
def test_models_agree_both_ways(monkeypatch, model, rule, window):
    """A model that slid by SciPy has the scores and the threshold of one that slid by the compiled loops, to rounding."""
    rows, chunks, chosen = normal(3 * window), [25] * (3 * window // 25), {"C": 10.0, "threshold": rule, "window": window}
    compiled = learn_in_chunks(model(width=2.0, **chosen), rows, chunks)
    scores, offset = compiled.score_samples(rows), compiled.offset_
    monkeypatch.setattr(loops, "_loops", None)
    by_scipy = learn_in_chunks(model(width=2.0, **chosen), rows, chunks)
    np.testing.assert_allclose(by_scipy.score_samples(rows), scores, rtol=1e-9, atol=1e-12)
    assert by_scipy.offset_ == pytest.approx(offset, rel=1e-10)


@needs_compiled
def test_sizes_that_do_not_fit_are_refused():
    """The compiled functions look at the sizes of what they are given before they touch it."""
    compiled, square, out = loops._loops, np.ones((3, 3)), np.ones((2, 3))
    for call in (
        lambda: compiled.squared(square, 3, square, 3, 2, 1.0, square),
        lambda: compiled.cityblock(square, 3, square, 3, 3, 1.0, out),
        lambda: compiled.squared(square, -3, square, 3, -3, 1.0, square),
        lambda: compiled.cholesky(square, out[0], 4, square),
        lambda: compiled.cholesky(square, out, 3, square),
        lambda: compiled.cholesky(square, out[0], 3, out),
        lambda: compiled.invert(square, 3, out),
        lambda: compiled.add_and_multiply(square, 3, None, None, out, out),
        lambda: compiled.add_and_multiply(square, 3, out[0], None, out[0], out[1]),
        lambda: compiled.add_and_multiply(square, 3, out, out, out[0], out[1]),
    ):
        with pytest.raises(ValueError, match="not"):
            call()
    with pytest.raises(ValueError, match="do not fit"):
        loops.squared_distances(square, np.ones((3, 4)))
