"""Control-flow graphs of functions, and programs of them.

``Program`` is the result of extraction: every function reachable from the entries, each a
``Cfg`` of basic blocks. A call ends its block; so does anything else that writes the pc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from quoll.arm.insn import Insn
from quoll.assumptions import Assumption
from quoll.cfg.unresolved import UnresolvedTransfer
from quoll.facts.applied import NO_GUIDANCE, AppliedGuidance
from quoll.facts.contract import CallContract

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Block", "Cfg", "Edge", "EdgeKind", "JumpTable", "Program"]


class EdgeKind(Enum):
    """The kind of an edge between blocks."""

    FALLTHROUGH = "fallthrough"  # next in memory: no branch, branch not taken, call not made
    TAKEN = "taken"  # direct branch
    INDIRECT = "indirect"  # resolved jump through a table or computed address
    ACROSS = "across"  # from a call to where it returns; a supergraph has CALL and RETURN instead,
    # except for callees that a fact replaces
    CALL = "call"  # supergraph only: call site to callee entry (tail calls too)
    RETURN = "return"  # supergraph only: callee's returning block to where its call returns

    __hash__ = object.__hash__  # in C: there are millions of edges


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block: ``insns`` run one after another, the last one may transfer control."""

    index: int  # position in Cfg.blocks
    insns: tuple[Insn, ...]
    calls: tuple[int, ...] = ()  # callee entries the last instruction may transfer to
    tail: bool = False  # ``calls`` are tail calls: the callee returns to our caller
    returns: bool = False  # the last instruction may return to the caller
    exits: bool = False  # a path may end after the last instruction (return to user, end point)
    passes: tuple[int, ...] = ()  # callees that a fact replaces: passed along ACROSS, or RETURN
    comes_back: tuple[int, ...] = ()  # words in lr when it calls, if not the address after it
    by_values: bool = False  # its targets were found by what calls before it leave alone

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
        """The instruction that decides where control goes."""
        return self.insns[-1]

    @property
    def returned_to(self) -> tuple[int, ...]:
        """Where calls of the last instruction come back."""
        return tuple(word & ~1 for word in self.comes_back) or (self.end,)


class Edge(NamedTuple):
    """An edge between blocks of one function, by block index. A named tuple, as is ``Insn``."""

    src: int
    dst: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class JumpTable:
    """A resolved indirect jump or call: the places its target was read from, if any."""

    addr: int  # of the branch
    table: int | None  # address of the first entry, None for computed targets
    targets: tuple[int, ...]  # one per entry, in table order; duplicates kept


@dataclass(frozen=True, slots=True)
class Cfg:
    """One function: ``blocks[0]`` holds the entry. Blocks are sorted by address after it.

    ``whole`` is what it was before facts left something out.
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
    left: Mapping[int, CallContract] = field(default_factory=dict)  # to callers, by function
    modes: Mapping[int, int] = field(default_factory=dict)  # in which functions are called

    def call_graph(self) -> nx.DiGraph:
        """Functions by entry address; an edge holds the numbers of ``calls`` and ``tail_calls``.

        Networkx is loaded here, as a warm start does not need it.
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
