"""Loops behind a change of stacks: sp is loaded from where it points to."""

from __future__ import annotations

import pytest

from loopbounds.bounds import bound_loops
from quoll.facts.located import NO_FACTS
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import analyse
from tests.testing.quoll.sketch import assemble, extracted

SWITCH = """
main:   ldr  sp, [sp]
        mov  r4, #5
        str  r4, [sp]
again:  ldr  r3, [sp]
        subs r3, r3, #1
        str  r3, [sp]
        bne  again
        bx   lr
"""


@pytest.mark.slow("NuSMV proves each bound")
def test_a_loaded_stack_pointer_is_followed_no_further() -> None:
    image = assemble(SWITCH)
    symbol = image.symbol("main")
    assert symbol is not None
    graph = expand(extracted(image), symbol.addr, image)
    (bound,) = bound_loops(graph, image, analyse(graph, image), NO_FACTS)
    assert (bound.bound, bound.exact) == (5, True)
