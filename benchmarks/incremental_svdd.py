"""What a row costs IncrementalSVDD, learnt as the oldest is forgotten, against fitting libsvm's OneClassSVM to the window again.

    python benchmarks/incremental_svdd.py [--quick] [--gate] [--out docs/benchmarks/incremental_svdd.md]

Only ratios are judged. Each goes over a stream of its own, in turns (`engine.interleaved`) and on one BLAS thread; a ratio is taken
within each repetition, and the median of these is reported. The page is written with a CSV of all numbers beside it; --quick prints
instead, unless --out is given.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from engine import ROOT, conclude, interleaved, load, seconds, surroundings
from footprint import Finding, compared
from sklearn.svm import OneClassSVM

from oneclass.rivals.dual import TOLERANCE
from oneclass.rivals.incremental_svdd import IncrementalSVDD

SCIKIT_LEARNS = 1e-3
QUICK_SLACK = 0.5


@dataclass(frozen=True)
class Case:
    """A window, an alarm rate, a width and so many features, with the ratio to fitting again that must be reached."""

    window: int
    alarm_rate: float = 0.05
    width: float = 4.0
    features: int = 8
    must: float | None = None
    rows: int = 100  # of ours in one repetition
    refits: int = 20  # of libsvm's
    repeats: int = 25

    @property
    def tolerance(self) -> float:
        """libsvm's `tol` at which its conditions hold as well as ours.

        Its weights add up to nu·n and its gradient is Ka, ours add up to 1 and the gradient is 2Ka: 2 / (nu·n) of one is the other.
        """
        return TOLERANCE * self.alarm_rate * self.window / 2.0

    def ours(self, *, slides: bool) -> IncrementalSVDD:
        """The incremental one; without a window, rows are forgotten by hand and C is that of the window."""
        C: float | str = "auto" if slides else 1.0 / (self.window * self.alarm_rate)
        return IncrementalSVDD(width=self.width, C=C, alarm_rate=self.alarm_rate, window=self.window if slides else None)

    def theirs(self, tolerance: float) -> OneClassSVM:
        """The same problem for libsvm."""
        return OneClassSVM(gamma=1.0 / self.width**2, nu=self.alarm_rate, tol=tolerance)

    def __str__(self) -> str:
        return f"n={self.window} d={self.features} alarm rate {self.alarm_rate:g} width {self.width:g}"

    def fresh_rows(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Rows nobody has seen."""
        return rng.standard_normal((count, self.features))


CASES = (
    Case(150, must=1.0),
    Case(150, alarm_rate=0.2),
    Case(1000, must=1.0, refits=5, repeats=15),
    Case(1000, alarm_rate=0.2, refits=3, repeats=9),
    # Half of the rows outside, or half and more of them on the sphere.
    Case(150, alarm_rate=0.5),
    Case(150, features=50),
    Case(1000, width=1.0, must=1.0, rows=50, refits=3, repeats=7),
    Case(1000, width=1.5, rows=50, refits=3, repeats=7),
    Case(1000, width=0.3, rows=50, refits=3, repeats=7),
)
QUICK = (Case(150, must=1.0, repeats=7), Case(1000, must=1.0, refits=3, repeats=5))


