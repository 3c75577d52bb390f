"""The values of small programs in assembly."""

from __future__ import annotations

from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import EntryRegisters, ValueResults, analyse
from tests.testing.quoll.sketch import assemble
from tests.testing.values.executed import STACK

__all__ = ["analysed"]


def analysed(text: str) -> tuple[Image, Supergraph, ValueResults]:
    """The program whose entry is ``main``, with a known stack."""
    image = assemble(text)
    (symbol,) = [image.symbol("main")]
    assert symbol is not None
    graph = expand(extract(image, [symbol.addr]), symbol.addr & ~1, image)
    start = EntryRegisters(0x13, {13: ValueSet.of(STACK)})
    return image, graph, analyse(graph, image, start)
