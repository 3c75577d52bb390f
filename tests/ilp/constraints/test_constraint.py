"""Places of constraints in a graph: counted, refused and unused ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilp.constraints.constraint import (
    Constraint,
    is_implied,
    resolve_constraints,
    unused_constraints,
)
from loopbounds.proof.bound import LoopBound
from quoll.arm.insn import Condition, ControlFlow
from quoll.assumptions import Assumption
from quoll.cfg.cfg import EdgeKind
from quoll.errors import FactsError
from quoll.extraction.extract import extract
from quoll.facts.applied import RemovedEdge
from quoll.facts.count_facts import AtMostFact
from quoll.facts.fact import FactSource
from quoll.facts.guidance import RequireFact
from quoll.facts.linear import LinearFact
from quoll.facts.located import NO_FACTS, locate
from quoll.facts.read import Facts, parse
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from tests.testing.ilp.drawn import draw
from tests.testing.ilp.programs import insn, located_among
from tests.testing.quoll.building import build

CALL, RETURN = EdgeKind.CALL, EdgeKind.RETURN
SOMEWHERE = FactSource("my.facts", 1, "")

# f (0x2000: nodes 1, 2; 0x2020 in node 2 and 5) is called from 0x1000 and from g (0x3000)
GRAPH = draw(
    [(0, 1, CALL), (1, 2), (2, 3, RETURN), (3, 4, CALL), (4, 5, CALL), (5, 6), (6, 7, RETURN),
     (7, 8, RETURN)],
    exits=[8],
    contexts=[0, 1, 1, 0, 2, 3, 3, 2, 0],
    functions=[(None, 0x1000), (0, 0x2000), (0, 0x3000), (2, 0x2000)],
)  # fmt: skip
LINES = {"x.c:1": (0x2000,), "x.c:2": (0x2020, 0x2060), "x.c:3": (0x9000,)}


def resolved(text: str, graph: Supergraph = GRAPH, lines: dict[str, tuple[int, ...]] = LINES):  # type: ignore[no-untyped-def]
    return resolve_constraints(graph, located_among(parse(text, "k"), lines))


def test_a_place_is_all_copies_of_its_block() -> None:
    (constraint,) = resolved("0x2000 executes at most 3 times")
    assert (constraint.a, constraint.b) == (frozenset({1, 5}), frozenset())
    assert (constraint.function, constraint.caller) == (None, None)
    assert str(constraint) == "k:1: 0x2000 executes at most 3 times"


def test_a_line_is_all_its_blocks_summed() -> None:
    (constraint,) = resolved("x.c:2 never executes")
    assert constraint.a == {2, 6}


def test_a_function_and_a_caller_select_contexts() -> None:
    (both,) = resolved("x.c:1 conflicts with x.c:2 in 0x2000")
    assert (both.a, both.b, both.function) == ({1, 5}, {2, 6}, 0x2000)
    (one,) = resolved("x.c:1 conflicts with x.c:2 in 0x2000 when called from 0x3000")
    assert (one.a, one.b, one.caller) == ({5}, {6}, 0x3000)
    (outer,) = resolved("x.c:1 never executes in 0x3000")
    assert outer.a == {5}
    assert resolved("x.c:1 never executes in 0x2000 when called from 0x2000") == ()


def test_the_innermost_activation_owns_a_place() -> None:
    """In recursion, the caller of the innermost activation decides."""
    recursive = replace(
        GRAPH, contexts=(*GRAPH.contexts[:2], replace(GRAPH.contexts[2], function=0x2000),
                         GRAPH.contexts[3])
    )  # fmt: skip
    (constraint,) = resolved("x.c:1 never executes in 0x2000 when called from 0x1000", recursive)
    assert constraint.a == {1}
    (constraint,) = resolved("x.c:1 never executes in 0x2000 when called from 0x2000", recursive)
    assert constraint.a == {5}


def test_constraints_without_effect_are_left_out_and_found_unused() -> None:
    text = """\
