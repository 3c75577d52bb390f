"""Which lines stay in a loop, and which loops a line may stay in (rule 9)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cache.persistence import LoopScopes, persistent_lines
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.vivu import FULL, VivuSettings
from tests.testing.quoll.sketch import assemble, extracted

NESTED = """
main: push {r4, lr}
outer: mov r1, r0
inner: bl leaf
    subs r1, r1, #1
    bne inner
    subs r0, r0, #1
    bne outer
    pop {r4, pc}
.type leaf, %function
leaf: bx lr
"""
ENTERED_IN_THE_MIDDLE = """
main: cmp r0, #0
    beq middle
top: subs r0, r0, #1
middle: adds r1, r1, #1
    bne top
    bx lr
"""
LINES = st.frozensets(st.integers(0, 15), max_size=4)


def expanded(text: str, vivu: VivuSettings = FULL) -> Supergraph:
    image = assemble(text)
    program = extracted(image)
    return expand(program, program.entries[0], image, vivu)


@given(st.lists(LINES), st.sampled_from([1, 2, 4]), st.integers(1, 3))
def test_lines_stay_whose_set_has_room_for_all(
    touched: list[frozenset[int]], sets: int, ways: int
) -> None:
    found = persistent_lines(touched, sets, ways)
    lines = frozenset().union(*touched)
    competing = Counter(line % sets for line in lines)
    assert found == {line for line in lines if competing[line % sets] <= ways}
    assert persistent_lines([*touched, None], sets, ways) == frozenset()


def test_a_node_is_in_the_loops_around_it_and_around_its_calls() -> None:
    graph = expanded(NESTED)
    scopes = LoopScopes.of(graph)
    assert scopes.loops == graph.loops
    assert scopes.eligible == {0, 1}
    outer, inner = sorted((0, 1), key=lambda i: -len(scopes.executed[i]))
    leaf = next(n for n, node in enumerate(graph.nodes) if node.context)
    assert scopes.around[leaf] == (outer, inner)
    assert scopes.around[graph.entry] == ()


def test_a_loop_with_first_iterations_is_a_scope_with_them_and_without() -> None:
    plain, graph = expanded(NESTED), expanded(NESTED, VivuSettings(unroll=True))
    scopes = LoopScopes.of(graph)
    whole = scopes.loops[len(graph.loops) :]
    assert whole
    addresses = {loop: {plain.nodes[n].block.addr for n in loop.nodes} for loop in plain.loops}
    for loop in whole:
        assert loop.index in scopes.eligible
        inside = {graph.nodes[n].block.addr for n in scopes.executed[loop.index]}
        same = [found for found in addresses.values() if found <= inside]
        assert same, "all blocks of a loop as it was before unrolling"
        entries = {graph.edges[e].src for e in loop.entries}
        assert entries.isdisjoint(loop.nodes)


def test_a_loop_that_is_entered_twice_is_a_scope_only_from_its_header() -> None:
    graph = expanded(ENTERED_IN_THE_MIDDLE)
    scopes = LoopScopes.of(graph)
    for loop in graph.loops:
        nodes = scopes.executed[loop.index]
        inward = {
            e for n in nodes for e in graph.predecessors[n] if graph.edges[e].src not in nodes
        }
        assert (loop.index in scopes.eligible) == (inward == set(loop.entries))
