"""The registers that may decide a branch, or reach memory, later on: live ones that are not faint.

A register is live if an instruction uses it, in an op that acts on control or memory or whose
result is live itself (Giegerich, Möncke, Wilhelm: Invariance of approximate semantics, 1981). A sum
that is only returned is not. Nothing depends on the result being exact: another register is taken
to hold any word.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoll.cfg.cfg import Block
from quoll.inlining.supergraph import Supergraph
from quoll.semantics.lift import lift
from quoll.semantics.ops import Op, OpCode, Space, Var

__all__ = ["deciding_registers"]

BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)
Words = frozenset[Var]


def deciding_registers(graph: Supergraph) -> list[frozenset[int]]:
    """For each node, the numbers of these registers when it begins (``quoll.semantics.ops``).

    Raises ControlFlowError for an instruction without semantics.
    """
    blocks = {id(node.block): _ops(node.block) for node in graph.nodes}
    before: list[Words] = [frozenset()] * len(graph.nodes)
    known: dict[tuple[int, Words], Words] = {}
    pending = list(range(len(graph.nodes)))
    waiting = set(pending)
    while pending:
        node = pending.pop()
        waiting.discard(node)
        following = (before[graph.edges[e].dst] for e in graph.successors[node])
        after = frozenset[Var]().union(*following)
        block = id(graph.nodes[node].block)
        if (block, after) not in known:
            known[block, after] = _before(blocks[block], after)
        if known[block, after] != before[node]:
            before[node] = known[block, after]
            sources = {graph.edges[e].src for e in graph.predecessors[node]} - waiting
            pending += sources
            waiting |= sources
    return [frozenset(var.offset for var in words) for words in before]


def _ops(block: Block) -> list[tuple[Op, ...]]:
    return [lift(insn) for insn in block.insns]


def _before(insns: Sequence[Sequence[Op]], after: Words) -> Words:
    """The live registers before instructions, from the live ones after them."""
    live = set(after)
    for ops in reversed(insns):
        kills = all(op.code not in BRANCHES for op in ops)
        for op in reversed(ops):
            if op.out is None or op.out in live:
                if op.out is not None and kills:
                    live.discard(op.out)
                live.update(var for var in op.ins if var.space is not Space.CONST)
        live = {var for var in live if var.space is Space.REG}
    return frozenset(live)
