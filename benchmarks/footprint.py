"""What the engine takes besides the time to learn: memory by tracemalloc, and the time of its import.

Shared by engine.py and tests/test_budgets.py.
"""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oneclass import KernelBoundary

FEATURES, WIDTH = 8, 4.0
STANDS_ON = (
    "import numpy, scipy.linalg, scipy.spatial.distance, threadpoolctl, sklearn.base, sklearn.exceptions, sklearn.utils.validation"
)
IMPORTS = {"what it stands on": STANDS_ON, "the model": "from oneclass import KernelBoundary", "oneclass alone": "import oneclass"}


@dataclass(frozen=True)
class Finding:
    """One number, and what it must be at least (`is_floor`) or at most; `is_clock`: it comes from a clock, and is noisy."""

    what: str
    measured: float
    must: float | None
    is_floor: bool
    is_clock: bool = True
    best: float | None = None  # the ratio of the shortest times, where repetitions were timed

    def is_kept(self, slack: float = 1.0) -> bool | None:
        """Whether the must is kept; None where there is none. A slack below 1 forgives noise of the clock."""
        if self.must is None:
            return None
        share = slack if self.is_clock else 1.0
        return self.measured >= self.must * share if self.is_floor else self.measured <= self.must / share

    def line(self, slack: float = 1.0) -> str:
        """One row of a table."""
        sign = "≥" if self.is_floor else "≤"
        must = "" if self.must is None else f"{sign} {self.must:g}"
        verdict = {None: "", True: "ok", False: "**missed**"}[self.is_kept(slack)]
        best = "" if self.best is None else f"{self.best:.3g}"
        return f"| {self.what} | {must} | {self.measured:.3g} | {best} | {verdict} |"


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that was allocated at a time while `work` ran, on top of what there was before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def learning_peaks(window: int, chunk: int, C: float, rule: str, calls: int) -> tuple[float, float]:
    """The peaks of `fit` and of the worst of some calls of `partial_fit`, in n² floats.

    Everything the model holds counts, the caller's rows do not.
    """
    rows = np.random.default_rng(0).standard_normal((window + calls * chunk, FEATURES))
    model = KernelBoundary(width=WIDTH, C=C, threshold=rule, window=window)  # type: ignore[arg-type]
    unit = 8.0 * window**2
    tracemalloc.start()
    try:
        model.fit(rows[:window])
        first = tracemalloc.get_traced_memory()[1] / unit
        tracemalloc.reset_peak()
        for start in range(window, len(rows), chunk):
            model.partial_fit(rows[start : start + chunk])
        return first, tracemalloc.get_traced_memory()[1] / unit
    finally:
        tracemalloc.stop()


def scoring_peak(count: int) -> int:
    """The bytes at the peak of scoring `count` rows."""
    rows = np.random.default_rng(0).standard_normal((count, FEATURES))
    model = KernelBoundary(width=WIDTH, C=1.0, window=150).fit(rows[:150])
    model.score_samples(rows[:300])
    return peak_bytes(lambda: model.score_samples(rows))


def scoring_growth() -> float:
    """Floats that each further row costs at the peak of `score_samples`.

    A checked copy of the row itself (d), its distance and its score are output and input; a kernel kept whole would be 150 more.
    """
    return (scoring_peak(100_000) - scoring_peak(10_000)) / 8.0 / 90_000


def memory_findings(window: int) -> list[Finding]:
    """Peaks of learning for large and small chunks, both thresholds, and the growth of scoring."""
    chunk, findings = window * 2 // 25, []
    for rule in ("training", "leave-one-out"):
        # Enough chunks of 8 % for a whole turn of the ring; single rows meet both the change of path and what follows.
        fit, chunks = learning_peaks(window, chunk, 1.0, rule, 13)
        _, rows = learning_peaks(window, 1, 1.0, rule, 3)
        _, careful = learning_peaks(window, 1, 1e8, rule, 3)
        findings += [
            Finding(f"n={window}, {rule}: peak of fit, n² floats", fit, 4.0, is_floor=False, is_clock=False),
            Finding(f"n={window} s={chunk}, {rule}: peak of partial_fit, n² floats", chunks, 3.3, is_floor=False, is_clock=False),
            Finding(f"n={window} s=1, {rule}: peak of partial_fit, n² floats", rows, 3.3, is_floor=False, is_clock=False),
            Finding(f"n={window} s=1 C=1e8, {rule}: peak of partial_fit, n² floats", careful, 3.3, is_floor=False, is_clock=False),
        ]
    growth = scoring_growth()
    findings.append(Finding("scoring, d=8: floats per further row", growth, FEATURES + 4.0, is_floor=False, is_clock=False))
    return findings


def import_seconds(statement: str) -> float:
    """The time of an import in a new interpreter; that of starting the interpreter is left out."""
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 - our own interpreter
    return float(done.stdout)


def import_times(repeats: int) -> dict[str, list[float]]:
    """The seconds of each of `IMPORTS`, in turns; one round before that, which may have to compile, is thrown away."""
    rounds = [{name: import_seconds(statement) for name, statement in IMPORTS.items()} for _ in range(repeats + 1)][1:]
    return {name: [times[name] for times in rounds] for name in IMPORTS}


def compared(what: str, above: list[float], below: list[float], must: float | None, *, is_floor: bool = False) -> Finding:
    """One cost in units of another: the median over the repetitions, and the ratio of the shortest."""
    return Finding(what, float(np.median(np.divide(above, below))), must, is_floor, best=min(above) / min(below))


def import_findings(repeats: int) -> list[Finding]:
    """What the import costs."""
    times = import_times(repeats)
    ground = times["what it stands on"]
    return [
        compared("`from oneclass import KernelBoundary` / importing what it stands on", times["the model"], ground, 1.15),
        compared("`import oneclass` / importing what the models stand on", times["oneclass alone"], ground, 1.15),
    ]
