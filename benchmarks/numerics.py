"""How far θ is from long double after a hundred thousand chunks and a million single rows.

    python benchmarks/numerics.py [--quick] [--jobs 2] [--out docs/benchmarks/numerics.md]

A watcher goes through a stream in which a fifth of the rows are copies. At some hundred moments θ by both rules is compared with
a batch fit of the same window in long double (tests/reference.py), and so is the θ of a fresh float64 Cholesky factor of the same
window, which is what float64 can give.
tests/test_numerics.py runs the same code with the bounds below.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import reference
from reference import Array

from oneclass import KernelBoundary, Watcher
from oneclass.loops import is_compiled
from oneclass.normality import Normality, in_window
from oneclass.threshold import training_threshold

ALARM_RATE, SEED, BLOCK = 0.05, 1, 5000
RULES = ("training", "leave-one-out")
WIDTHS = {"narrow": 0.5, "median": 1.0, "wide": 2.0}
"""In medians of the distances between the rows."""


class Case(NamedTuple):
    """One window, cut of the stream and pair of parameters."""

    window: int
    chunk: int
    features: int
    C: float
    width: str

    @property
    def sigma(self) -> float:
        """The width as a number."""
        distances = pdist(reference.rows_with_copies(500, self.features, SEED))
        return WIDTHS[self.width] * float(np.median(distances[distances > 0]))

    @property
    def bound(self) -> float | None:
        """The relative error that must not be exceeded at n = 150; None for larger windows."""
        if self.window > 150:
            return None
        asked = {1.0: 1e-13, 1e4: 1e-9, 1e8: 1e-7} if self.chunk > 1 else {1.0: 1e-9, 1e4: 1e-9, 1e8: 1e-6}
        return asked.get(self.C)


class Errors(NamedTuple):
    """The worst relative errors of θ, one number for each of `RULES`: the library's, and a fresh float64 Cholesky factor's."""

    ours: tuple[float, ...]
    fresh: tuple[float, ...]


def stream(features: int, seed: int = SEED) -> Iterator[Array]:
    """Rows without end, in blocks of `BLOCK`, each a fifth of copies."""
    while True:
        yield reference.rows_with_copies(BLOCK, features, seed)
        seed += 1


def spread(chunks: int, count: int, window: int) -> set[int]:
    """About `count` of the chunks 1 … `chunks`: more of them early on, and some just before an inverse is made afresh.

    The inverse of the per-row path is made by the first row and overwritten `window` times: it is worst at multiples of window + 1.
    """
    early = np.geomspace(1, chunks, count // 3)
    evenly = np.linspace(1, chunks, count // 3)
    last_of_turn = np.linspace(window + 1, chunks, count // 3) // (window + 1) * (window + 1)
    return {int(chunk) for chunk in np.concatenate([early, evenly, last_of_turn]).round() if 1 <= chunk <= chunks}


def walk(case: Case, chunks: int, checked: set[int]) -> Iterator[tuple[KernelBoundary, Array]]:
    """Watch and learn `chunks` chunks of the stream; yields the model and its window, oldest row first, at checked ones."""
    blocks = stream(case.features)
    rows = next(blocks)
    window, rows, done = rows[: case.window], rows[case.window :], 0
    model = KernelBoundary(width=case.sigma, C=case.C, alarm_rate=ALARM_RATE, window=case.window).fit(window)
    watcher = Watcher(model, learn="all", chunk=case.chunk)
    for chunk in sorted(checked | {chunks}):
        missing = (chunk - done) * case.chunk
        while missing:
            part, rows = rows[:missing], rows[missing:]
            watcher.watch(part)
            window = np.concatenate([window, part])[-case.window :]
            missing -= len(part)
            rows = rows if len(rows) else next(blocks)
        done = chunk
        yield model, window


def thetas(model: KernelBoundary) -> Array:
    """θ by both rules: the training threshold is made of the same β, in the same way as with threshold="training"."""
    now: Normality = model._sliding.now  # type: ignore[union-attr,assignment]  # noqa: SLF001 - one run for both rules, of a fitted model
    return np.array([training_threshold(np.sort(in_window(now.framework, now.ridge, now.beta)), ALARM_RATE), now.threshold])


def true_thetas(case: Case, X: Array) -> Array:
    """θ by both rules in long double."""
    exact = reference.extended_fit(X, partial(reference.rbf, width=case.sigma), case.C, ALARM_RATE)
    return np.array([exact.theta, reference.leave_one_out_threshold(exact.left_out, ALARM_RATE)])


def fresh_thetas(case: Case, X: Array) -> Array:
    """θ by both rules from one float64 Cholesky factor of the window, oldest row first."""
    factor = cho_factor(reference.regularised(X, partial(reference.rbf, width=case.sigma), case.C), lower=True)
    beta, P = cho_solve(factor, np.ones(len(X))), cho_solve(factor, np.eye(len(X)))
    in_window, left_out = np.abs(beta) / case.C, np.abs(beta) / P.diagonal()
    return np.array([reference.training_threshold(in_window, ALARM_RATE), reference.leave_one_out_threshold(left_out, ALARM_RATE)])


def worst_errors(case: Case, chunks: int, checks: int) -> Errors:
    """The worst relative errors of θ over `chunks` chunks, looked at about `checks` times."""
    ours, fresh = np.zeros(2), np.zeros(2)
    for model, X in walk(case, chunks, spread(chunks, checks, case.window)):
        exact = true_thetas(case, X)
        # np.maximum keeps a NaN, which no bound admits.
        ours = np.maximum(ours, np.abs(thetas(model) / exact - 1).astype(float))
        fresh = np.maximum(fresh, np.abs(fresh_thetas(case, X) / exact - 1).astype(float))
    return Errors(tuple(map(float, ours)), tuple(map(float, fresh)))


class Run(NamedTuple):
    """A case, and how long it is watched."""

    case: Case
    chunks: int
    checks: int


def runs(*, is_quick: bool) -> list[Run]:
    """All that goes into the page; the longest first, so that they do not end alone."""
    scale = 500 if is_quick else 1
    every = [(features, width) for features in (3, 8) for width in WIDTHS]
    hard = [(3, width) for width in WIDTHS] + [(8, "median")]
    rows = [Run(Case(150, 1, d, C, width), 1_000_000 // scale, 150) for C in (1e8, 1.0, 1e4) for d, width in hard]
    chunks = [Run(Case(150, 50, d, C, width), 100_000 // scale, 150) for C in (1.0, 1e4, 1e8) for d, width in every]
    # Two turns and a bit: long double takes seconds at n = 1000.
    large = [Run(Case(1000, s, 8, C, "median"), 2100 // s, 9) for s in (1, 20) for C in (1.0, 1e4, 1e8)]
    return rows + chunks + ([] if is_quick else large)


def measure(run: Run) -> Errors:
    """`worst_errors` of one run, and a line for whoever waits."""
    start = time.perf_counter()
    errors = worst_errors(*run)
    print(run, errors, f"{time.perf_counter() - start:.0f} s", flush=True)
    return errors


def line(run: Run, errors: Errors) -> str:
    """One row of the table."""
    case = run.case
    bound = "–" if case.bound is None else f"{case.bound:.0e}"
    verdict = "" if case.bound is None else "yes" if max(errors.ours) <= case.bound else "**no**"
    numbers = [f"{error:.1e}" for error in (*errors.ours, *errors.fresh)]
    ours = f"{case.window} | {case.chunk} | {case.features} | {case.C:.0e} | {case.width} ({case.sigma:.2f}) | {run.chunks}"
    return f"| {ours} | {' | '.join(numbers)} | {bound} | {verdict} |"


PAGE = """# How far θ is from long double

