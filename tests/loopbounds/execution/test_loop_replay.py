"""A fact is refuted only by an execution from the entry that enters the loop (rule 51)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.execution.concrete import LoopExecution
from loopbounds.execution.loop_replay import GraphReplay
from loopbounds.proof.bound import LoopBound
from loopbounds.recursion import find_depths
from quoll.errors import FactsError
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import address, build

FLAGS = ("-fno-inline", "-fno-ipa-cp", "-fno-unroll-loops", "-fno-ipa-vrp", "-fno-ipa-pure-const")

# Each has a loop of exactly 40 executions on line 5, if it is entered.
LOOP = "for (unsigned i = 0; i < 40; i++) sink = i;"
NEVER = {
    "an argument that no caller hands over": f"""volatile unsigned sink; unsigned mode;
        __attribute__((noinline)) unsigned low(unsigned a, unsigned b) {{ return a * 2 + b * 4; }}
        int main(unsigned a, unsigned b) {{
            if (low(a, b) & 1)
                {LOOP}
            return 0; }}""",
    "a word that is never set": f"""volatile unsigned sink; volatile unsigned mode;
        int main(void) {{
            unsigned m = mode;
            if (m == 7)
                {LOOP}
            return 0; }}""",
    "an endless loop before it": f"""volatile unsigned sink; volatile unsigned mode;
        int main(void) {{
            sink = 1;
            while (mode) ;
                {LOOP}
            return 0; }}""",
    "a store that may hit anything before it": f"""volatile unsigned sink; volatile unsigned mode;
        int main(unsigned **p) {{
            unsigned *where = (unsigned *)mode;
            *where = 1;
                {LOOP}
            return 0; }}""",
}
ENTERED = {
    "always": f"""volatile unsigned sink;

        int main(void) {{

                {LOOP}
            return 0; }}""",
    "for any words in registers but one": f"""volatile unsigned sink;

        int main(unsigned a) {{
            if (a != 123456)
                {LOOP}
            return 0; }}""",
    "in the second turn of a loop around it": f"""volatile unsigned sink;
        int main(void) {{
            for (unsigned k = 0; k < 3; k++)
                if (k == 1)
                {LOOP}
            return 0; }}""",
}


def program(source: str) -> Program:
    return load(build(source, *FLAGS, optimise="-O1"))


def stated(code: Program, n: int) -> list[LoopBound]:
    bounds = code.bounds(parse(f"loop prog.c:5 at most {n}", "x"))
    return [b for b in bounds if b.method == "fact"]


@pytest.mark.parametrize("name", NEVER)
def test_what_nothing_shows_to_be_entered_refutes_nothing(name: str) -> None:
    [bound] = stated(program(NEVER[name]), 9)
    assert bound.bound == 9
    assert bound.explained.startswith("x:1 (assumed, no proof was tried")


def test_a_fact_that_its_model_contradicts_says_so() -> None:
    """It stays an assumption: a loop that is never entered refutes nothing."""
    [bound] = stated(program(NEVER["a word that is never set"]), 9)
    assert "if it is entered, it may be executed 4" in bound.explained


@pytest.mark.parametrize("name", ENTERED)
def test_an_execution_that_enters_the_loop_refutes(name: str) -> None:
    code = program(ENTERED[name])
    with pytest.raises(FactsError, match=r"prog\.c:5 is executed 4[01] times.*an execution of"):
        stated(code, 9)


@pytest.mark.parametrize("name", ENTERED)
def test_the_replay_agrees_with_the_twin(name: str) -> None:
    """It executes each loop as often as the interpreter does, from the same registers."""
    code = program(ENTERED[name])
    replay = GraphReplay(code.graph, code.image, code.values)
    for argument in (0, 5, 123456):
        counts = code.counts((argument,))
        for loop in code.graph.loops:
            header = code.graph.nodes[loop.header].block.addr
            shown = replay.shows(loop.index, 1, {0: argument})
            assert (shown.executions if shown else 0) == counts[header]


def test_callers_may_never_enter_it() -> None:
    """Nobody chooses registers for a function that others call, and a fact may say less."""
    code = program(ENTERED["for any words in registers but one"])
    bounds = code.bounds(parse("loop prog.c:5 at most 9", "x"), called=True)
    assert [b.bound for b in bounds] == [9]
    with pytest.raises(FactsError, match=r"prog\.c:5 is executed 4[01] times"):
        program(ENTERED["always"]).bounds(parse("loop prog.c:5 at most 9", "x"), called=True)


def test_a_claim_of_the_model_alone_is_not_enough() -> None:
    """The same loop, its executions taken away: nothing is refuted."""

    class Nothing:
        def shows(
            self, loop: int, least: int, registers: Mapping[int, int], /
        ) -> LoopExecution | None:
            return None

    code = program(ENTERED["always"])
    facts = locate(parse("loop prog.c:5 at most 9", "x"), code.image)
    [bound] = bound_loops(code.graph, code.image, code.values, facts, replay=Nothing())
    assert (bound.bound, bound.method) == (9, "fact")


RECURSION = """volatile unsigned sink; volatile unsigned mode;
__attribute__((noinline)) unsigned f(unsigned n) { sink = n; return n ? f(n - 1) + sink : 1; }
int main(void) { CONDITION return f(12); return 0; }
"""


@pytest.mark.parametrize("entered", [True, False])
def test_a_recursion_that_is_never_entered_refutes_nothing(entered: bool) -> None:
    condition = "" if entered else "if (mode == 7)"
    image = Image.load(build(RECURSION.replace("CONDITION", condition), *FLAGS, optimise="-O1"))
    entry = address(image, "main")
    facts = locate(parse("recursion of f at most 5", "x"), image)
    read = extract(image, [entry], facts)
    if entered:
        with pytest.raises(FactsError, match="f has 13 activations at a time in the"):
            find_depths(read, entry, image, facts)
    else:
        found = find_depths(read, entry, image, facts)
        assert [depth.activations for depth in found.depths.values()] == [5]
