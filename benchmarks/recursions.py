"""Which way of sliding a window keeps θ: the paper's recursions, mended ones and fresh factors against long double.

    python benchmarks/recursions.py [--chunks 400] [--out docs/benchmarks/recursions.md]

Every engine slides the boundary model over the same stream and reads θ from beta/C, so only the linear algebra differs.
The truth is a batch fit of a window in long double (tests/reference.py), kernel included: an engine is charged for the
rounding of its kernel as well.
"""

import argparse
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve, solve_triangular

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import reference
from reference import Array, Number, Spelling

WINDOW, CHUNK, FEATURES, WIDTH, ALARM_RATE, SEED = 150, 50, 3, 4.0, 0.05, 1
EVERY_C = (1.0, 1e2, 1e4, 1e6, 1e8)
RBF = partial(reference.rbf, width=WIDTH)

# An engine takes the stream and C and yields its θ after each chunk.
Engine = Callable[[Array, float], Iterator[float]]


def windows(stream: Array) -> Iterator[Array]:
    """The window after each chunk, oldest row first; the first window itself is not among them."""
    for end in range(WINDOW + CHUNK, len(stream) + 1, CHUNK):
        yield stream[end - WINDOW : end]


def theta_of(beta: Array, C: float) -> float:
    """θ of the authors' code from the weights alone."""
    return float(reference.training_threshold(np.abs(beta / C), ALARM_RATE))


def paper(spelling: Spelling, stream: Array, C: float) -> Iterator[float]:
    """θ by the paper's recursions in one of the spellings of `reference.slide`."""
    first = reference.fit(stream[:WINDOW], RBF, C)
    for fitted in reference.slide(first, stream[WINDOW:], CHUNK, spelling):
        yield theta_of(fitted.beta, C)


def forget_by_triangle(P: Array, f: int) -> Array:
    """P without its f oldest rows, exactly symmetric: (24) with Fi11 = L Lᵀ as one product WᵀW, W = inv(L) Fi12."""
    W = solve_triangular(np.linalg.cholesky(P[:f, :f]), P[:f, f:], lower=True)
    left: Array = P[f:, f:] - W.T @ W
    return left


def learn_by_triangle(Pu: Array, Phi_uv: Array, Phi_v: Array) -> Array:
    """P with the rows v behind, exactly symmetric: one triangle of the Schur complement is read, and factored."""
    G = Pu @ Phi_uv
    L = np.linalg.cholesky(Phi_v - Phi_uv.T @ G)
    W, inverse = solve_triangular(L, G.T, lower=True), solve_triangular(L, np.eye(len(L)), lower=True)
    P12 = -W.T @ inverse
    return np.block([[Pu + W.T @ W, P12], [P12.T, inverse.T @ inverse]])


def one_triangle(refinements: int, stream: Array, C: float) -> Iterator[float]:
    """θ by an explicit symmetric inverse, beta = P 1 improved by `refinements` steps of beta += P (1 - Phi beta)."""
    inverse = np.linalg.inv(np.linalg.cholesky(reference.regularised(stream[:WINDOW], RBF, C)))
    P = inverse.T @ inverse
    for X in windows(stream):
        Phi, u = reference.regularised(X, RBF, C), WINDOW - CHUNK
        P = learn_by_triangle(forget_by_triangle(P, CHUNK), Phi[:u, u:], Phi[u:, u:])
        beta = P.sum(axis=1)
        for _ in range(refinements):
            beta += P @ (1 - Phi @ beta)
        yield theta_of(beta, C)


def fresh_cholesky(stream: Array, C: float) -> Iterator[float]:
    """θ by factoring every window anew."""
    for X in windows(stream):
        yield theta_of(cho_solve(cho_factor(reference.regularised(X, RBF, C), lower=True), np.ones(WINDOW)), C)


def oneclass_itself(stream: Array, C: float) -> Iterator[float]:
    """θ of the library: `partial_fit` chunk by chunk, read from `offset_`."""
    # An import at the top would keep the other rows from being measured without the library.
    from oneclass import KernelBoundary

    model = KernelBoundary(kernel="rbf", width=WIDTH, C=C, alarm_rate=ALARM_RATE, threshold="training", window=WINDOW).fit(
        stream[:WINDOW]
    )
    for start in range(WINDOW, len(stream), CHUNK):
        yield -float(model.partial_fit(stream[start : start + CHUNK]).offset_)


ENGINES: dict[str, Engine] = {
    "paper, all four formulas of (18), sign of (19) corrected": partial(paper, "as_printed_corrected"),
    "paper, transposes reused, sign of (19) corrected": partial(paper, "transposes_reused"),
    "P symmetrised once per chunk": partial(paper, "symmetrised"),
    "one triangle, Cholesky of the small blocks": partial(one_triangle, 0),
    "same + two refinement steps of beta": partial(one_triangle, 2),
    "fresh Cholesky": fresh_cholesky,
    "oneclass": oneclass_itself,
}


def is_checked(chunk: int) -> bool:
    """Whether θ is compared after this chunk: the first 40, where recursions are lost, then every fifth."""
    return chunk <= 40 or chunk % 5 == 0


