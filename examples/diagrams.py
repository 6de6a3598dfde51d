"""Draw the diagrams of docs/mathematics.md, after the paper's figures 1 to 3, as SVG files in docs/images.

    python examples/diagrams.py                 the SVG files
    python examples/diagrams.py --png FOLDER    the same as PNG, to look at

Needs matplotlib (pip install matplotlib).
"""

import argparse
import sys
from pathlib import Path

try:
    import matplotlib as mpl
    from matplotlib.patches import FancyBboxPatch, Rectangle
except ImportError:
    sys.exit("This example draws with matplotlib, which is not installed: pip install matplotlib")

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
BLUE, VERMILION, INK, GREY, PALE = "#0072B2", "#D55E00", "#1b1f24", "#8a929b", "#e6e9ec"
FADED_BLUE, FADED_VERMILION = "#d6e8f3", "#fae3d5"
DOTS, NODE = "⋮", 6.6


def canvas(width: float, height: float) -> tuple[plt.Figure, plt.Axes]:
    """A figure whose axes count tenths of its width and height in inches."""
    figure, axes = plt.subplots(figsize=(width, height), facecolor="white")
    figure.subplots_adjust(0, 0, 1, 1)
    axes.set(xlim=(0, 10 * width), ylim=(0, 10 * height), aspect="equal")
    axes.axis("off")
    return figure, axes


def arrow(axes: plt.Axes, start: tuple, end: tuple, color: str = GREY, **style: object) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0, "lw": 1.2, **style})


def box(axes: plt.Axes, x: float, y: float, width: float, height: float, text: str, color: str = INK) -> None:
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=1", facecolor="white", edgecolor=color, lw=1.6)
    )
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=12.5, linespacing=1.5)


def caption(axes: plt.Axes, x: float, text: str) -> None:
    axes.text(x, 8.0, text, ha="center", va="top", fontsize=11.5, color="#59616a", linespacing=1.35)


def links(axes: plt.Axes, left: float, right: float, starts: list[float], ends: list[float], color: str) -> None:
    """Every node of one layer joined with every node of the next."""
    for start in starts:
        for end in ends:
            axes.plot([left, right], [start, end], color=color, lw=1.2, zorder=1)


def layer(axes: plt.Axes, x: float, heights: list[float], texts: list[str], color: str, width: float) -> None:
    """Nodes above each other; three dots where some are left out."""
    for y, text in zip(heights, texts, strict=True):
        if text != DOTS:
            rounded = f"round,pad=0,rounding_size={NODE / 2}"
            corner = (x - width / 2, y - NODE / 2)
            axes.add_patch(
                FancyBboxPatch(corner, width, NODE, boxstyle=rounded, facecolor="white", edgecolor=color, lw=2, zorder=3)
            )
        axes.text(x, y - 0.1, text, ha="center", va="center", fontsize=15 if text == DOTS else 13, zorder=4)


def network(*, outputs: list[str], judge: str, target: str) -> plt.Figure:
    """Inputs, one hidden node per row of the window, outputs, and what is made of them."""
    figure, axes = canvas(10.4, 4.6)
    heights = [37.0, 28.5, 21.5, 14.5]
    drawn = [heights[0], heights[1], heights[3]]
    above = heights if len(outputs) > 1 else [25.75]
    links(axes, 8, 35, drawn, drawn, PALE)
    links(axes, 35, 63, drawn, drawn if len(outputs) > 1 else above, "#7fb8d8")
    layer(axes, 8, heights, ["$x^1$", "$x^2$", DOTS, "$x^d$"], GREY, NODE)
    layer(axes, 35, heights, ["$k(x_1, x)$", "$k(x_2, x)$", DOTS, "$k(x_n, x)$"], BLUE, 13)
    layer(axes, 63, above, outputs, VERMILION, NODE)
    box(axes, 77, 19.25, 25, 13, judge)
    arrow(axes, (67, 25.75), (76.4, 25.75), INK)
    axes.text(49, 42.6, r"$\beta = (K + I/C)^{-1}\,$" + target, ha="center", va="center", fontsize=13.5, color=BLUE)
    caption(axes, 8, "one row,\nd features")
    caption(axes, 35, "one node for each row\nof the window")
    caption(axes, 63, "one output" if len(outputs) == 1 else "one output\nper feature")
    caption(axes, 89.5, "decision")
    return figure


def single() -> plt.Figure:
    """Figure 1 of the paper: the boundary model has one output, which should be 1."""
    return network(outputs=["$f(x)$"], judge="$d(x) = |f(x) - 1|$\nalarm:  $d(x) > \\theta$", target="$1$")


def reconstruction() -> plt.Figure:
    """Figure 3 of the paper: the reconstruction model has one output per feature, which should be that feature."""
    outputs = [r"$\hat x^1$", r"$\hat x^2$", DOTS, r"$\hat x^d$"]
    return network(outputs=outputs, judge="$d(x) = \\|x - \\hat x\\|^2$\nalarm:  $d(x) > \\theta$", target="$X$")


