"""How long every classifier takes to fit and to score, at three sizes.

    python benchmarks/rivals.py [--quick] [--out docs/benchmarks/rivals.md]

Each with its default parameters, on standard normal rows; the shortest of some repetitions. Methods whose fit costs n³ are not
taken to 10,000 rows. --quick runs the smallest size once, and prints.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from engine import ROOT, surroundings
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning

from oneclass import rivals


class Size(NamedTuple):
    """Rows learnt, their features, and how often both calls are timed; as many rows are scored."""

    rows: int
    features: int
    repeats: int

    def __str__(self) -> str:
        return f"{self.rows:,} × {self.features}"


SIZES = (Size(150, 8, 5), Size(1000, 20, 3), Size(3000, 50, 1), Size(10_000, 50, 1))
CUBIC = {"OCKELM", "AAKELM", "GOCELM", "MinimaxProbability", "OnlineKernelPCA"}
"""Those whose fit costs n³: left out at 10,000 rows."""


def detectors() -> list[Any]:
    """One of each, in the order of `rivals.__all__`; `Refitted` round a forest."""
    names = sorted(set(rivals.__all__) - {"Refitted", "by_name"}, key=str.lower)
    return [*(getattr(rivals, name)() for name in names), rivals.Refitted(IsolationForest())]


def shortest(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the shortest of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def cells(detector: Any, size: Size) -> tuple[str, str]:
    """How long to fit and how long to score, for a table."""
    if size.rows > 5000 and type(detector).__name__ in CUBIC:
        return "–", "–"
    rng = np.random.default_rng(0)
    rows, fresh = rng.normal(size=(2, size.rows, size.features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the network at its limit of steps is timed all the same
        fit = shortest(lambda: detector.fit(rows), size.repeats)
    return readable(fit), readable(shortest(lambda: detector.score_samples(fresh), size.repeats))


def readable(seconds: float) -> str:
    """Three digits and a unit."""
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


PAGE = """# How long every classifier takes

Made by `python benchmarks/rivals.py` on {date} in {elapsed:.0f} s; {cpu}, {cores} cores; Python {python},
NumPy {numpy}, SciPy {scipy}, scikit-learn {sklearn}; one thread.

Each classifier with its default parameters on standard normal rows, n × d; as many fresh rows are scored as were learnt. The
shortest of up to five repetitions. Absolute times carry over to no other machine; the order of magnitude does. Where the fit costs
n³, 10,000 rows were left out (–). `Refitted` is measured round scikit-learn's `IsolationForest`, with a window of 150 rows whatever
it is given.

| classifier | {columns} |
|---|{rules}|
{lines}
"""


def main() -> None:
    """Time them all, and write or print the page."""
    parser = argparse.ArgumentParser(description="Time every classifier.")
    parser.add_argument("--quick", action="store_true", help="the smallest size, once; prints")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks/rivals.md", help="the page to write")
    asked = parser.parse_args()
    started = time.perf_counter()
    sizes = [SIZES[0]._replace(repeats=1)] if asked.quick else list(SIZES)
    lines = []
    for detector in detectors():
        found = [cell for size in sizes for cell in cells(detector, size)]
        lines.append(f"| {type(detector).__name__} | " + " | ".join(found) + " |")
        print(lines[-1], flush=True)
    text = PAGE.format(
        **surroundings(started),
        columns=" | ".join(f"{what} {size}" for size in sizes for what in ("fit", "score")),
        rules="|".join(["---"] * (2 * len(sizes))),
        lines="\n".join(lines),
    )
    if not asked.quick:
        asked.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