def true_thetas(stream: Array, C: float) -> list[Number | None]:
    """θ in long double after each chunk that is checked, None after the others."""
    return [
        reference.extended_fit(X, RBF, C, ALARM_RATE).theta if is_checked(chunk) else None
        for chunk, X in enumerate(windows(stream), start=1)
    ]


def verdict(engine: Engine, stream: Array, C: float, truth: list[Number | None]) -> str:
    """The worst relative error of θ over the checked chunks, or the chunk at which θ is lost or the engine breaks."""
    worst, thetas = 0.0, engine(stream, C)
    for chunk, exact in enumerate(truth, start=1):
        try:
            theta = next(thetas)
        except np.linalg.LinAlgError:
            return f"breaks at chunk {chunk}"
        if exact is None:
            continue
        error = abs(float(theta / exact - 1))
        # A θ that is not a number is lost too, and no comparison with it is true.
        if math.isnan(error) or error > 1:
            return f"lost at chunk {chunk}"
        worst = max(worst, error)
    return f"{worst:.0e}"


def measure(chunks: int, names: list[str]) -> dict[str, list[str]]:
    """One verdict per C for each named engine."""
    stream = reference.rows_with_copies(WINDOW + CHUNK * chunks, FEATURES, SEED)
    table: dict[str, list[str]] = {name: [] for name in names}
    for C in EVERY_C:
        truth = true_thetas(stream, C)
        for name in names:
            # The lost recursions overflow on their way; that is what is measured.
            with np.errstate(all="ignore"):
                table[name].append(verdict(ENGINES[name], stream, C, truth))
    return table


def versions(table: dict[str, list[str]]) -> str:
    """The versions of all that computed a row of the table."""
    try:
        own = f", oneclass {version('oneclass')}" if "oneclass" in table else ""
    except PackageNotFoundError:
        own = ", oneclass from its source folder"
    python = f"Python {platform.python_version()}"
    return f"{python}, NumPy {np.__version__}, SciPy {scipy.__version__}{own}, {platform.machine()}"


PAGE = """# Which way of sliding a window keeps θ

Made by `python benchmarks/recursions.py --chunks {chunks}` on {date} in {seconds:.0f} s; {versions}.

Boundary model, RBF of width {width:g}, window of {window} rows, chunks of {chunk}, {features} standard normal features,
a fifth of the rows exact copies of one of the 50 before (seed {seed}), alarm rate {alarm_rate:g}, θ by the "training"
rule from β/C. The truth is a batch fit of the window in long double, kernel included, after each of the first 40 chunks
and after every fifth one from then on; its own error of θ, checked once against 40 digits on the first window, is 7e-19
at C = 1 and 1e-10 at C = 1e8.
*Lost*: the first checked chunk with a relative error above 1. *Breaks*: the first chunk at which a matrix is singular
or not positive definite.

| worst relative error of θ, float64, {chunks} chunks | {every_C} |
{rule}
{rows}
"""


def page(table: dict[str, list[str]], chunks: int, seconds: float) -> str:
    """The Markdown page: what was measured, by which command, when, and the table."""
    return PAGE.format(
        chunks=chunks,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=seconds,
        versions=versions(table),
        width=WIDTH,
        window=WINDOW,
        chunk=CHUNK,
        features=FEATURES,
        seed=SEED,
        alarm_rate=ALARM_RATE,
        every_C=" | ".join(f"C = {C:.0e}" for C in EVERY_C),
        rule="|---" * (len(EVERY_C) + 1) + "|",
        rows="\n".join("| " + " | ".join([name, *cells]) + " |" for name, cells in table.items()),
    )


def oneclass_is_there() -> bool:
    """Whether the library can be imported; an error inside it is raised, not taken for its absence."""
    try:
        import oneclass
    except ModuleNotFoundError as absent:
        if absent.name != "oneclass":
            raise
        return False
    if not hasattr(oneclass, "KernelBoundary"):
        sys.exit(f"oneclass at {oneclass.__path__} has no KernelBoundary: its row cannot be measured")
    return True


def main() -> None:
    """Measure, write the page, and fail at the end if the library's own row is missing."""
    parser = argparse.ArgumentParser(description="Measure how well each way of sliding a window keeps θ.")
    parser.add_argument("--chunks", type=int, default=400, help="chunks to slide over (default: 400)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks/recursions.md", help="the page to write")
    asked = parser.parse_args()
    if asked.chunks < 1:
        parser.error(f"--chunks is {asked.chunks}: give at least 1")
    if not reference.LONG_DOUBLE_IS_WIDER:
        sys.exit("long double is float64 on this platform: there is no truth to measure against; run on x86-64 Linux")
    complete, start = oneclass_is_there(), time.perf_counter()
    names = [name for name in ENGINES if complete or name != "oneclass"]
    table = measure(asked.chunks, names)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(page(table, asked.chunks, time.perf_counter() - start), encoding="utf-8")
    if not complete:
        sys.exit(f"{asked.out} is written without the row of oneclass: oneclass cannot be imported (pip install -e .)")


if __name__ == "__main__":
    main()
