"""The fewest instructions of any call of a function, over the paths of its graph.

Only instructions count that no core executes in no time: branches, and the IT of Thumb code, may be
folded into their neighbours. A path through a call has the fewest instructions of a callee that
returns. A call ends with the function's return, or where the path ends in it or in a callee.

The numbers of all functions grow from 0 in rounds, so that each is a lower limit at any time, also
in recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from quoll.arm.insn import Insn
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind, Program

__all__ = ["issued", "least_instructions"]

NEVER = 1 << 62  # instructions up to an end that no path reaches

Least = tuple[int, int]  # instructions up to a return, and up to an end of the path
NOTHING: Least = (0, 0)


def issued(insns: Iterable[Insn]) -> int:
    """How many of ``insns`` every core issues: no branches, and no IT."""
    return sum(not insn.may_be_folded for insn in insns)


def least_instructions(program: Program, function: int) -> int:
    """The fewest issued instructions of a call of ``function``; 0 if no call of it comes to an end.

    0 also if where some transfer of control goes is not known.
    """
    if program.unresolved:
        return 0
    edges = {entry: _edges(cfg) for entry, cfg in program.functions.items()}
    least = dict.fromkeys(program.functions, NOTHING)
    for _ in program.functions:
        found = {f: _least(cfg, edges[f], least) for f, cfg in program.functions.items()}
        if found == least:
            break
        least = found
    fewest = min(least[function])
    return 0 if fewest == NEVER else fewest


def _edges(cfg: Cfg) -> list[list[Edge]]:
    """The edges out of each block."""
    found: list[list[Edge]] = [[] for _ in cfg.blocks]
    for edge in cfg.edges:
        found[edge.src].append(edge)
    return found


def _least(cfg: Cfg, edges: Sequence[Sequence[Edge]], least: Mapping[int, Least]) -> Least:
    """The numbers of one function from the numbers of its callees: shortest paths (Dijkstra)."""
    done: set[int] = set()
    returning = ending = NEVER
    queue = [(0, 0)]
    while queue:
        before, index = heappop(queue)
        if index in done:
            continue
        done.add(index)
        block = cfg.blocks[index]
        after = before + issued(block.insns)
        through, into = _called(block, least)
        if block.returns:
            returning = min(returning, after)
        if block.tail:
            returning = min(returning, after + through)
        if block.exits:
            ending = min(ending, after)
        ending = min(ending, after + into)
        for edge in edges[index]:
            call = through if edge.kind is EdgeKind.ACROSS else 0
            if call != NEVER:
                heappush(queue, (after + call, edge.dst))
    return min(returning, NEVER), min(ending, NEVER)


def _called(block: Block, least: Mapping[int, Least]) -> Least:
    """The numbers of the calls at the end of a block, of which one is made, or none."""
    callees = list(_callees(block, least))
    through = min((returning for returning, _ in callees), default=0)
    return 0 if block.last.conditional else through, min((e for _, e in callees), default=NEVER)


def _callees(block: Block, least: Mapping[int, Least]) -> Iterator[Least]:
    """The numbers of each callee; nothing is known of those that a fact replaces."""
    for callee in block.calls:
        yield least.get(callee, NOTHING)
    if block.passes:
        yield NOTHING
