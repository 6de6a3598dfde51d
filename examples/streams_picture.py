"""Draw the generated streams and the five drifts: docs/images/generators.png and drifts.png.

    python examples/streams_picture.py

Needs matplotlib (pip install matplotlib). No data set is read. Each panel of the first picture shows some rows of a stream's
beginning, middle and end, early ones pale; the second shows one feature of the same stream under each drift.
"""

import sys
from pathlib import Path

import numpy as np

from oneclass import streams

try:
    import matplotlib as mpl
    from matplotlib.lines import Line2D
except ImportError:
    sys.exit("This example draws with matplotlib, which is not installed: pip install matplotlib")

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
BLUES, ORANGES = ("#a6cee8", "#4a97c9", "#08426b"), ("#f7c9a3", "#ea8c3a", "#8a3a00")
INK, GREY = "#1b1f24", "#c9ced4"
ROWS, SHOWN = 20_000, 500
MOVING = (
    streams.translation,
    streams.rotation,
    streams.expansion,
    streams.surrounding,
    streams.unimodal,
    streams.multimodal,
    streams.gears,
    streams.regimes,
    streams.bursts,
)
STILL = (streams.ring, streams.crescents)


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans", "text.color": INK})
    for name, figure in (("generators", generators()), ("drifts", drifts())):
        figure.savefig(IMAGES / f"{name}.png", dpi=100)
        print(f"wrote docs/images/{name}.png")


def generators() -> plt.Figure:
    """A panel for each generator."""
    figure, panels = plt.subplots(3, 4, figsize=(11, 8.6), layout="constrained")
    for panel, draw in zip(panels.flat, (*MOVING, *STILL), strict=False):
        stream = draw(ROWS if draw in MOVING else 1500, contamination=0.3, seed=3)
        moments = (0, ROWS // 2, ROWS - SHOWN) if draw in MOVING else (0,)
        for order, start in enumerate(moments):
            tone = order if draw in MOVING else 1
            part = slice(start, start + SHOWN) if draw in MOVING else slice(None)
            rows, is_target = stream.rows[part], stream.is_target[part]
            panel.scatter(*rows[~is_target].T, s=5, color=ORANGES[tone], linewidths=0)
            panel.scatter(*rows[is_target].T, s=5, color=BLUES[tone], linewidths=0)
        panel.set_title(draw.__name__, fontsize=12, fontweight="bold")
        panel.set(xticks=[], yticks=[])
        panel.axis("equal")
        for spine in panel.spines.values():
            spine.set_color(GREY)
    rest = panels.flat[-1]
    rest.axis("off")
    names = [f"{who}, {when}" for who in ("targets", "others") for when in ("early", "halfway", "late")]
    marks = [Line2D([], [], marker="o", ls="", color=color) for color in (*BLUES, *ORANGES)]
    rest.legend(marks, names, loc="center", frameon=False)
    return figure


def drifts() -> plt.Figure:
    """The same scene under each drift: the first feature of every row, in the order of arrival."""
    names = ("none", "incremental", "abrupt", "gradual", "recurring")
    figure, panels = plt.subplots(1, len(names), figsize=(11, 2.7), sharey=True, layout="constrained")
    for panel, name in zip(panels, names, strict=True):
        stream = streams.translation(2000, drift=name, contamination=0.1, seed=1)
        number = np.arange(len(stream))
        for mask, colors in ((~stream.is_target, ORANGES), (stream.is_target, BLUES)):
            panel.scatter(number[mask], stream.rows[mask, 0], s=3, color=colors[1], linewidths=0)
        panel.set_title(f'"{name}"', fontsize=12, fontweight="bold")
        panel.set(xticks=[0, 1000, 2000], yticks=[])
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.spines["bottom"].set_color(GREY)
    panels[0].set_ylabel("first feature")
    panels[len(names) // 2].set_xlabel("row of the stream")
    return figure


if __name__ == "__main__":
    main()
