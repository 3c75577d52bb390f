"""The state of a function under construction."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import NamedTuple

from quoll.arm.insn import ControlFlow, Insn
from quoll.cfg.cfg import EdgeKind
from quoll.cfg.unresolved import UnresolvedTransfer

__all__ = ["CalleeEntry", "GrowingFunction"]


class CalleeEntry(NamedTuple):
    """The entry of a function and its instruction set."""

    entry: int
    thumb: bool


@dataclass(slots=True, eq=False)
class GrowingFunction:
    """The known instructions, edges and callees of a function, by address.

    They only grow, except for a claimed return, which may be refuted. ``version`` counts changes,
    so that a decision can be repeated after the code around it has grown.
    """

    entry: int
    thumb: bool
    linked: dict[int, Set[int]]  # jumps that call -> words in lr
    leaders: set[int]  # start blocks
    insns: dict[int, Insn] = field(default_factory=dict)
    edges: set[tuple[int, int, EdgeKind]] = field(default_factory=set)  # to leaders
    sites: set[int] = field(default_factory=set)  # indirect transfers
    settled: set[int] = field(default_factory=set)  # sites that need no proof
    by_values: set[int] = field(default_factory=set)  # sites resolved by values
    calls: dict[int, set[int]] = field(default_factory=dict)
    tails: set[int] = field(default_factory=set)
    callees: dict[CalleeEntry, set[int]] = field(default_factory=dict)  # callee -> its calls
    passes: dict[int, set[int]] = field(default_factory=dict)  # callees that a fact replaces
    returns: set[int] = field(default_factory=set)
    tail_returns: set[int] = field(default_factory=set)  # tail calls whose callee may return
    exits: set[int] = field(default_factory=set)
    unresolved: dict[int, UnresolvedTransfer] = field(default_factory=dict)
    going_on: set[int] = field(default_factory=set)  # unresolved calls and waits: code follows
    keeps_lr: bool = True  # lr is only written by calls and by loads from the stack
    version: int = 0

    @property
    def may_return(self) -> bool:
        """Whether a return was found, or an unresolved transfer that may return (rule 3)."""
        unknown = self.unresolved.keys() - self.going_on
        return bool(self.returns or self.tail_returns or unknown)

    def before(self, insn: Insn) -> Insn | None:
        """The instruction that always runs just before ``insn``, if there is one."""
        if insn.addr in self.leaders:
            return None
        for size in (2, 4) if insn.thumb else (4,):
            previous = self.insns.get(insn.addr - size)
            if previous is not None and previous.next == insn.addr:
                return previous
        return None

    def is_called(self, addr: int) -> bool:
        """Whether a ``bl`` that counts as a jump targets ``addr``."""
        return any(
            target == addr
            and kind is EdgeKind.TAKEN
            and self.insns[source].flow is ControlFlow.CALL
            for source, target, kind in self.edges
        )

    def exception_returns(self) -> set[int]:
        """The exception returns at which paths end."""
        insns = self.insns
        return {site for site in self.exits if insns[site].flow is ControlFlow.EXCEPTION_RETURN}

    def reached_by_calls(self) -> set[int]:
        """The instructions reached through a ``bl`` that counts as a jump."""
        after: dict[int, list[int]] = {}
        pending: list[int] = []
        for source, target, kind in self.edges:
            after.setdefault(source, []).append(target)
            if kind is EdgeKind.TAKEN and self.insns[source].flow is ControlFlow.CALL:
                pending.append(target)
        reached: set[int] = set()
        while pending:
            addr = pending.pop()
            insn = self.insns.get(addr)
            if insn is None or addr in reached:
                continue
            reached.add(addr)
            pending.extend(after.get(addr, ()))
            if insn.flow is ControlFlow.NEXT and addr not in self.exits:
                pending.append(insn.next)
        return reached

    def returns_at(self, insn: int) -> None:
        """Record that ``insn`` may return to the caller."""
        if insn not in self.returns:
            self.returns.add(insn)
            self.version += 1

    def returns_not_at(self, insn: int) -> None:
        """Drop the claim that ``insn`` returns: values refute it."""
        if insn in self.returns:
            self.returns.discard(insn)
            self.version += 1

    def switches_at(self, insn: int) -> None:
        """Record that ``insn`` continues in another context: a path ends there."""
        self.returns.discard(insn)
        self.settled.add(insn)
        self.exits.add(insn)
        self.version += 1
