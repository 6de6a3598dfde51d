"""What the paper prints and what holds: each claim of `mathematics.md` about a misprint or a loss, as a test."""

from functools import partial

import numpy as np
import pytest
import reference
from reference import Array, Spelling

needs_long_double = pytest.mark.skipif(not reference.LONG_DOUBLE_IS_WIDER, reason="long double is float64 here")


def well_conditioned(rows: int) -> Array:
    """Phi of standard normal rows at C = 1: its condition number is below 100."""
    X = np.random.default_rng(47).standard_normal((rows, 3))
    return reference.regularised(X, partial(reference.rbf, width=1.5), 1.0)


def learnt(spelling: Spelling) -> tuple[Array, Array]:
    """P of 47 rows by learning 7 on top of 40, and the direct inverse."""
    Phi = well_conditioned(47)
    Pu = np.linalg.inv(Phi[:40, :40])
    return reference.learn(Pu, Phi[:40, 40:], Phi[40:, 40:], spelling), np.linalg.inv(Phi)


def errors_of_theta(C: float, chunks: int, spelling: Spelling) -> Array:
    """The relative error of θ after each chunk of 50 rows in a window of 150, a fifth of them copies."""
    kernel = partial(reference.rbf, width=4.0)
    rows = reference.rows_with_copies(150 + 50 * chunks, features=3, seed=6)
    errors = []
    for fitted in reference.slide(reference.fit(rows[:150], kernel, C), rows[150:], 50, spelling):
        theta = reference.training_threshold(reference.training_distances(fitted), 0.05)
        errors.append(abs(theta / reference.extended_fit(fitted.window, kernel, C, 0.05).theta - 1))
    return np.array(errors, dtype=float)


def test_the_example_is_well_conditioned() -> None:
    """No error below can be blamed on the matrix."""
    assert np.linalg.cond(well_conditioned(47)) < 100


def test_equation_19_as_printed_is_wrong() -> None:
    """With "+ inv(Phi_v)" in its bracket, equation (19) misses a well-conditioned inverse by more than 0.01."""
    printed, direct = learnt("as_printed_misprint")
    assert np.abs(printed - direct)[:40, :40].max() > 0.01


@pytest.mark.parametrize("spelling", ["as_printed_corrected", "transposes_reused", "symmetrised"])
def test_equation_19_corrected_is_right(spelling: Spelling) -> None:
    """With "- Phi_v" in the bracket of equation (19), (18) gives the inverse to rounding, however it is spelt."""
    corrected, direct = learnt(spelling)
    assert np.abs(corrected - direct).max() < 1e-12


@pytest.mark.parametrize("forgotten", [1, 7, 46])
def test_equation_24_is_right(forgotten: int) -> None:
    """Equation (24) gives the inverse of what is left, for one row, some rows and all rows but one."""
    Phi = well_conditioned(47)
    left = reference.forget(np.linalg.inv(Phi), forgotten)
    assert np.abs(left - np.linalg.inv(Phi[forgotten:, forgotten:])).max() < 1e-12


def test_equation_27_is_undefined_for_few_rows() -> None:
    """When fewer than 1/η rows are in the window, the index that equation (27) prints is 0, which is no row."""
    assert [reference.printed_rank(n, 0.05) for n in (1, 10, 19)] == [0, 0, 0]
    assert reference.printed_rank(20, 0.05) == 1


@pytest.mark.parametrize("alarm_rate", [0.01, 0.05, 0.1, 0.3, 0.7])
def test_equation_27_is_one_row_from_the_authors_code(alarm_rate: float) -> None:
    """Equation (27), where it is defined, names the row just above the one that the authors' code takes."""
    for n in range(1, 400):
        printed = reference.printed_rank(n, alarm_rate)
        from_the_smallest = n - printed + 1
        assert from_the_smallest == reference.training_rank(n, alarm_rate) + 1


@needs_long_double
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # The lost recursion overflows; that is the finding.
def test_the_recursion_with_transposes_reused_is_lost_by_chunk_10() -> None:
    """Corrected, with Fi12ᵀ and P12ᵀ reused and P never symmetrised, the recursion has lost θ by chunk 10 at C = 1."""
    assert errors_of_theta(1.0, 10, "transposes_reused").max() > 1


@needs_long_double
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # The lost recursion overflows; that is the finding.
@pytest.mark.parametrize(("C", "chunks"), [(1.0, 60), (100.0, 40)])
def test_the_recursion_with_all_four_formulas_is_lost_later(C: float, chunks: int) -> None:
    """Corrected, with each block from its own formula of (18), the recursion starts well and loses θ all the same."""
    errors = errors_of_theta(C, chunks, "as_printed_corrected")
    assert errors[0] < 1e-6
    assert errors.max() > 1


@needs_long_double
def test_the_symmetrised_recursion_is_not_lost() -> None:
    """Symmetrising P once per chunk keeps θ to eleven digits at C = 1 where the printed spellings lose it."""
    assert errors_of_theta(1.0, 60, "symmetrised").max() < 1e-11
