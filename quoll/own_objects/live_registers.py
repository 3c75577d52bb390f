"""Registers whose content code may still use: a register that no one reads hands nothing on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from quoll.arm.insn import LR, ControlFlow, Insn
from quoll.own_objects.whole_code import WholeCode

__all__ = ["LiveRegisters"]

ARGUMENTS = frozenset((0, 1, 2, 3))
RESULTS = frozenset((0, 1))
SCRATCH = frozenset((0, 1, 2, 3, 12, LR))  # a call may change these
ALL = frozenset(range(15))


class LiveRegisters:
    """Liveness over all functions: arguments and results by their callees and callers."""

    def __init__(self, code: WholeCode) -> None:
        self._code = code
        self._before: dict[int, frozenset[int]] = {}
        self._results: dict[int, frozenset[int]] = defaultdict(frozenset)  # by function
        self._written = _written(code)
        self._called = {i.target for i in code.insns.values() if i.flow is ControlFlow.CALL}
        self._solve()

    def before(self, addr: int) -> frozenset[int]:
        """The registers that are live when the instruction at ``addr`` begins."""
        return self._before.get(addr, frozenset())

    def handed(self, insn: Insn) -> frozenset[int]:
        """The registers that a call, a jump or a return hands to code that is not followed."""
        if insn.flow is ControlFlow.CALL:
            return self.before(insn.target) if insn.target in self._code.insns else ARGUMENTS
        if insn.flow in (ControlFlow.INDIRECT_CALL, ControlFlow.TRAP):
            return ARGUMENTS
        if insn.flow is ControlFlow.EXCEPTION_RETURN:
            return ALL
        if insn.flow is ControlFlow.JUMP and insn.target is not None:
            if insn.target not in self._code.insns:
                return ALL
            return self.before(insn.target) if self._code.is_start(insn.target) else frozenset()
        if insn.flow is ControlFlow.INDIRECT:
            results = self._results_at(insn)
            return results if self._code.returns(insn) else results | ARGUMENTS
        return frozenset()

    def changed_by(self, insn: Insn) -> frozenset[int]:
        """The scratch registers whose content a call replaces."""
        if insn.flow is ControlFlow.CALL and insn.target in self._code.insns:
            return SCRATCH & self._written[self._code.function(insn.target)]
        return RESULTS | {LR}

    def _results_at(self, insn: Insn) -> frozenset[int]:
        function = self._code.function(insn.addr)
        called = function in self._called
        return self._results[function] | (frozenset() if called else RESULTS)

    def _solve(self) -> None:
        """Iterate backward until no register is added."""
        insns = self._code.insns
        back: dict[int, list[int]] = defaultdict(list)
        # functions by the address that they return to; at -1 - start, the targets of tail calls
        callers: dict[int, list[int]] = defaultdict(list)
        for insn in insns.values():
            for after in self._code.successors(insn):
                back[after].append(insn.addr)
            if insn.flow is ControlFlow.CALL and insn.target in insns:
                back[insn.target].append(insn.addr)
                callers[insn.next].append(self._code.function(insn.target))
            if self._tail(insn) is not None:
                callers[-1 - self._code.function(insn.addr)].append(insn.target or 0)
        pending = list(insns)
        while pending:
            addr = pending.pop()
            insn = insns[addr]
            found = self._transfer(insn)
            if found == self._before.get(addr):
                continue
            self._before[addr] = found
            pending += back[addr]
            for function in callers.get(addr, ()):
                self._give(function, found & ARGUMENTS, callers, pending)

    def _give(
        self,
        function: int,
        results: frozenset[int],
        callers: dict[int, list[int]],
        pending: list[int],
    ) -> None:
        """Add results that a caller uses to ``function`` and to all that it tail-calls."""
        reached = [function]
        while reached:
            one = reached.pop()
            if results <= self._results[one]:
                continue
            self._results[one] |= results
            pending += self._code.members(one)
            reached += callers.get(-1 - one, ())

    def _tail(self, insn: Insn) -> int | None:
        jumps = insn.flow is ControlFlow.JUMP and insn.target is not None
        return insn.target if jumps and self._code.is_start(insn.target or 0) else None

    def _transfer(self, insn: Insn) -> frozenset[int]:
        live: frozenset[int] = frozenset().union(
            *(self.before(after) for after in self._code.successors(insn))
        )
        if self._code.is_call(insn):
            live = (live - self.changed_by(insn)) | self.handed(insn)
        elif insn.flow is ControlFlow.INDIRECT:
            live |= self.handed(insn)
        if not insn.conditional and not self._code.is_call(insn):
            live -= insn.writes
        return live | self._code.used(insn)


def _written(code: WholeCode) -> dict[int, frozenset[int]]:
    """The registers that each function or its callees may write; all, behind a pointer."""
    own: dict[int, set[int]] = defaultdict(set)
    called: dict[int, set[int]] = defaultdict(set)
    for insn in code.insns.values():
        function = code.function(insn.addr)
        own[function] |= insn.writes
        if insn.flow in (ControlFlow.INDIRECT_CALL, ControlFlow.TRAP):
            own[function] |= RESULTS
        if insn.target in code.insns and insn.target is not None:
            called[function].add(code.function(insn.target))
    changed = True
    while changed:
        changed = False
        for function, callees in called.items():
            added = set[int]().union(*_of(own, callees)) - own[function]
            if added:
                own[function] |= added
                changed = True
    return defaultdict(frozenset, {f: frozenset(r) for f, r in own.items()})


def _of(own: dict[int, set[int]], functions: Iterable[int]) -> list[set[int]]:
    return [own[function] for function in functions]
