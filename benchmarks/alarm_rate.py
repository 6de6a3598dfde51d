"""The share of fresh normal rows that is flagged when 5 % was asked for, by both thresholds, and how uniform the p-values are.

    python benchmarks/alarm_rate.py [--draws 100] [--out docs/benchmarks/alarm_rate.md]

A draw is a model of 150 standard normal rows with the library's own width ("auto": the median distance of the scaled rows), and
1000 fresh rows of the same distribution. tests/test_alarm_rate.py runs the same code.
"""

import argparse
import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from oneclass import KernelBoundary, KernelReconstruction

ROOT = Path(__file__).resolve().parents[1]
ROWS, FRESH, ALARM_RATE = 150, 1000, 0.05
EVERY_D, EVERY_C, MODELS = (2, 5, 10), (1.0, 100.0, 1e4), (KernelBoundary, KernelReconstruction)
LEVELS = np.array([1, 2, 5, 10, 20, 50, 100, 150, 200, 400, 700, 900]) / 1000
"""p-values are looked at near these levels: at the nearest k / (n + 1)."""


class Rates(NamedTuple):
    """What came of fresh normal rows, over all draws."""

    flagged: dict[str, float]  # share by threshold rule
    error: dict[str, float]  # standard error of that share, between draws
    excess: np.ndarray  # at each k of `ranks()`: share of p-values <= k/(n+1), less k/(n+1)
    excess_error: np.ndarray  # its standard error, between draws


def ranks() -> np.ndarray:
    """The k at whose levels k / (n + 1) p-values are looked at."""
    return np.unique(np.maximum(1, (LEVELS * (ROWS + 1)).round().astype(int)))


def measure(kind: type, features: int, C: float, draws: int, seed: int = 0) -> Rates:
    """The shares for one model; the draws are the same for every C and both thresholds."""
    shares: dict[str, list[float]] = {"training": [], "leave-one-out": []}
    below = np.empty((draws, len(ranks())))
    for draw in range(draws):
        rng = np.random.default_rng((seed, features, draw))
        rows, fresh = rng.standard_normal((ROWS, features)), rng.standard_normal((FRESH, features))
        for rule, found in shares.items():
            model = kind(C=C, alarm_rate=ALARM_RATE, threshold=rule).fit(rows)
            found.append(float((model.predict(fresh) == -1).mean()))
            if rule == "leave-one-out":
                # Counted in whole ranks: k/(n+1) need not be the same float however it is computed.
                rank = (model.p_values(fresh) * (ROWS + 1)).round()
                below[draw] = (rank[:, None] <= ranks()).mean(axis=0)
    excess = below - ranks() / (ROWS + 1)
    return Rates(
        {rule: float(np.mean(found)) for rule, found in shares.items()},
        {rule: float(np.std(found, ddof=1) / np.sqrt(draws)) for rule, found in shares.items()},
        excess.mean(axis=0),
        excess.std(axis=0, ddof=1) / np.sqrt(draws),
    )


def tolerance(draws: int) -> np.ndarray:
    """How far the share of p-values up to each level p may be from p in the mean of so many draws.

    Four standard errors, and 2 % of √(p(1-p)) because exchangeability is approximate. For exchangeable distances the share of fresh
    rows up to level p varies between draws like a Beta variable of mean p and variance p(1-p)/(n+2).
    """
    p = ranks() / (ROWS + 1)
    return (4.0 / np.sqrt((ROWS + 2) * draws) + 0.02) * np.sqrt(p * (1.0 - p))


PAGE = """# The alarm rate one gets

Made by `python benchmarks/alarm_rate.py --draws {draws}` on {date} in {seconds:.0f} s; Python {python}, NumPy {numpy}.

{rows} standard normal rows with d features, width "auto" (the median distance of the scaled rows), alarm rate {rate:.0%};
the share of {fresh} fresh rows of the same distribution that is flagged, mean of {draws} draws ± its standard error.
The goal is 3.5 to 5.5 % for KernelBoundary with the leave-one-out threshold.

| model | d | C | "training" (the paper's) | "leave-one-out" | kept |
|---|---|---|---|---|---|
{table}

## p-values

If the distance of a fresh row and the leave-one-out distances were exchangeable, a share of exactly k/(n+1) of fresh rows
would have a p-value up to k/(n+1). They are nearly so: a leave-one-out distance comes from a model of n - 1 rows, a fresh one
from all n. The share found, less the level, in percentage points (mean over the draws; the standard error is at most {error:.1f}):

| model | d | C | {levels} |
{rule}
{p_values}

The largest deviation is {worst:.1f} percentage points. tests/test_alarm_rate.py allows, at a level p, four standard errors of
√(p(1-p)/(n+2)/draws), which is what exchangeable distances would give, and 0.02·√(p(1-p)) more, because they are only nearly so:

| allowed | | | {allowed} |
{rule}
"""


def main() -> None:
    """Measure every combination and write the page."""
    parser = argparse.ArgumentParser(description="Measure the share of fresh normal rows that is flagged.")
    parser.add_argument("--draws", type=int, default=100, help="models per combination (default: 100)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks/alarm_rate.md", help="the page to write")
    asked, start = parser.parse_args(), time.perf_counter()
    every = [(kind, d, C, measure(kind, d, C, asked.draws)) for kind in MODELS for d in EVERY_D for C in EVERY_C]
    rates, p_values = [], []
    for kind, d, C, found in every:
        cells = [f"{100 * found.flagged[rule]:.1f} ± {100 * found.error[rule]:.1f} %" for rule in found.flagged]
        kept = "yes" if 0.035 <= found.flagged["leave-one-out"] <= 0.055 else "no"
        rates.append(f"| {kind.__name__} | {d} | {C:g} | {' | '.join(cells)} | {kept} |")
        p_values.append(f"| {kind.__name__} | {d} | {C:g} | {' | '.join(f'{100 * value:+.1f}' for value in found.excess)} |")
    text = PAGE.format(
        draws=asked.draws,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=time.perf_counter() - start,
        python=platform.python_version(),
        numpy=np.__version__,
        rows=ROWS,
        rate=ALARM_RATE,
        fresh=FRESH,
        table="\n".join(rates),
        error=100 * max(found.excess_error.max() for *_, found in every),
        levels=" | ".join(f"{k}/{ROWS + 1}" for k in ranks()),
        rule="|---" * (len(ranks()) + 3) + "|",
        p_values="\n".join(p_values),
        worst=100 * max(np.abs(found.excess).max() for *_, found in every),
        allowed=" | ".join(f"{100 * value:.1f}" for value in tolerance(asked.draws)),
    )
    print(text)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
