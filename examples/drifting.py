"""Watch a stream whose normal class drifts, and say what was found.

    python examples/drifting.py                 the summary
    python examples/drifting.py --csv FILE      and every verdict, as a file

Two sensors of an imaginary pump. What is normal moves and turns slowly, until nothing of the first rows would be normal any more.
Outliers are planted along the way: single rows anywhere around, and bursts of several rows in one place. The watcher is told
nothing of them. It tests every row and then learns it, outliers included, and forgets what is older than its window.
"""

import argparse
import copy
import csv
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import oneclass as oc

FEATURES = ("pressure", "flow")
CHUNK = 50
PLANTED = {"normal": "a normal row", "single": "planted", "burst": "planted, in a burst"}


@dataclass
class Stream:
    """Rows in order of arrival, and what is known of them because we made them."""

    rows: np.ndarray  # (n, 2)
    centre: np.ndarray  # (n, 2): where normal is at that time
    kind: np.ndarray  # "normal", "single" or "burst"


def drifting_stream(rows: int = 4000, seed: int = 1) -> Stream:
    """A normal class that wanders along a closed curve and turns, with outliers after the first 200 rows."""
    rng = np.random.default_rng(seed)
    turn = np.linspace(0.0, 2.0 * np.pi, rows)
    centre = np.column_stack([50.0 + 6.0 * np.cos(turn), 8.0 + 1.2 * np.sin(turn)])

    # An ellipse, twice as long as wide, whose axes turn with time. One unit of pressure counts as much as 0.3 of flow.
    along, across = rng.normal(size=(2, rows)) * [[1.6], [0.8]]
    cos, sin = np.cos(turn), np.sin(turn)
    X = centre + np.column_stack([cos * along - sin * across, 0.3 * (sin * along + cos * across)])

    kind = np.full(rows, "normal", dtype="<U6")
    kind[200 + rng.choice(rows - 200, size=60, replace=False)] = "single"
    away, distance = rng.uniform(0.0, 2.0 * np.pi, size=rows), rng.uniform(4.0, 9.0, size=rows)
    for start in range(500, rows, 600):
        burst = slice(start, start + 6)
        kind[burst] = "burst"
        away[burst] = away[start] + rng.normal(size=6) * 0.05
        distance[burst] = 6.0
    offsets = np.column_stack([distance * np.cos(away), 0.3 * distance * np.sin(away)])
    planted = kind != "normal"
    X[planted] = (centre + offsets)[planted]
    return Stream(X, centre, kind)


@dataclass
class Alarm:
    """One alarm, explained by the model that raised it."""

    row: int
    score: float
    p_value: float
    values: np.ndarray
    expected: np.ndarray
    shares: np.ndarray

    @property
    def reason(self) -> str:
        """The feature that pushed the row out most, and in which direction."""
        return f"{FEATURES[self._blamed]} too {'high' if self.values[self._blamed] > self.expected[self._blamed] else 'low'}"

    @property
    def _blamed(self) -> int:
        return int(np.argmax(self.shares))

    def __str__(self) -> str:
        value, normal = self.values[self._blamed], self.expected[self._blamed]
        pushes = ", ".join(f"{name} {share:+.2f}" for name, share in zip(FEATURES, self.shares, strict=True))
        return (
            f"row {self.row + 1:<6d}score {self.score:.3f}   p-value {self.p_value:.4f}   "
            f"{self.reason}: {value:.1f}, where {normal:.1f} is normal   ({pushes})"
        )


def watch(stream: Stream) -> tuple[dict[str, np.ndarray], list[Alarm]]:
    """The verdicts on every row, and each alarm explained."""
    watcher = oc.Watcher(oc.KernelBoundary(window=150), chunk=CHUNK)
    parts, alarms = [], []
    for start in range(0, len(stream.rows), CHUNK):
        rows = stream.rows[start : start + CHUNK]
        model = copy.deepcopy(watcher.model)  # as it is when it tests these rows; the call below also learns them
        verdicts = watcher.watch(rows)
        parts.append(verdicts.to_dict())
        flagged = np.flatnonzero(verdicts.alarm)
        if len(flagged):
            expected, shares = model.expected(rows[flagged]), model.explain(rows[flagged])
            alarms += [
                Alarm(int(verdicts.row[i]), verdicts.score[i], verdicts.p_value[i], rows[i], expected[at], shares[at])
                for at, i in enumerate(flagged)
            ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, alarms


def summary(stream: Stream, verdicts: dict[str, np.ndarray], alarms: list[Alarm]) -> str:
    """What a person wants to know first."""
    tested, alarm = verdicts["state"] == "watching", verdicts["alarm"]
    normal, single, burst = (tested & (stream.kind == kind) for kind in ("normal", "single", "burst"))
    never_updated = oc.KernelBoundary().fit(stream.rows[~tested]).predict(stream.rows[normal]) == -1
    strongest = sorted(alarms, key=lambda found: -found.score)[:3]
    return "\n".join(
        [
            f"rows                    {len(alarm)}, of which {(~tested).sum()} to warm up and {tested.sum()} tested",
            f"alarms                  {alarm.sum()}",
            f"single outliers         {(single & alarm).sum()} of {single.sum()} flagged",
            f"outliers in bursts      {(burst & alarm).sum()} of {burst.sum()} flagged",
            f"normal rows             {(normal & alarm).sum()} of {normal.sum()} flagged",
            f"alarm rate, normal rows {alarm[normal].mean():.1%}; asked for 5.0%",
            f"the same, frozen        {never_updated.mean():.1%}, had the model learnt the first {(~tested).sum()} rows only",
            "",
            "the three strongest alarms (rows count from 1; in brackets: what each feature adds to the score of the normal row)",
            *(f"  {found}   {PLANTED[stream.kind[found.row]]}" for found in strongest),
        ]
    )


def write_csv(path: Path, verdicts: dict[str, np.ndarray], alarms: list[Alarm]) -> None:
    """One line per row: rows count from 1, an alarm is 1, what is not known is empty."""
    reasons = {found.row: found.reason for found in alarms}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "time", "key", "score", "threshold", "p_value", "alarm", "state", "reasons"])
        for row, score, threshold, p_value, alarm, state in zip(*(column.tolist() for column in verdicts.values()), strict=True):
            numbers = [score, threshold, p_value] if state == "watching" else ["", "", ""]
            writer.writerow([row + 1, "", "", *numbers, int(alarm), state, reasons.get(row, "")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Watch a stream whose normal class drifts, and say what was found.")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write one verdict per row to FILE")
    arguments = parser.parse_args()

    stream = drifting_stream()
    started = time.perf_counter()
    verdicts, alarms = watch(stream)
    print(summary(stream, verdicts, alarms))
    print(f"\n{time.perf_counter() - started:.1f} s")
    if arguments.csv:
        write_csv(arguments.csv, verdicts, alarms)
        print(f"verdicts written to {arguments.csv}")
