"""Control-flow graphs of functions, and programs of them.

``Program`` is the result of extraction: every function reachable from the entries, each a ``Cfg``
of basic blocks. A call, and every other write of the pc, ends its block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from quoll.arm.coprocessor import coprocessor_operation
from quoll.arm.insn import ControlFlow, Insn, Remainder
from quoll.arm.status import leaves_mode
from quoll.arm.system_registers import SystemEffect, system_write
from quoll.assumptions import Assumption
from quoll.cfg.unresolved import UnresolvedTransfer
from quoll.facts.applied import NO_GUIDANCE, AppliedGuidance
from quoll.facts.contract import CallContract, CallFrame

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Block", "Cfg", "Edge", "EdgeKind", "JumpTable", "Program"]


class EdgeKind(Enum):
    """The kind of an edge between blocks."""

    FALLTHROUGH = "fallthrough"  # next in memory: no branch, branch not taken, call not made
    TAKEN = "taken"  # direct branch
    INDIRECT = "indirect"  # resolved jump through a table or computed address
    # From a call to its return address. A supergraph has CALL and RETURN instead, except for
    # callees that a fact replaces.
    ACROSS = "across"
    CALL = "call"  # supergraph only: call site to callee entry (tail calls too)
    RETURN = "return"  # supergraph only: callee's returning block to the return address of its call

    __hash__ = object.__hash__  # in C: there are millions of edges


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block: ``insns`` run in sequence; the last one may transfer control."""

    index: int  # position in Cfg.blocks
    insns: tuple[Insn, ...]
    calls: tuple[int, ...] = ()  # callee entries the last instruction may transfer to
    tail: bool = False  # ``calls`` are tail calls: the callee returns to our caller
    returns: bool = False  # the last instruction may return to the caller
    exits: bool = False  # a path may end after the last instruction (return to user, end point)
    passes: tuple[int, ...] = ()  # callees that a fact replaces: passed along ACROSS, or RETURN
    comes_back: tuple[int, ...] = ()  # words in lr when it calls, if not the address after it
    by_values: bool = False  # its targets follow from the values that earlier calls preserve
    no_return: bool = False  # ``calls`` are tail calls of functions that never return

    @property
    def addr(self) -> int:
        """Address of the first instruction."""
        return self.insns[0].addr

    @property
    def end(self) -> int:
        """Address after the last instruction."""
        return self.insns[-1].next

    @property
    def last(self) -> Insn:
        """The instruction that decides the successor."""
        return self.insns[-1]

    @property
    def remainders(self) -> tuple[tuple[int, Remainder], ...]:
        """The instructions that leave remainders, by address: in each context by its registers."""
        return tuple((i.addr, i.remainder) for i in self.insns if i.remainder is not None)

    @property
    def does_nothing(self) -> bool:
        """Whether it calls nothing, ends no path, and changes only registers; it may wait."""
        leaves = self.calls or self.passes or self.exits or self.returns
        return not leaves and all(map(_changes_registers_only, self.insns))

    def always_runs(self, insn: Insn) -> bool:
        """Whether ``insn`` always executes with the block: unconditional, or the last branch."""
        return not insn.conditional or (insn is self.last and insn.flow is ControlFlow.JUMP)

    @property
    def returned_to(self) -> tuple[int, ...]:
        """The addresses to which calls of the last instruction return."""
        return tuple(word & ~1 for word in self.comes_back) or (self.end,)


def _changes_registers_only(insn: Insn) -> bool:
    """Whether the only effects of ``insn`` are on registers and flags: no mask, no cache."""
    ways = (ControlFlow.NEXT, ControlFlow.JUMP, ControlFlow.WAIT)
    if insn.memory is not None or insn.flow not in ways or leaves_mode(insn):
        return False
    row = system_write(insn)
    if row is None:
        return coprocessor_operation(insn) is None
    return row.refused is None and row.effects <= {SystemEffect.REFETCHES}


class Edge(NamedTuple):
    """An edge between blocks of one function, by block index; a named tuple, like ``Insn``."""

    src: int
    dst: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class JumpTable:
    """A resolved indirect jump or call, with the table it reads, if any."""

    addr: int  # of the branch
    table: int | None  # address of the first entry, None for computed targets
    targets: tuple[int, ...]  # one per entry, in table order, duplicates included


@dataclass(frozen=True, slots=True)
class Cfg:
    """One function: ``blocks[0]`` holds the entry; the others follow in address order.

    ``whole`` is the function before facts excluded anything from it.
    """

    entry: int
    name: str
    thumb: bool
    blocks: tuple[Block, ...]
    edges: tuple[Edge, ...]
    returns: bool  # False: proved, or stated by the user, never to return
    whole: Cfg | None = None

    def successors(self, block: int) -> list[Edge]:
        """Outgoing edges of ``block``, in order of ``edges``."""
        return [e for e in self.edges if e.src == block]


@dataclass(frozen=True, slots=True)
class Program:
    """All functions reachable from ``entries``, keyed by entry address."""

    functions: Mapping[int, Cfg]
    entries: tuple[int, ...]
    jump_tables: tuple[JumpTable, ...] = ()
    unresolved: tuple[UnresolvedTransfer, ...] = ()
    assumptions: tuple[Assumption, ...] = field(default=())
    guidance: AppliedGuidance = NO_GUIDANCE
    # contract of each function with its callers
    left: Mapping[int, CallContract] = field(default_factory=dict)
    modes: Mapping[int, int] = field(default_factory=dict)  # mode in which a function is called
    # frames of a function at its calls, by its entry and the address of the call
    frames: Mapping[int, Mapping[int, CallFrame]] = field(default_factory=dict)
    # functions that are assumed to write status words of the mode in which they run
    restoring: frozenset[int] = frozenset()

    def call_graph(self) -> nx.DiGraph:
        """Functions by entry address; an edge holds the numbers of ``calls`` and ``tail_calls``.

        Networkx is imported here, because a warm start does not need it.
        """
        import networkx as nx

        graph = nx.DiGraph(name="calls")
        for entry, cfg in self.functions.items():
            graph.add_node(entry, label=cfg.name, returns=cfg.returns)
        for entry, cfg in self.functions.items():
            for block in cfg.blocks:
                for callee in block.calls:
                    if not graph.has_edge(entry, callee):
                        graph.add_edge(entry, callee, calls=0, tail_calls=0)
                    graph.edges[entry, callee]["tail_calls" if block.tail else "calls"] += 1
        return graph
