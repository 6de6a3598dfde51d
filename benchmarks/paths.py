"""Where the per-row path and the factor path cross, and which fixed rule chooses best between them.

    python benchmarks/paths.py [--quick] [--out docs/benchmarks/paths.md]

Each path is forced by setting the constant of the library's rule (`sliding._INVERSE_WINDOW_PER_ROW`: the per-row path takes chunks
of at most window / k rows) to 0 or infinity. Both paths run in turns on the same chunks, at C = 1 and one BLAS thread.
"""

import argparse
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from oneclass import KernelBoundary, sliding

ROOT = Path(__file__).resolve().parents[1]
WINDOWS, CHUNKS, RULES = (60, 100, 150, 300, 1000, 2500), (1, 2, 4, 8, 16, 32, 64), ("training", "leave-one-out")
PER_ROW, FACTOR = 0.0, float("inf")
FEATURES, WIDTH, POSITIONS = 8, 4.0, 12
CANDIDATES = (4, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150)

Grid = dict[tuple[int, int], float]  # (window, chunk): seconds by the factor path / seconds by the per-row path


@contextmanager
def forced(path: float) -> Iterator[None]:
    """The library's rule with another constant."""
    before = sliding._INVERSE_WINDOW_PER_ROW  # noqa: SLF001 - what is measured is not for users to choose
    sliding._INVERSE_WINDOW_PER_ROW = path  # type: ignore[assignment]  # noqa: SLF001 - as above; 0 and infinity compare well
    try:
        yield
    finally:
        sliding._INVERSE_WINDOW_PER_ROW = before  # noqa: SLF001 - as above


def model_on(rng: np.random.Generator, window: int, rule: str) -> KernelBoundary:
    """A fitted model of random rows; it learns by `learn`, which takes rows that were admitted."""
    model = KernelBoundary(width=WIDTH, C=1.0, threshold=rule, window=window)  # type: ignore[arg-type]
    return model.fit(rng.standard_normal((window, FEATURES)))


def by_row(rng: np.random.Generator, window: int, chunk: int, rule: str) -> float:
    """Seconds per chunk over one turn of the inverse, the one in which it is made afresh included."""
    model, chunks = model_on(rng, window, rule), -(-(window + 1) // chunk)
    rows = rng.standard_normal((chunks, chunk, FEATURES))
    with forced(PER_ROW):
        start = time.perf_counter()
        for part in rows:
            model.learn(part)
        return (time.perf_counter() - start) / chunks


def by_factor(rng: np.random.Generator, window: int, chunk: int, rule: str) -> float:
    """Seconds per chunk, the average over places in the ring spread evenly; the way from one to the next is not counted."""
    model, spent, step = model_on(rng, window, rule), 0.0, max(1, window // POSITIONS - chunk)
    with forced(FACTOR):
        for _ in range(POSITIONS):
            model.learn(rng.standard_normal((step, FEATURES)))
            rows = rng.standard_normal((chunk, FEATURES))
            start = time.perf_counter()
            model.learn(rows)
            spent += time.perf_counter() - start
    return spent / POSITIONS


def measure(windows: tuple[int, ...], rule: str) -> Grid:
    """The median ratio of both paths for every window and chunk; above 1 the per-row path is the quicker one."""
    rng, grid = np.random.default_rng(0), {}
    for window in windows:
        repeats = 9 if window <= 300 else 3 if window <= 1000 else 1
        for chunk in CHUNKS:
            if chunk < window:
                pairs = [(by_factor(rng, window, chunk, rule), by_row(rng, window, chunk, rule)) for _ in range(repeats)]
                grid[window, chunk] = float(np.median([factor / row for factor, row in pairs]))
        print(rule, window, [f"{grid[window, chunk]:.2f}" for chunk in CHUNKS if (window, chunk) in grid], flush=True)
    return grid


def regrets(grid: Grid, k: float) -> np.ndarray:
    """How many times the better path's time each cell takes when chunks of at most window / k rows go by the row."""
    return np.array([max(1.0, 1.0 / ratio if chunk * k <= window else ratio) for (window, chunk), ratio in grid.items()])


def table(grid: Grid, windows: tuple[int, ...]) -> str:
    """The ratios, one line for each window."""
    lines = ["| n | " + " | ".join(f"s={chunk}" for chunk in CHUNKS) + " |", "|---" * (len(CHUNKS) + 1) + "|"]
    for window in windows:
        cells = [f"{grid[window, chunk]:.2f}" if (window, chunk) in grid else "" for chunk in CHUNKS]
        lines.append(f"| {window} | {' | '.join(cells)} |")
    return "\n".join(lines)


PAGE = """# Where the two paths cross

Made by `python benchmarks/paths.py{flags}` on {date}, load {load}; Python {python}, NumPy {numpy}, one BLAS thread.

KernelBoundary, RBF, C = 1, {features} features. Time per chunk by the factor path divided by that of the per-row path, median
of repetitions in turns; **above 1 the per-row path is the quicker one**. The per-row path is charged with making its inverse
afresh once in a turn of the ring, the factor path is averaged over places in the ring.

Threshold "training":

{training}

Threshold "leave-one-out", for which the factor path has to invert its factor and the per-row path has the diagonal at hand:

{leave_one_out}

The rule is "by the row, if s · k <= n". What a wrong choice costs, as a multiple of the better path's time:

| k | training: mean, worst | leave-one-out: mean, worst | both: mean, worst |
|---|---|---|---|
{rules}

The best fixed k is **{best[0]}** for the training threshold, **{best[1]}** for leave-one-out and **{best[2]}** for both (the
smallest geometric mean); the library uses k = {used}.
"""


def geometric(values: np.ndarray) -> float:
    return float(np.exp(np.log(values).mean()))


def main() -> None:
    """Measure both thresholds and write the page."""
    parser = argparse.ArgumentParser(description="Measure where the per-row path and the factor path cross.")
    parser.add_argument("--quick", action="store_true", help="windows up to 300 only; prints, and writes no page")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks/paths.md", help="the page to write")
    asked = parser.parse_args()
    windows = tuple(window for window in WINDOWS if window <= 300) if asked.quick else WINDOWS
    grids = [measure(windows, rule) for rule in RULES]
    every = {k: [*(regrets(grid, k) for grid in grids), np.concatenate([regrets(grid, k) for grid in grids])] for k in CANDIDATES}
    text = PAGE.format(
        flags=" --quick" if asked.quick else "",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        load=f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        python=platform.python_version(),
        numpy=np.__version__,
        features=FEATURES,
        training=table(grids[0], windows),
        leave_one_out=table(grids[1], windows),
        rules="\n".join(
            f"| {k} | " + " | ".join(f"{geometric(r):.2f}, {r.max():.2f}" for r in found) + " |" for k, found in every.items()
        ),
        best=[min(every, key=lambda k, i=i: geometric(every[k][i])) for i in range(3)],  # type: ignore[misc]
        used=sliding._INVERSE_WINDOW_PER_ROW,  # noqa: SLF001 - as above
    )
    print(text)
    if not asked.quick:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