def slots(axes: plt.Axes, y: float, rows: list[str], new: set[int], head: int | None, label: str) -> None:
    """One state of the ring: six slots side by side."""
    for slot, row in enumerate(rows):
        fresh = slot in new
        colors = {"facecolor": FADED_VERMILION if fresh else FADED_BLUE, "edgecolor": VERMILION if fresh else BLUE}
        axes.add_patch(Rectangle((40 + 9 * slot, y), 8.2, 7, lw=1.8, **colors))
        axes.text(44.1 + 9 * slot, y + 3.4, row, ha="center", va="center", fontsize=13)
    axes.text(37, y + 3.5, label, ha="right", va="center", fontsize=12.5)
    if head is not None:
        axes.text(44.1 + 9 * head, y - 2.3, "▲ oldest", ha="center", va="center", fontsize=10, color="#59616a")


def window() -> plt.Figure:
    """Figure 2 of the paper, as it is kept: the stream above, and the slots of a ring that it is written into."""
    figure, axes = canvas(10.4, 5.1)
    for row in range(1, 13):
        color = BLUE if 5 <= row <= 8 else VERMILION if row in (9, 10) else GREY
        face = {BLUE: FADED_BLUE, VERMILION: FADED_VERMILION, GREY: "white"}[color]
        axes.add_patch(Rectangle((-1.5 + 7.9 * row, 39), 7.0, 6.2, facecolor=face, edgecolor=color, lw=1.5))
        axes.text(
            2.0 + 7.9 * row, 42.0, f"$x_{{{row}}}$", ha="center", va="center", fontsize=13, color=GREY if color == GREY else INK
        )
    for first, last, text in ((1, 4, "forgotten"), (5, 10, "window: the last n = 6 rows"), (11, 12, "to come")):
        left, right = -1.5 + 7.9 * first, 5.5 + 7.9 * last
        axes.plot([left, left, right, right], [46.3, 47.2, 47.2, 46.3], color=GREY, lw=1.1)
        axes.text((left + right) / 2, 48.0, text, ha="center", va="bottom", fontsize=11.5, color="#59616a")
    slots(axes, 28, [f"$x_{{{i}}}$" for i in range(1, 7)], set(), 0, "the window is full")
    slots(axes, 16, ["$x_7$", "$x_8$", "$x_3$", "$x_4$", "$x_5$", "$x_6$"], {0, 1}, 2, "a chunk of s = 2 rows")
    slots(axes, 4, ["$x_7$", "$x_8$", "$x_9$", "$x_{10}$", "$x_5$", "$x_6$"], {2, 3}, 4, "the next chunk")
    for slot in range(6):
        axes.text(44.1 + 9 * slot, 36.4, f"slot {slot}", ha="center", va="center", fontsize=10, color="#59616a")
    for top in (28, 16):
        arrow(axes, (30, top + 0.4), (30, top - 4.4))
    return figure


def factor() -> plt.Figure:
    """The Cholesky factor in blocks: what a chunk leaves valid, and what is computed again."""
    figure, axes = canvas(10.4, 4.6)
    size, blocks, changed = 8.0, 4, 1
    for left, name in ((14, "$K$"), (62, "$L$")):
        for i in range(blocks):
            for j in range(blocks):
                touched = changed in (i, j) if name == "$K$" else i == changed or (i > changed and j >= changed)
                if name == "$L$" and j > i:
                    continue
                x, y = left + size * j, 38 - size * (i + 1)
                color = (FADED_VERMILION, VERMILION) if touched else (FADED_BLUE, BLUE)
                if name == "$L$" and i == j:
                    axes.fill([x, x + size, x], [y, y, y + size], facecolor=color[0], edgecolor=color[1], lw=1.5, zorder=2)
                else:
                    axes.add_patch(Rectangle((x, y), size, size, facecolor=color[0], edgecolor=color[1], lw=1.5))
        axes.text(left + size * 2, 41.3, name, ha="center", va="center", fontsize=16)
    for i in range(blocks):
        text = "the chunk" if i == changed else f"block {i}"
        axes.text(12.5, 34 - size * i, text, ha="right", va="center", fontsize=10.5, color=VERMILION if i == changed else "#59616a")
    arrow(axes, (48.5, 22), (59.5, 22), INK)
    axes.text(54, 24.6, "$K + I/C = LL^T$", ha="center", va="bottom", fontsize=11.5)
    axes.text(30, 3.3, "new: the rows and columns\nof the chunk", ha="center", va="center", fontsize=11, color=VERMILION)
    axes.text(78, 3.3, "blue: still valid\nred: computed again", ha="center", va="center", fontsize=11, color="#59616a")
    return figure


DIAGRAMS = {"single": single, "window": window, "reconstruction": reconstruction, "factor": factor}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the diagrams of docs/mathematics.md.")
    parser.add_argument("--png", type=Path, metavar="FOLDER", help="write PNG files there instead")
    folder = parser.parse_args().png
    plt.rcParams.update({"mathtext.fontset": "dejavusans", "text.color": INK, "svg.hashsalt": "oneclass"})
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, draw in DIAGRAMS.items():
        figure = draw()
        if folder:
            figure.savefig(folder / f"{name}.png", dpi=100)
        else:
            figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    print(f"drawn: {', '.join(DIAGRAMS)}")
