"""Draw a boundary that follows a drifting stream: docs/images/boundary.png and boundary.svg.

    python examples/boundary_picture.py

Needs matplotlib (pip install matplotlib). Nothing in the picture is staged but the stream: a normal class that wanders, bends and
splits in two, with single outliers and bursts planted in it. The model has its default parameters and learns every row.
"""

import sys
from pathlib import Path

import numpy as np

import oneclass as oc

try:
    import matplotlib as mpl
    from matplotlib.lines import Line2D
    from matplotlib.patches import ConnectionPatch, Patch
except ImportError:
    sys.exit("This example draws with matplotlib, which is not installed: pip install matplotlib")

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
ROWS, WINDOW, CHUNK = 6000, 150, 50
SNAPSHOTS = (300, 1700, 3100, 4200, 5600)
BLUE, VERMILION, INK, GREY = "#0072B2", "#D55E00", "#1b1f24", "#8a929b"  # the first two told apart by every kind of eye


def stream(seed: int = 4) -> np.ndarray:
    """Rows of a class that walks round three quarters of a circle, bends into a crescent and ends as two groups."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, ROWS)
    heading = np.pi * (1.0 - 1.5 * t)
    centre = 2.6 * np.column_stack([np.cos(heading), np.sin(heading)])
    # Each row lies at a place along a bow; the bow is short at first, long in the middle, and at last empty in its middle.
    opening = 1.15 * np.clip((t - 0.1) / 0.35, 0.0, 1.0)
    gap = np.clip((t - 0.55) / 0.35, 0.0, 1.0)
    place = rng.uniform(-1.0, 1.0, size=ROWS)
    place = (np.sign(place) * gap + place * (1.0 - 0.85 * gap) * (1.0 - 0.15 * gap)) * opening
    bow = 1.5 * np.column_stack([np.cos(heading + place) - np.cos(heading), np.sin(heading + place) - np.sin(heading)])
    X = centre + bow + rng.normal(size=(ROWS, 2)) * 0.3

    away = rng.choice(np.arange(200, ROWS), size=90, replace=False)
    X[away] = centre[away] + rng.uniform(-3.2, 3.2, size=(len(away), 2))
    for start in range(500, ROWS, 900):
        X[start : start + 6] = -0.3 * centre[start] + rng.normal(size=(6, 2)) * 0.12
    return X


def main() -> None:
    X = stream()
    watcher = oc.Watcher(oc.KernelBoundary(window=WINDOW), chunk=CHUNK)
    side = np.linspace(-5.0, 5.0, 260)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
    parts, regions, windows = [], [], []
    for start, end in zip((0, *SNAPSHOTS), (*SNAPSHOTS, ROWS), strict=True):
        parts.append(watcher.watch(X[start:end]).to_dict())
        regions.append(watcher.model.decision_function(grid).reshape(260, 260))
        windows.append(watcher.model.window_)
    verdicts = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 15, "text.color": INK, "svg.hashsalt": "oneclass"})
    figure = plt.figure(figsize=(16, 6.2), facecolor="white")
    layout = figure.add_gridspec(
        2, len(SNAPSHOTS), height_ratios=(2.9, 1.0), hspace=0.2, wspace=0.06, left=0.045, right=0.98, top=0.91, bottom=0.09
    )
    strip = figure.add_subplot(layout[1, :])
    draw_scores(strip, verdicts)
    for column, row in enumerate(SNAPSHOTS):
        panel = figure.add_subplot(layout[0, column])
        draw_panel(panel, side, X, verdicts["alarm"], row, regions[: column + 1], windows[column])
        figure.add_artist(
            ConnectionPatch(
                (0.5, 0.0), (row, 1.0), panel.transAxes, strip.get_xaxis_transform(), axesA=panel, axesB=strip, color=GREY, lw=0.9
            )
        )
        strip.axvline(row, color=GREY, lw=0.9, zorder=0)
    figure.legend(handles=legend(), loc="upper center", ncols=5, frameon=False, bbox_to_anchor=(0.517, 1.0), handletextpad=0.4)

    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "boundary.png", dpi=100)
    figure.savefig(IMAGES / "boundary.svg", metadata={"Date": None})
    print(f"written: {IMAGES / 'boundary.png'} and boundary.svg")


def draw_panel(
    panel: plt.Axes, side: np.ndarray, X: np.ndarray, alarm: np.ndarray, row: int, regions: list, window: np.ndarray
) -> None:
    """What the model knows after `row` rows: where it has been, what it holds, what it accepts, what it flagged lately."""
    before = X[: row - WINDOW : 2]
    panel.scatter(*before.T, s=3, color="#d3d8dd", linewidths=0, rasterized=True)
    for region in regions[:-1]:
        panel.contour(side, side, region, levels=[0.0], colors="#a9b1b9", linewidths=1.1, linestyles="dashed")
    panel.contourf(side, side, regions[-1], levels=[0.0, np.inf], colors=[BLUE], alpha=0.16)
    panel.contour(side, side, regions[-1], levels=[0.0], colors=[BLUE], linewidths=2.4)
    panel.scatter(*window.T, s=13, color=BLUE, linewidths=0)
    lately = np.arange(row - WINDOW, row)
    flagged = lately[alarm[lately]]
    panel.scatter(*X[flagged].T, s=70, marker="X", color=VERMILION, edgecolors="white", linewidths=0.9, zorder=5)
    panel.set(xlim=(-4.5, 4.1), ylim=(-4.55, 4.05), aspect="equal", xticks=[], yticks=[])
    panel.text(0.045, 0.05, f"after {row:,} rows", transform=panel.transAxes, fontsize=16, fontweight="bold")
    for spine in panel.spines.values():
        spine.set_color("#c9ced4")


def draw_scores(strip: plt.Axes, verdicts: dict[str, np.ndarray]) -> None:
    """The score of every row against the threshold of its time."""
    row, score, alarm = verdicts["row"], verdicts["score"], verdicts["alarm"]
    strip.scatter(row[~alarm], score[~alarm], s=3, color=BLUE, alpha=0.45, linewidths=0, rasterized=True)
    strip.scatter(row[alarm], score[alarm], s=26, marker="X", color=VERMILION, linewidths=0)
    strip.step(row, verdicts["threshold"], color=INK, lw=1.6, where="post")
    strip.set(xlim=(0, len(row)), ylim=(-0.03, 1.08), yticks=[0, 0.5, 1])
    strip.set_ylabel("score", labelpad=2)
    strip.set_xlabel("row of the stream", labelpad=2)
    strip.xaxis.set_major_formatter("{x:,.0f}")
    strip.tick_params(labelsize=13, colors=INK, length=3)
    for name, spine in strip.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color("#c9ced4")


def legend() -> list:
    return [
        Line2D([], [], marker="o", ls="", ms=6, color=BLUE, label="rows in the window"),
        Patch(facecolor=(0, 0.447, 0.698, 0.16), edgecolor=BLUE, lw=2.2, label="accepted"),
        Line2D([], [], marker="X", ls="", ms=10, mec="white", color=VERMILION, label="alarm"),
        Line2D([], [], color="#a9b1b9", ls="--", lw=1.4, label="earlier boundaries"),
        Line2D([], [], color=INK, lw=1.8, label="threshold"),
    ]


if __name__ == "__main__":
    main()
