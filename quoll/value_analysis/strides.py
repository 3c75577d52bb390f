"""The stride of an address: its change between two executions of an instruction in a loop.

The register with the address is written as a sum of multiples of registers at the start of the
block. ``ValueResults.aliases`` gives the change of each of these along every way around the loop
and back to the block (rule 13; induction variables: Aho, Lam, Sethi, Ullman, "Compilers", section
9.6). All sums are modulo 2**32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Protocol, TypeAlias

from quoll.abstract_domain.terms import MASK, RIGID, Term
from quoll.arm.insn import Insn
from quoll.inlining.supergraph import Supergraph
from quoll.semantics.lift import lift
from quoll.semantics.ops import Op, OpCode, Space, Var, general

__all__ = ["FollowedWords", "address_stride", "multiples"]

WORD, WIDTH = 4, 32  # bytes and bits of a register
CONTROL = frozenset([OpCode.BRANCH, OpCode.CBRANCH, OpCode.GOTO])
Multiples: TypeAlias = Mapping[int, int]  # a sum: the factor of each register, plus a constant
Offsets: TypeAlias = Mapping[int, int]  # symbol -> an earlier word, less the word of the symbol


class FollowedWords(Protocol):
    """The results of the value analysis about registers."""

    @property
    def graph(self) -> Supergraph: ...

    def word(self, node: int, insn: int, register: int) -> Term | None: ...

    def aliases(self, edge: int) -> Mapping[int, Term]: ...


def address_stride(values: FollowedWords, node: int, insn: int, inside: Set[int]) -> int | None:
    """Change of the first source register of an instruction from one execution to the next one.

    The path between the two stays in the nodes ``inside``. None if it is not one known number.
    """
    insns = values.graph.nodes[node].block.insns
    found = multiples(insns[:insn], insns[insn].sources[0])
    if found is None:
        return None
    changes = {register: _change(values, node, register, inside) for register in found}
    if None in changes.values():
        return None
    return sum(factor * (changes[register] or 0) for register, factor in found.items()) & MASK


def multiples(insns: Sequence[Insn], register: int) -> Multiples | None:
    """A register behind ``insns`` by the registers before them; None if it is no such sum."""
    known: dict[Var, Multiples | None] = {general(r): {r: 1} for r in range(15)}
    for insn in insns:
        ops = lift(insn)
        certain = all(op.code not in CONTROL for op in ops)
        for op in ops:
            if op.out is not None:
                known[op.out] = _result(op, known) if certain else None
    return known[general(register)]


def _result(op: Op, known: Mapping[Var, Multiples | None]) -> Multiples | None:
    """The result of ``op`` as a sum."""
    if op.out is None or any(v.size != WORD for v in (op.out, *op.ins)):
        return None
    sums = [{} if v.space is Space.CONST else known.get(v) for v in op.ins]
    given = [one for one in sums if one is not None]
    if len(given) < len(sums):
        return None
    last = op.ins[-1].offset if op.ins and op.ins[-1].space is Space.CONST else None
    match op.code:
        case OpCode.COPY:
            return given[0]
        case OpCode.INT_ADD:
            return _sum(given[0], given[1], 1)
        case OpCode.INT_SUB:
            return _sum(given[0], given[1], -1)
        case OpCode.INT_LEFT if last is not None and last < WIDTH:
            return _sum({}, given[0], 1 << last)
        case OpCode.INT_MULT if last is not None:
            return _sum({}, given[0], last)
    return None


def _sum(a: Multiples, b: Multiples, factor: int) -> Multiples:
    """``a + factor * b``."""
    found = {r: a.get(r, 0) + factor * b.get(r, 0) & MASK for r in (*a, *b)}
    return {r: n for r, n in found.items() if n}


def _change(values: FollowedWords, node: int, register: int, inside: Set[int]) -> int | None:
    """The change of a register at the start of ``node`` from one execution to the next."""
    now = values.word(node, 0, register)
    if now is None:
        return None
    symbol, offset = now >> 32, now & MASK
    if symbol < RIGID:
        return 0
    earlier = _previous(values, node, {symbol: offset}, inside).get(symbol)
    return None if earlier is None else offset - earlier & MASK


def _previous(values: FollowedWords, node: int, start: Offsets, inside: Set[int]) -> Offsets:
    """Words of the last execution of ``node``, when it executes again.

    A greatest fixed point: symbols with different offsets on two ways are left out.
    """
    states: dict[int, Offsets] = {}
    pending = [(node, start)]
    while pending:
        source, state = pending.pop()
        for edge, target in _onward(values.graph, source, inside):
            came, known = _along(values.aliases(edge), state), states.get(target)
            joined = came if known is None else dict(known.items() & came.items())
            if joined != known:
                states[target] = joined
                pending += [] if target == node else [(target, joined)]
    return states.get(node, {})


def _onward(graph: Supergraph, node: int, inside: Set[int]) -> Iterator[tuple[int, int]]:
    """Edges out of a node to nodes ``inside``, with their targets."""
    targets = ((edge, graph.edges[edge].dst) for edge in graph.successors[node])
    return ((edge, target) for edge, target in targets if target in inside)


def _along(aliases: Mapping[int, Term], state: Offsets) -> Offsets:
    """The state behind an edge, along which symbols change."""
    return {
        symbol: state[term >> 32] - term & MASK
        for symbol, term in aliases.items()
        if term >> 32 in state
    }
