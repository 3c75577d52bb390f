"""``X never executes in F`` removes the code that it excludes, and all questions about it."""

from __future__ import annotations

import pytest

from quoll.errors import ControlFlowError
from quoll.facts.located import locate
from quoll.facts.read import Facts, parse
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand, refuse_stops
from quoll.inlining.supergraph import Supergraph
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

SOURCE = """
main:   push {r4, lr}
        bl service
        cmp r0, #1
        bleq report
        pop {r4, pc}
service: push {r4, lr}
        cmp r0, #0
        beq debug
        cmp r0, #3
        bleq report
        pop {r4, pc}
debug:  bl deep
        blx r1
other:  b other
        .type deep, %function
deep:   push {r4, lr}
        subs r0, r0, #1
        blne deep
        pop {r4, pc}
        .type report, %function
report: push {r4, lr}
        cmp r0, #7
        bne fine
spins:  str r0, [r1]
        b spins
fine:   pop {r4, pc}
"""


def graph(facts: str) -> Supergraph:
    image = assemble(".type service, %function\n" + SOURCE)
    program = extracted(image, facts=parse(facts, "k.facts"))
    found = expand(program, address(image, "main"), image)
    return guided_in_contexts(found, image, locate(parse(facts, "k.facts"), image))


def functions(found: Supergraph) -> set[str]:
    image = assemble(".type service, %function\n" + SOURCE)
    names = ("main", "service", "deep", "report")
    reached = {found.contexts[node.context].function for node in found.nodes}
    return {name for name in names if address(image, name) in reached}


SPINS = "path must end at spins\n"


@pytest.mark.parametrize(
    "fact", ["debug never executes", "debug never executes in service", "deep never executes\n"
             "targets of debug+4 are 0xfffffff0\nfunction 0xfffffff0 takes at most 1 cycles"]
)  # fmt: skip
def test_excluded_code_needs_no_facts(fact: str) -> None:
    """Recursion, an unknown call, and an endless loop."""
    found = graph(SPINS + fact)
    assert functions(found) == {"main", "service", "report"}
    assert fact.split("\n", maxsplit=1)[0] in str(found.guidance.removed[0].fact)


def test_the_same_code_within_others_stays() -> None:
    """``report`` also executes outside of ``service``: there its endless loop is not excluded."""
    rest = "debug never executes in service\n"
    with pytest.raises(ControlFlowError, match="recursion: deep -> deep"):
        graph("targets of debug+4 are 0xfffffff0\nfunction 0xfffffff0 takes at most 1 cycles\n"
              "debug never executes in report\n")  # fmt: skip
    found = graph(rest + "spins never executes in service\n")
    image = assemble(".type service, %function\n" + SOURCE)
    with pytest.raises(ControlFlowError, match="no end of a path"):
        refuse_stops(found, image)
    refuse_stops(graph(rest + "spins never executes\n"), image)
    refuse_stops(graph(rest + "spins never executes in main\n"), image)
    assert len(graph(rest + "spins never executes in service\n").stops) == 1
    assert len(graph(rest).stops) == 2


def test_counts_of_conditional_instructions_and_lines_remove_nothing() -> None:
    """The block executes, though the instruction has no effect."""
    image = assemble("main: cmp r0, #0\naddne r0, r0, #1\nb out\nout: bx lr")
    for fact in ("main+4 never executes", "prog.S:6 never executes"):
        program = extracted(image, facts=parse(fact, "k.facts"))
        plain = extracted(image, facts=Facts())
        assert program.functions[address(image, "main")].blocks == (
            plain.functions[address(image, "main")].blocks
        )
        assert not program.guidance.removed
