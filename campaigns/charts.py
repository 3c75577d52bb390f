"""Bar charts of the evaluation: ``python -m campaigns.charts``, which needs Matplotlib.

The columns of ``campaigns.tables.CHARTS`` become SVG files in ``docs/results/charts``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.figure
import matplotlib.ticker

from campaigns.tables import CHARTS, Chart, Table, all_tables, number
from tests.testing.harness import build

__all__ = ["draw", "main"]

FOLDER = build.ROOT / "docs/results/charts"


def draw(chart: Chart, table: Table, folder: Path) -> None:
    """The chart as an SVG file, the same bytes each time."""
    drawn = chart.drawn(table)
    labels, rows = [label for label, _ in drawn], [row for _, row in drawn]
    size = 7, 1 + 0.25 * len(labels) * len(chart.columns)
    figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(chart.columns)
    for index, (column, title) in enumerate(chart.columns):
        bars = [(at, number(row[column])) for at, row in enumerate(rows)]
        shown = [(at + index * height, value) for at, value in bars if value is not None]
        axes.barh([at for at, _ in shown], [value for _, value in shown], height, label=title)
    axes.set_yticks([at + 0.4 - height / 2 for at in range(len(labels))], labels)
    axes.invert_yaxis()
    if chart.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    axes.set_xlabel(chart.unit)
    axes.legend(fontsize="small")
    folder.mkdir(exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = chart.table
    figure.savefig(folder / f"{chart.table}.svg", metadata={"Date": None})


def main() -> int:
    found = all_tables()
    for chart in CHARTS:
        draw(chart, found[chart.table], FOLDER)
    print(f"{len(CHARTS)} charts", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
