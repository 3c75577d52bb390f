"""Virtual unrolling: the same walks as without, and first iterations where they are said to be."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from quoll.cfg.cfg import EdgeKind, Program
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.inlining.context_count import ContextCounter
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import PeeledIteration, Supergraph
from quoll.inlining.vivu import FULL, VivuSettings
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build
from tests.testing.quoll.invariants import verify_supergraph
from tests.testing.quoll.random_programs import programs
from tests.testing.quoll.sketch import assemble, extracted

UNROLLED = VivuSettings(unroll=True)
NESTED = """
volatile int device;
__attribute__((noinline)) int twice(int x) { return x + device + x; }
int main(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            sum += twice(j);
        if (sum > 100)
            sum = twice(sum);
    }
    return sum;
}
"""


def both(text: str) -> tuple[Program, Supergraph, Supergraph]:
    """Without and with unrolling; a program without paths to an exit is of no use."""
    image = assemble(text)
    program = extracted(image)
    try:
        plain = expand(program, program.entries[0], image)
    except ControlFlowError:
        assume(False)
    return program, plain, expand(program, program.entries[0], image, UNROLLED)


def steps(graph: Supergraph, node: int) -> dict[tuple[EdgeKind, int, int], int]:
    """The successors of a node, by kind of edge, function and address."""
    found: dict[tuple[EdgeKind, int, int], int] = {}
    for e in graph.successors[node]:
        edge = graph.edges[e]
        after = graph.nodes[edge.dst]
        key = edge.kind, graph.contexts[after.context].function, after.block.addr
        assert found.setdefault(key, edge.dst) == edge.dst
    return found


def covered(plain: Supergraph, unrolled: Supergraph) -> dict[int, int]:
    """Each unrolled node with the plain one that has the same walks before and after it."""
    of = {unrolled.entry: plain.entry}
    pending = [unrolled.entry]
    while pending:
        node = pending.pop()
        copy, original = unrolled.nodes[node], plain.nodes[of[node]]
        assert copy.block is original.block
        assert (node in unrolled.exits) == (of[node] in plain.exits)
        ours, theirs = steps(unrolled, node), steps(plain, of[node])
        assert ours.keys() == theirs.keys()
        for key, after in ours.items():
            if after not in of:
                of[after] = theirs[key]
                pending.append(after)
            assert of[after] == theirs[key]
    return of


@pytest.mark.slow("many random programs")
@settings(max_examples=cases(12), deadline=None)
@given(programs())
def test_walks_are_those_of_the_plain_graph(text: str) -> None:
    program, plain, unrolled = both(text)
    verify_supergraph(unrolled, program)
    of = covered(plain, unrolled)
    assert len(of) == len(unrolled.nodes)
    assert set(of.values()) == set(range(len(plain.nodes)))


def turns_follow(
    before: tuple[PeeledIteration, ...], after: tuple[PeeledIteration, ...], header: int
) -> bool:
    """Whether one step within a function may lead from iterations ``before`` to ``after``."""
    for position, turn in enumerate(after):
        was = before[position] if position < len(before) else None
        if was is None or was.header != turn.header:
            return all(t.first for t in after[position:]) and header == turn.header
        if was != turn or (header == turn.header and position == len(after) - 1):
            return not turn.first and header == turn.header and position == len(after) - 1
    return True


@pytest.mark.slow("many random programs")
@settings(max_examples=cases(12), deadline=None)
@given(programs())
def test_a_header_leads_from_the_first_turn_to_the_others(text: str) -> None:
    """Over each step of a function, calls of others being one step."""
    _, _, graph = both(text)
    callers: dict[int, list[int]] = {}
    for edge in graph.edges:
        if edge.kind is EdgeKind.CALL and not graph.nodes[edge.src].block.tail:
            callers.setdefault(graph.nodes[edge.dst].context, []).append(edge.src)
    for edge in graph.edges:
        src, dst = graph.nodes[edge.src], graph.nodes[edge.dst]
        if edge.kind is EdgeKind.CALL:
            assert dst.iterations in ((), (PeeledIteration(dst.block.addr, True),))
        elif edge.kind is not EdgeKind.RETURN:
            assert turns_follow(src.iterations, dst.iterations, dst.block.addr)
    for loop in graph.loops:
        assert graph.apart(loop) == 1


@pytest.mark.slow("many random programs")
@settings(max_examples=cases(12), deadline=None)
@given(programs())
def test_returns_lead_to_the_turn_of_the_call(text: str) -> None:
    _, _, graph = both(text)
    for edge in graph.edges:
        if edge.kind is not EdgeKind.RETURN:
            continue
        call = caller(graph, edge.src)
        assert turns_follow(graph.nodes[call].iterations, graph.nodes[edge.dst].iterations,
                            graph.nodes[edge.dst].block.addr)  # fmt: skip


def caller(graph: Supergraph, node: int) -> int:
    """The node of the call that a return from ``node`` ends, past tail calls."""
    context = graph.nodes[node].context
    while True:
        (call,) = {
            edge.src
            for edge in graph.edges
            if edge.kind is EdgeKind.CALL and graph.nodes[edge.dst].context == context
        }
        if not graph.nodes[call].block.tail:
            return call
        context = graph.nodes[call].context


@pytest.mark.slow("many random programs")
@settings(max_examples=cases(8), deadline=None)
@given(programs())
def test_sizes_are_counted_as_they_are_made(text: str) -> None:
    program, plain, graph = both(text)
    count = ContextCounter(program, assemble(text), UNROLLED).of(program.entries[0])
    assert count
    assert len(graph.contexts) == count.contexts
    assert len(plain.nodes) <= len(graph.nodes) <= count.blocks


def test_each_turn_of_nested_loops_calls_in_contexts_of_its_own() -> None:
    image = Image.load(build(NESTED, optimise="-O1"))
    program = extracted(image)
    entry = address(image, "main")
    plain, graph = expand(program, entry, image, FULL), expand(program, entry, image, UNROLLED)
    assert (len(plain.contexts), len(graph.contexts)) == (3, 1 + 4 + 2)
    assert (len(plain.loops), len(graph.loops)) == (2, 3)
    inner = {
        tuple(t.first for t in graph.nodes[e.src].iterations)
        for e in graph.edges
        if e.kind is EdgeKind.CALL and len(graph.nodes[e.src].iterations) == 2
    }
    assert inner == {(True, True), (True, False), (False, True), (False, False)}


def test_too_many_copies_are_an_error_with_its_place() -> None:
    depth = 10
    text = "main:\n" + "".join(f"{n}: add r{n}, r{n}, #1\n" for n in range(depth))
    text += "".join(f" subs r12, r12, #1\n bne {n}b\n" for n in reversed(range(depth)))
    image = assemble(text + " bx lr\n")
    program = extracted(image)
    with pytest.raises(ControlFlowError, match=r"nested loops of main need more than [\d,]+") as e:
        expand(program, program.entries[0], image, UNROLLED)
    assert "leave out --unroll" in str(e.value)
