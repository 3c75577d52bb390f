"""Lines that miss at most once while a loop runs.

A line is persistent in a loop if the loop accesses no other line of its set, fetches past transfers
and partly known addresses included, and never makes the cache forget: nothing can then evict the
line before the loop is left. This holds for every policy that evicts only to make room in the set
of the filled line. With LRU and FIFO, as many lines of a set as it has ways are persistent; not so
with a round-robin counter shared by all sets (``cache.policy``; rule 7).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quoll.cfg.cfg import EdgeKind
from quoll.graph.closure import closure
from quoll.inlining.supergraph import PeeledIteration, Supergraph, SuperLoop

__all__ = ["LoopScopes", "persistent_lines", "scope_of"]


@dataclass(frozen=True, slots=True)
class LoopScopes:
    """The loops around each node in which a miss may be charged once, outermost first.

    A loop needs an edge that each of its runs passes exactly once. It has none, and is left out, if
    the path may start inside it but not at its header, or if control may enter it beside its
    header. ``loops`` are the loops of the graph, followed by the loops with their peeled first
    iteration: a miss in the first iteration need not repeat.
    """

    loops: tuple[SuperLoop, ...]
    around: tuple[tuple[int, ...], ...]
    eligible: frozenset[int]
    executed: tuple[frozenset[int], ...]  # per loop: all nodes that may execute in it

    @staticmethod
    def of(graph: Supergraph) -> LoopScopes:
        """The scopes of ``graph``."""
        around: list[list[int]] = [[] for _ in graph.nodes]
        eligible: set[int] = set()
        all_loops = (*graph.loops, *_with_first_iterations(graph))
        executed = tuple(loop.nodes for loop in all_loops)
        for loop, nodes in zip(all_loops, executed, strict=True):
            if graph.entry in loop.nodes and graph.entry != loop.header:
                continue
            ways_in = {
                e for n in nodes for e in graph.predecessors[n] if graph.edges[e].src not in nodes
            }
            if ways_in != set(loop.entries):
                continue
            if any(graph.passed(e) for n in nodes for e in graph.successors[n]):
                continue  # rule 2: nothing persists over code that is not examined
            eligible.add(loop.index)
            for node in nodes:
                around[node].append(loop.index)
        size = [len(nodes) for nodes in executed]
        for loops in around:
            loops.sort(key=lambda i: -size[i])
        return LoopScopes(all_loops, tuple(map(tuple, around)), frozenset(eligible), executed)


def _with_first_iterations(graph: Supergraph) -> Iterator[SuperLoop]:
    """Each loop with a peeled first iteration, joined with it, if one header leads into it."""
    index = len(graph.loops)
    apart = [loop for loop in graph.loops if graph.apart(loop)]
    if not apart:
        return
    of_context: dict[int, list[int]] = defaultdict(list)
    for n, node in enumerate(graph.nodes):
        of_context[node.context].append(n)
    called: dict[int, set[int]] = defaultdict(set)
    for edge in graph.edges:
        if edge.kind is EdgeKind.CALL:
            called[edge.src].add(graph.nodes[edge.dst].context)
    for loop in apart:
        header = graph.nodes[loop.header]
        iterations = (*header.iterations[:-1], PeeledIteration(header.block.addr, first=True))
        own = [
            n
            for n in of_context[header.context]
            if graph.nodes[n].iterations[: len(iterations)] == iterations
        ]
        first = [n for n in own if graph.nodes[n].block is header.block]
        nodes = loop.nodes | _with_calls(own, called, of_context)
        if len(first) == 1:
            inward = graph.predecessors[first[0]]
            entries = tuple(e for e in inward if graph.edges[e].src not in nodes)
            yield SuperLoop(index, first[0], entries, (), nodes, None)
            index += 1


def _with_calls(
    nodes: Iterable[int], called: Mapping[int, set[int]], of_context: Mapping[int, Sequence[int]]
) -> frozenset[int]:
    """``nodes``, and the nodes of all contexts that they call, directly or not."""
    below = closure(nodes, lambda node: (n for c in called.get(node, ()) for n in of_context[c]))
    return frozenset(below)


def persistent_lines(
    touched: Iterable[frozenset[int] | None], sets: int, ways: int = 1
) -> frozenset[int]:
    """Lines whose set has at most ``ways`` of all ``touched`` lines; None: all are touched."""
    of_set: dict[int, set[int]] = {}
    for lines in dict.fromkeys(touched):
        if lines is None:
            return frozenset()
        for line in lines:
            of_set.setdefault(line % sets, set()).add(line)
    return frozenset(line for lines in of_set.values() if len(lines) <= ways for line in lines)


def scope_of(line: int, loops: Sequence[int], persistent: Sequence[frozenset[int]]) -> int | None:
    """The outermost of ``loops`` in which ``line`` is persistent."""
    return next((loop for loop in loops if line in persistent[loop]), None)