0x2000 executes at most 3 times
x.c:3 never executes
x.c:1 conflicts with x.c:3 in 0x2000
0x2000 is consistent with x.c:3 in 0x2000
x.c:1 never executes in 0x9000
loop 0x9000 at most 3
"""
    facts = parse(text, "k")
    used = resolve_constraints(GRAPH, located_among(facts, LINES))
    assert [c.fact.source.line for c in used] == [1, 4]
    assert [f.source.line for f in unused_constraints(facts, [used, ()], ())] == [2, 3, 5]
    assert [f.source.line for f in unused_constraints(facts, [], ())] == [1, 2, 3, 4, 5]
    assert unused_constraints(Facts(), [], ()) == ()


def test_a_block_cannot_be_related_to_itself() -> None:
    with pytest.raises(FactsError, match=r"^k:1: .*the block at 0x2000 to itself"):
        resolved("x.c:1 conflicts with 0x2000 in 0x2000")


def with_insns(*insns) -> Supergraph:  # type: ignore[no-untyped-def]
    """The graph with other instructions in the first block of f."""
    nodes = list(GRAPH.nodes)
    for n in (1, 5):
        nodes[n] = replace(nodes[n], block=replace(nodes[n].block, insns=insns))
    return replace(GRAPH, nodes=tuple(nodes))


def test_a_conditional_instruction_is_refused_unless_it_is_the_branch() -> None:
    moveq = insn(0x2004, cond=Condition.EQ)
    graph = with_insns(insn(0x2000), moveq, insn(0x2008, ControlFlow.JUMP, Condition.NE))
    for place in ("0x2000", "0x2008"):
        assert resolved(f"{place} never executes", graph)[0].a == {1, 5}
    with pytest.raises(FactsError, match=r"0x2004, a conditional instruction \(op\)"):
        resolved("0x2004 never executes", graph)
    with pytest.raises(FactsError, match="a branch leads to"):
        resolved("y.c:1 never executes", graph, {"y.c:1": (0x2000, 0x2004)})
    calls = with_insns(insn(0x2000, ControlFlow.CALL, Condition.EQ))
    with pytest.raises(FactsError, match="a conditional instruction"):
        resolved("0x2000 never executes", calls)


def test_a_line_mixed_with_others_in_several_blocks_is_refused() -> None:
    graph = with_insns(insn(0x2000), insn(0x2004))
    lines = {"y.c:1": (0x2000, 0x2020), "y.c:2": (0x2000,), "y.c:3": (0x2000, 0x2004, 0x2020)}
    with pytest.raises(FactsError, match=r"several blocks.*choose one of.*0x2000, 0x2020"):
        resolved("y.c:1 never executes", graph, lines)
    assert resolved("y.c:2 never executes", graph, lines)[0].a == {1, 5}
    assert resolved("y.c:3 never executes", graph, lines)[0].a == {1, 2, 5}


PROGRAM = """\
volatile int io;
static void __attribute__((noinline)) first(void) {
    io = 1;
}
static void __attribute__((noinline)) second(void) {
    io = 2;
}
void main(int x) {
    if (x & 1)
        first();
    if (x & 2)
        second();
}
"""


def test_places_of_a_real_binary() -> None:
    image = Image.load(build(PROGRAM))
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr], NO_FACTS, frozenset())
    graph = expand(program, main.addr, image)
    text = "first conflicts with prog.c:6 in main"
    (constraint,) = resolve_constraints(graph, locate(parse(text, "k"), image))
    functions = [
        {graph.contexts[graph.nodes[n].context].function for n in nodes}
        for nodes in (constraint.a, constraint.b)
    ]
    assert functions == [{image.symbol("first").addr}, {image.symbol("second").addr}]  # type: ignore[union-attr]
    with pytest.raises(FactsError, match=r"^k:1: .*secnd"):
        locate(parse("secnd never executes", "k"), image)


@pytest.mark.parametrize(
    ("fact", "function", "holds"),
    [
        (AtMostFact(SOMEWHERE, "a", 1, None), None, True),
        (RequireFact(SOMEWHERE, "a"), None, False),
        (LinearFact(SOMEWHERE, ((1, "a"), (2, "b")), "<=", 3), None, True),
        (LinearFact(SOMEWHERE, ((1, "a"), (-2, "b")), "<=", 3), None, False),
        (LinearFact(SOMEWHERE, ((1, "a"),), ">=", 1), None, False),
        (LinearFact(SOMEWHERE, ((-1, "a"),), ">=", -1), None, True),
        (LinearFact(SOMEWHERE, ((1, "a"),), "=", 1), None, False),
        (LinearFact(SOMEWHERE, ((1, "a"),), ">=", 1, "f"), 0x1000, True),
    ],
)
def test_what_holds_of_a_path_may_not_hold_of_its_parts(
    fact: AtMostFact | RequireFact | LinearFact, function: int | None, holds: bool
) -> None:
    """Paths that start or end at a preemption point, and single invocations, are parts."""
    constraint = Constraint(fact, frozenset({1}), frozenset(), function, None)
    assert constraint.holds_in_subpaths is holds


@pytest.mark.parametrize(
    ("most", "method", "implied"),
    [(4, "nusmv", True), (3, "nusmv", False), (4, "fact", False), (99, "fact", False)],
)
def test_a_count_is_implied_by_proved_loop_bounds_only(
    most: int, method: str, implied: bool
) -> None:
    loop = draw([(0, 1), (1, 2), (2, 1), (1, 3)], exits=[3])
    (constraint,) = resolved(f"0x1020 executes at most {most} times", loop)
    bound = LoopBound(0, 5, None, method, None, None, 0.0)
    assert is_implied(constraint, loop, [bound]) == implied
    removed = replace(loop.guidance, removed=(RemovedEdge(None, None, Assumption("ignore x")),))
    assert not is_implied(constraint, replace(loop, guidance=removed), [bound])


def test_copies_of_a_place_are_summed_before_it_is_called_implied() -> None:
    for most in (1, 2):
        (constraint,) = resolved(f"x.c:1 executes at most {most} times")
        assert is_implied(constraint, GRAPH, ()) == (most == 2)