Made by `python benchmarks/numerics.py{flags}` on {date} in {minutes:.0f} minutes; Python {python}, NumPy {numpy}, SciPy {scipy},
{machine}.

KernelBoundary, RBF, standard normal rows of which a fifth are exact copies of one of the 50 before, alarm rate {rate:g}. Widths are
half, once and twice the median distance of two rows. Worst relative error of θ over about 150 moments (9 at n = 1000) of the
stream, against a batch fit of the same window in long double, kernel included. *Fresh*: the same error of a new float64 Cholesky
factor of the same window by LAPACK. At C = 1e8 the ridge 1e-8 is rounded to one part in 1e8 where it is added to k(x, x) = 1; that
alone, everything else in long double, moves θ by up to 4e-8 (d = 3).
tests/test_numerics.py holds the bounds{compiled}.

| n | s | d | C | width (σ) | chunks | training | leave-one-out | fresh, training | fresh, leave-one-out | must be ≤ | kept |
|---|---|---|---|---|---|---|---|---|---|---|---|
{rows}
"""


def main() -> None:
    """Measure all runs and write the page."""
    parser = argparse.ArgumentParser(description="Measure the error of θ against long double.")
    parser.add_argument("--quick", action="store_true", help="a five hundredth of the chunks; prints, and writes no page")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks/numerics.md", help="the page to write")
    asked = parser.parse_args()
    if not reference.LONG_DOUBLE_IS_WIDER:
        sys.exit("long double is float64 on this platform: there is no truth to measure against; run on x86-64 Linux")
    start, every = time.perf_counter(), runs(is_quick=asked.quick)
    with ProcessPoolExecutor(asked.jobs) as pool:
        lines = [line(run, errors) for run, errors in zip(every, pool.map(measure, every), strict=True)]
    text = PAGE.format(
        flags=" --quick" if asked.quick else "",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        minutes=(time.perf_counter() - start) / 60,
        python=platform.python_version(),
        numpy=np.__version__,
        scipy=scipy.__version__,
        machine=platform.machine(),
        compiled="" if is_compiled() else "; this page was made without the compiled loops, to which they apply",
        rate=ALARM_RATE,
        rows="\n".join(lines),
    )
    if asked.quick:
        print(text)
    else:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
