"""The registers and words that may decide a branch, or reach memory, later on: live, not faint.

A register is live if an instruction uses it, in an op that acts on control or memory or whose
result is live itself (Giegerich, Möncke, Wilhelm: Invariance of approximate semantics, 1981). A sum
that is only returned is not. So is a word of memory at a known address, as in frames at ``-O0``; a
register that is stored there is as live as the word. Nothing depends on the result being exact:
another register is taken to hold any word, and words of memory only tell states apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from loopbounds.execution.accessed_words import WORD_SIZE, WordAccess, accessed_words
from loopbounds.execution.memory import RecordedWord
from loopbounds.slicing.code import KnownValues
from quoll.arm.insn import LR
from quoll.cfg.cfg import Block
from quoll.inlining.supergraph import Supergraph
from quoll.semantics.lift import lift
from quoll.semantics.ops import Op, OpCode, Space, Var

__all__ = ["deciding_in_block", "deciding_registers", "deciding_words"]

BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)
Words = frozenset[Var]
Word = TypeVar("Word")  # a register, or one of either kind
Live = frozenset[Var | RecordedWord]


def deciding_registers(graph: Supergraph) -> list[frozenset[int]]:
    """For each node, the numbers of these registers when it begins (``quoll.semantics.ops``).

    Raises ControlFlowError for an instruction without semantics.
    """
    blocks = {id(node.block): _ops(node.block) for node in graph.nodes}
    known: dict[tuple[int, Words], Words] = {}

    def live_before(node: int, after: Words) -> Words:
        block = id(graph.nodes[node].block)
        if (block, after) not in known:
            known[block, after] = _before(blocks[block], after)
        return known[block, after]

    found = _live(graph, live_before)
    return [frozenset(var.offset for var in words) for words in found]


def deciding_in_block(block: Block, after: frozenset[int]) -> list[frozenset[int]]:
    """The registers that decide before each instruction of a block, and ``after`` them all.

    Raises ControlFlowError for an instruction without semantics.
    """
    live = frozenset(Var(Space.REG, r, WORD_SIZE if r <= LR else 1) for r in after)
    found = [live]
    for ops in reversed(_ops(block)):
        found.append(_before([ops], found[-1]))
    return [frozenset(var.offset for var in words) for words in reversed(found)]


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


def deciding_words(graph: Supergraph, values: KnownValues) -> list[tuple[RecordedWord, ...]]:
    """For each node, the words of memory of known address that may decide when it begins.

    A word of a stack of unknown place is known by its distance from sp at the entry. Raises
    ControlFlowError for an instruction without semantics.
    """
    effects = [accessed_words(graph, values, node) for node in range(len(graph.nodes))]
    found = _live(graph, lambda node, after: _live_before(effects[node], after))
    return [tuple(sorted(w for w in live if isinstance(w, RecordedWord))) for live in found]


def _live(
    graph: Supergraph, live_before: Callable[[int, frozenset[Word]], frozenset[Word]]
) -> list[frozenset[Word]]:
    """The live words before each node; ``live_before`` computes them from those after it."""
    before: list[frozenset[Word]] = [frozenset()] * len(graph.nodes)
    pending = list(range(len(graph.nodes)))
    waiting = set(pending)
    while pending:
        node = pending.pop()
        waiting.discard(node)
        following = (before[graph.edges[e].dst] for e in graph.successors[node])
        live = live_before(node, frozenset[Word]().union(*following))
        if live != before[node]:
            before[node] = live
            sources = {graph.edges[e].src for e in graph.predecessors[node]} - waiting
            pending += sources
            waiting |= sources
    return before


def _live_before(insns: Sequence[Sequence[WordAccess]], after: Live) -> Live:
    """The live registers and words of memory before instructions, from those after them."""
    live = set(after)
    for effect in reversed(insns):
        kills = all(op.code not in BRANCHES for op, _ in effect)
        for op, cell in reversed(effect):
            if op.code is OpCode.STORE and cell is not None:
                used = op.ins if cell in live else op.ins[:1]
                if kills and op.ins[1].size == WORD_SIZE:
                    live.discard(cell)
            elif op.out is None or op.out in live:
                used = op.ins
                if op.out is not None and kills:
                    live.discard(op.out)
                if cell is not None:
                    live.add(cell)
            else:
                continue
            live.update(var for var in used if var.space is not Space.CONST)
        live = {v for v in live if isinstance(v, RecordedWord) or v.space is Space.REG}
    return frozenset(live)
