"""The entries of a kernel as ``wcet analyse`` sees them before costs are known."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.inlining.supergraph import Supergraph
from quoll.value_analysis.value_results import ValueResults, analyse
from wcet.analysis.entries import path_exits
from wcet.platforms.platform_model import load

__all__ = ["EntryGraphs", "graphs_of"]


class EntryGraphs(NamedTuple):
    """An entry without facts: its full expansion, that without dead edges, and its values."""

    whole: Supergraph
    graph: Supergraph
    values: ValueResults


def graphs_of(kernel: Path) -> dict[int, EntryGraphs]:
    """Each entry of a kernel for KZM, by vector address."""
    image, platform = Image.load(kernel), load("kzm")
    vectors = [entry.vector for entry in platform.entries.values()]
    program = extract(image, vectors, exits=path_exits(image, platform))
    found = {}
    for vector in vectors:
        whole = expand(program, vector, image)
        graph = without_edges(whole, analyse(whole, image).dead_edges, image)
        found[vector] = EntryGraphs(whole, graph, analyse(graph, image))
    return found