def costs(case: Case) -> dict[str, Callable[[], float]]:
    """One call for each way of following a stream; each answers seconds per row learnt and forgotten."""
    rng = np.random.default_rng(0)
    first = case.fresh_rows(rng, case.window)
    sliding, by_hand = case.ours(slides=True).fit(first), case.ours(slides=False).fit(first)

    def slide(chunk: int) -> float:
        chunks = np.split(case.fresh_rows(rng, case.rows), case.rows // chunk)
        return seconds(lambda: [sliding.partial_fit(rows) for rows in chunks]) / case.rows

    def learn_and_forget() -> float:
        rows = case.fresh_rows(rng, case.rows)[:, None, :]
        return seconds(lambda: [by_hand.partial_fit(row).forget([0]) for row in rows]) / case.rows

    def fit_again(tolerance: float) -> float:
        stream, machine = case.fresh_rows(rng, case.window + case.refits), case.theirs(tolerance)
        windows = [np.ascontiguousarray(stream[at : at + case.window]) for at in range(case.refits)]
        return seconds(lambda: [machine.fit(window) for window in windows]) / case.refits

    return {
        "partial_fit, row by row": lambda: slide(1),
        "partial_fit, 50 rows at a time": lambda: slide(50),
        "partial_fit and forget": learn_and_forget,
        "libsvm": lambda: fit_again(case.tolerance),
        f"libsvm, tol={SCIKIT_LEARNS:g}": lambda: fit_again(SCIKIT_LEARNS),
    }


def require_same_alarms(case: Case) -> None:
    """Both flag the same rows, but for rows within libsvm's rounding of the line; otherwise they are not comparable."""
    rng = np.random.default_rng(1)
    stream, fresh = case.fresh_rows(rng, case.window + 100), 1.5 * case.fresh_rows(rng, 500)
    ours = case.ours(slides=True).fit(stream[: case.window])
    for row in stream[case.window :]:
        ours.partial_fit(row[None])
    theirs = case.theirs(case.tolerance).fit(stream[-case.window :])
    is_clear = np.abs(ours.decision_function(fresh)) > 1e-5
    if not (ours.predict(fresh) == theirs.predict(fresh))[is_clear].all() or is_clear.mean() < 0.9:
        raise SystemExit(f"{case}: IncrementalSVDD and libsvm do not flag the same rows")


def findings_of(case: Case) -> tuple[list[Finding], str]:
    """The ratios of one case, and its row of times."""
    require_same_alarms(case)
    samples = interleaved(costs(case), case.repeats)
    found = []
    for name, must in (("row by row", case.must), ("50 rows at a time", None)):
        what = f"{case}, partial_fit, {name}: × libsvm"
        found.append(compared(what, samples["libsvm"], samples[f"partial_fit, {name}"], must, is_floor=True))
    what = f"{case}, partial_fit and forget: × libsvm"
    found.append(compared(what, samples["libsvm"], samples["partial_fit and forget"], case.must, is_floor=True))
    coarse, rows = samples[f"libsvm, tol={SCIKIT_LEARNS:g}"], samples["partial_fit, row by row"]
    found.append(compared(f"{case}, partial_fit, row by row: × libsvm at tol={SCIKIT_LEARNS:g}", coarse, rows, None, is_floor=True))
    return found, " | ".join([f"| {case}", *(f"{np.median(times) * 1e6:.0f}" for times in samples.values())]) + " |"


PAGE = """# What a row costs IncrementalSVDD

Made by `python benchmarks/incremental_svdd.py{flags}` on {date} in {elapsed:.0f} s; {cpu}, {cores} cores, load {load_before} at the
beginning and {load_after} at the end; Python {python}, NumPy {numpy}, SciPy {scipy}, scikit-learn {sklearn}; one BLAS thread.

RBF, d standard normal features. Few rows are on the sphere at width 4 and d = 8; all 150 are at d = 50, and of 1000 some 490 at
width 1.5, 940 at width 1 and all at width 0.3. A full window of n rows learns a row and forgets its oldest: by
`partial_fit` of single rows, of 50 rows at a time, or by `partial_fit` and `forget` without a window. *× libsvm*: the time of
fitting scikit-learn's `OneClassSVM` to such a window, divided by ours for one row. libsvm's `tol` is chosen so that the conditions
of the optimum hold as well as ours, to {tolerance:g} of k(x, x), though libsvm keeps K in single precision; scikit-learn's own,
{coarse:g}, is reported beside. Both flag the same rows after 100 rows; that is checked before anything is timed. What is compared
runs in turns; *measured* is the median of the ratios of the repetitions, *of the best* the ratio of the shortest times of
both.{slack}

**Slower than fitting again:** {slower}.

| | must | measured | of the best | |
|---|---|---|---|---|
{findings}

Microseconds per row on this machine (medians; they carry over to no other):

| | {columns} |
|---{rules}|
{times}
"""


def page(findings: list[Finding], times: list[str], started: float, load_before: str, *, is_quick: bool) -> str:
    """The Markdown page: the command, the machine, what must be and what is."""
    columns = list(costs(CASES[0]))
    return PAGE.format(
        flags=" --quick" if is_quick else "",
        **surroundings(started),
        load_before=load_before,
        tolerance=TOLERANCE,
        coarse=SCIKIT_LEARNS,
        slack=f"\nA must counts as missed only beyond {QUICK_SLACK:g} of it in this short form." if is_quick else "",
        slower="; ".join(f"{each.what} {each.measured:.3g}" for each in findings if each.measured < 1.0) or "nothing here",
        findings="\n".join(finding.line(QUICK_SLACK if is_quick else 1.0) for finding in findings),
        columns=" | ".join(columns),
        rules="|---" * len(columns),
        times="\n".join(times),
    )


def main() -> None:
    """Measure, say what was found and, if asked to, fail where a must is missed."""
    parser = argparse.ArgumentParser(description="Measure IncrementalSVDD against fitting libsvm's OneClassSVM again.")
    parser.add_argument("--quick", action="store_true", help="some seconds instead of a minute; fewer sizes and repetitions")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a must is missed")
    parser.add_argument("--out", type=Path, help="the page to write (default: incremental_svdd.md of docs/benchmarks)")
    asked = parser.parse_args()
    out = asked.out or (None if asked.quick else ROOT / "docs/benchmarks/incremental_svdd.md")
    started, load_before, slack = time.perf_counter(), load(), QUICK_SLACK if asked.quick else 1.0
    findings, times = [], []
    for case in QUICK if asked.quick else CASES:
        found, row = findings_of(case)
        findings += found
        times.append(row)
    text = page(findings, times, started, load_before, is_quick=asked.quick)
    conclude(text, findings, out, slack, gates=asked.gate)


if __name__ == "__main__":
    main()
