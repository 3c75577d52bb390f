"""Facts about registers at the start of a block hold there."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.extraction.extract import extract
from quoll.facts.located import NO_FACTS, locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import analyse
from tests.testing.quoll.building import address, build

COPY = """void *main(unsigned char *to, unsigned char *from, unsigned n)
{ unsigned char *end = from + n; while (from != end) *to++ = *from++; return to; }
"""


def compiled() -> Path:
    return build(COPY, "-fno-tree-loop-distribute-patterns", optimise="-O1")


@pytest.mark.slow("NuSMV proves each bound")
def test_an_argument_that_is_bounded_at_the_entry_bounds_a_loop_that_ends_by_not_equal() -> None:
    image = Image.load(compiled())
    entry = address(image, "main")
    facts = locate(parse(f"register r2 at {entry:#x} is at most 1000", "x.facts"), image)
    graph = expand(extract(image, [entry]), entry, image)
    values = analyse(graph, image, regions=facts.regions)
    assert values.register(graph.entry, 2).high == 1000
    assert analyse(graph, image).register(graph.entry, 2).high == 0xFFFF_FFFF
    options = BoundOptions(Budget(seconds=10), workers=1)
    [bound] = bound_loops(graph, image, values, facts, options)
    assert bound.bound in (1000, 1001)
    assert bound.exact
    [unknown] = bound_loops(graph, image, analyse(graph, image), NO_FACTS, options)
    assert unknown.bound is None or unknown.bound > 1 << 31
