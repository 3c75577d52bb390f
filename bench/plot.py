"""One plot: several series over the same logarithmic axis, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.figure

__all__ = ["Series", "write_plot"]


@dataclass(frozen=True, slots=True)
class Series:
    """Values ``y`` at ``x``; ``name`` includes the unit."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def write_plot(path: Path, axis: str, series: Sequence[Series]) -> None:
    """Draw each series below the others, with a marker at every value."""
    figure = matplotlib.figure.Figure(figsize=(7, 2.6 * len(series)), layout="constrained")
    parts = figure.subplots(len(series), sharex=True, squeeze=False)
    for part, drawn in zip(parts[:, 0], series, strict=True):
        part.plot(drawn.x, drawn.y, marker="o")
        part.set(xscale="log", yscale="log", ylabel=drawn.name)
        part.grid(visible=True, which="both", linewidth=0.3)
    parts[-1, 0].set_xlabel(axis)
    figure.savefig(path)
