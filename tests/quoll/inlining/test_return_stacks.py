"""The return stack at each node of a graph, and the returns that it predicts right."""

from __future__ import annotations

from random import Random

from cache.events import FlowOrder
from quoll.arm.return_stack import UNKNOWN_RETURNS
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.return_stacks import return_stacks, returns_as_predicted
from quoll.inlining.supergraph import SuperEdge, Supergraph
from tests.testing.cache.graphs import at, pool, program_of

ADD, CALL, BACK, LAST = pool("add r0, r1, r2\nbl .\nbx lr\nb .\n")


def chain(depth: int) -> Supergraph:
    """``depth`` nested calls and their returns; every function calls once."""
    blocks, edges = [], []
    for level in range(depth):
        blocks.append(Block(0, (at(ADD, 1000 * level), at(CALL, 1000 * level + 4))))
        edges.append(SuperEdge(level, level + 1, EdgeKind.CALL))
    blocks.append(Block(0, (at(BACK, 1000 * depth),)))
    for level in reversed(range(depth)):
        end = BACK if level else LAST
        blocks.append(Block(0, (at(ADD, 1000 * level + 8), at(end, 1000 * level + 12))))
        edges.append(SuperEdge(len(blocks) - 2, len(blocks) - 1, EdgeKind.RETURN))
    return program_of(Random(0), blocks, edges).graph


def right(graph: Supergraph) -> list[bool]:
    flow = FlowOrder.of(graph)
    stacks = return_stacks(graph, flow.graph, flow.order)
    assert stacks[0] == UNKNOWN_RETURNS
    return [
        returns_as_predicted(graph, node, stack or UNKNOWN_RETURNS)
        for node, stack in enumerate(stacks)
    ]


def test_the_three_innermost_returns_are_predicted_right() -> None:
    assert right(chain(2)) == [False, False, True, True, False]
    assert right(chain(5)) == [*[False] * 5, True, True, True, False, False, False]


def test_a_return_elsewhere_is_not() -> None:
    graph = chain(1)
    assert right(graph)[1]
    aside = at(ADD, 5000), at(LAST, 5004)
    blocks = [node.block for node in graph.nodes]
    blocks[2] = Block(0, aside)
    assert not any(right(program_of(Random(0), blocks, list(graph.edges)).graph))
