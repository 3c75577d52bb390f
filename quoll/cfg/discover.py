"""One function under construction: the code reachable from its entry.

A ``FunctionBuilder`` decodes along direct control flow only. Its owner supplies the effects of
indirect transfers and the callees that return; each result may uncover more code. A block belongs
to every function that reaches it, so functions with a common tail each hold a copy, and each
function is complete by itself. Bytes are code if control reaches them, regardless of mapping
symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from quoll.arm.architecture import on_version
from quoll.arm.decode import ARM_LENGTH, decode, it_conditions, known_words
from quoll.arm.insn import LR, Condition, ControlFlow, Insn
from quoll.arm.it_blocks import misplaced_in_it_block
from quoll.arm.operation import Operation
from quoll.arm.relocated_insn import moved
from quoll.arm.supervisor import as_call, is_supervisor_call
from quoll.arm.unpredictable import has_meaning, unpredictable_form
from quoll.cfg.cfg import EdgeKind
from quoll.cfg.growing_function import CalleeEntry, GrowingFunction
from quoll.cfg.idle_loops import is_idle
from quoll.cfg.link_register import sets_lr_by_convention
from quoll.cfg.unresolved import UnresolvedKind, UnresolvedTransfer, WritableSection
from quoll.errors import ControlFlowError, InputError
from quoll.image.image import Image

__all__ = ["DiscoveryPolicy", "FunctionBuilder", "SupervisorCallEffect", "falls_through"]


def falls_through(insn: Insn) -> bool:
    """Whether the next instruction in memory may follow without a transfer of control."""
    goes_on = insn.flow in (ControlFlow.NEXT, ControlFlow.WAIT)
    return goes_on or insn.conditional or insn.operation is Operation.COMPARE_AND_BRANCH


class _Pending(NamedTuple):
    """An address to explore, and the instruction that leads to it."""

    addr: int
    thumb: bool
    it: tuple[Condition, ...]


class SupervisorCallEffect(Enum):
    """The effect of an svc."""

    UNKNOWN = "it is not known"
    EXITS = "the path ends"
    CALLS = "it returns, after a function that a fact replaces"


@dataclass(frozen=True, slots=True)
class DiscoveryPolicy:
    """The rules for following the control flow of one function: facts, and results for others.

    Paths end at ``ends``; where they are also in ``going_on``, control may continue. Paths end at
    supervisor calls as ``supervisor`` says and, with ``self_jumps_end``, in loops that only wait.
    ``is_function`` tells whether a function starts at an address, and calls of a ``returning`` one
    return; both sets grow. Calls of ``replaced`` functions are not followed. ``inline`` are jumps
    that are no tail calls. Targets of ``bl`` in ``fragments`` belong to this function, unless they
    are in ``apart``.
    """

    ends: Set[int]
    is_function: Callable[[int], bool]
    returning: Set[int]
    inline: Set[int]
    fragments: Set[int]
    apart: Set[int]
    replaced: Container[int]
    going_on: Set[int]
    supervisor: SupervisorCallEffect
    self_jumps_end: bool


class FunctionBuilder:
    """Follows the control flow of ``function`` under its policy, and records the result.

    The owner resolves the indirect transfers of the function.
    """

    def __init__(self, image: Image, function: GrowingFunction, policy: DiscoveryPolicy) -> None:
        self.function = function
        self._image, self._policy = image, policy
        self._window = CodeWindow(image)
        self._new_callees: list[CalleeEntry] = []
        self._new_inlined: list[int] = []
        self._sets = {function.entry: function.thumb}  # leaders -> whether they are Thumb code
        # instructions in IT blocks -> conditions left
        self._it: dict[int, tuple[Condition, ...]] = {}
        self._pending = [_Pending(function.entry, function.thumb, ())]

    @property
    def growing(self) -> bool:
        """Whether unexplored addresses remain."""
        return bool(self._pending)

    def take_new_callees(self) -> list[CalleeEntry]:
        """The callees found since the last call of this method."""
        new, self._new_callees = self._new_callees, []
        return new

    def take_new_inlined(self) -> list[int]:
        """The branch targets found since the last call of this method."""
        new, self._new_inlined = self._new_inlined, []
        return new

    def explore(self) -> None:
        """Decode everything reached so far."""
        while self._pending:
            at = self._pending.pop()
            self._run(at.addr, at.thumb, at.it)
            self.function.version += 1

    def jump(self, insn: int, target: CalleeEntry, kind: EdgeKind) -> None:
        """Add a jump to ``target``: a tail call if a function starts there, else a branch.

        A jump back to the entry is a loop. A jump that does not leave sp and lr for the callee is
        no tail call: its target is part of this function.
        """
        policy = self._policy
        own = target.entry == self.function.entry or insn in policy.inline
        if target.entry in policy.replaced and insn in policy.inline:
            place = self._image.place(target.entry)
            self.refuse(insn, UnresolvedKind.REPLACED_TARGET, {"target": place})
        elif target.entry in policy.replaced or (not own and policy.is_function(target.entry)):
            self.call(insn, target, tail=insn not in self.function.linked)
        else:
            self._new_inlined.append(target.entry)
            self.branch(insn, target, kind)

    def branch(self, insn: int, target: CalleeEntry, kind: EdgeKind) -> None:
        """Add an edge inside this function from the instruction ``insn`` to ``target``."""
        function, edge = self.function, (insn, target.entry, kind)
        known = self._sets.get(target.entry)
        if edge in function.edges and known is target.thumb:
            return
        if not self._is_code(insn, target):
            return
        if known is not None and known is not target.thumb:
            self._refuse_both_sets(target.entry)
            return
        self._sets[target.entry] = target.thumb
        function.edges.add(edge)
        function.leaders.add(target.entry)
        self._pending.append(_Pending(target.entry, target.thumb, ()))
        function.version += 1

    def call(self, insn: int, callee: CalleeEntry, *, tail: bool) -> None:
        """Add a call of ``callee`` at ``insn``; with ``tail`` its return is ours."""
        if callee.entry in self._policy.replaced:
            self._pass_over(insn, callee.entry, tail=tail)
            return
        function = self.function
        if insn in function.callees.get(callee, ()) or not self._is_code(insn, callee):
            return
        if callee not in function.callees:
            self._new_callees.append(callee)
        function.callees.setdefault(callee, set()).add(insn)
        function.calls.setdefault(insn, set()).add(callee.entry)
        function.version += 1
        if tail:
            function.tails.add(insn)
        if callee.entry in self._policy.returning:
            self._come_back(insn)

    def _pass_over(self, insn: int, callee: int, *, tail: bool) -> None:
        """Add a call of a function that a fact replaces: it returns, and is not followed."""
        passed = self.function.passes.setdefault(insn, set())
        if callee in passed:
            return
        passed.add(callee)
        self.function.version += 1
        if tail:
            self.function.tails.add(insn)
        self._come_back(insn)

    def _belongs_to_function(self, target: CalleeEntry) -> bool:
        return target.entry in self._policy.fragments and target.entry not in self._policy.apart

    def _is_long_jump(self, insn: Insn, target: CalleeEntry) -> bool:
        """Whether ``bl`` is only a jump, as GCC uses it in Thumb code to reach beyond 2 KiB.

        It is one if its target is inside the function that holds the instruction.
        """
        if not (insn.thumb and target.thumb) or self._policy.is_function(target.entry):
            return False
        if target.entry in self._policy.apart or target.entry in self._policy.replaced:
            return False
        symbol = self._image.symbols.function_around(insn.addr)
        return symbol is not None and symbol.addr < target.entry < symbol.addr + symbol.size

    def returned(self, callee: CalleeEntry) -> None:
        """``callee`` may return: explore the code after its calls."""
        for insn in sorted(self.function.callees.get(callee, ())):
            self._come_back(insn)

    def _come_back(self, insn: int) -> None:
        if insn in self.function.tails:
            self.function.version += insn not in self.function.tail_returns
            self.function.tail_returns.add(insn)
        else:
            self.continue_after(insn)

    def continue_after(self, insn: int) -> None:
        """Follow the return of the call ``insn``: to the addresses in lr, or after it."""
        call = self.function.insns[insn]
        for word in sorted(self.function.linked.get(insn, (call.next | call.thumb,))):
            self.branch(insn, CalleeEntry(word & ~1, bool(word & 1)), EdgeKind.ACROSS)

    def _is_code(self, insn: int, target: CalleeEntry) -> bool:
        """Whether code of that instruction set may start at ``target``; if not, refuse ``insn``."""
        place = self._image.place
        what: str | None = "which is not code"
        if self._window.is_code(*target):
            wrong = self._image.contradiction(target.entry, thumb=target.thumb)
            name = "Thumb" if target.thumb else "ARM"
            what = f"as {name} code, but {wrong}" if wrong else None
        if what is not None:
            at = target.entry
            unclear = self._either_set(at, thumb=target.thumb)
            values = {"target": place(at), "problem": what}
            self.refuse(insn, UnresolvedKind.NOT_CODE, values, unclear=unclear)
        return what is None

    def _either_set(self, addr: int, *, thumb: bool) -> tuple[int, ...]:
        """``addr``, if only its bit 0 suggests ARM code rather than Thumb code."""
        told = thumb or self._image.thumb_at(addr) is not None
        return () if told or not self._image.is_executable(addr) else (addr,)

    def refuse(
        self,
        insn: int,
        kind: UnresolvedKind,
        values: Mapping[str, str] | None = None,
        *,
        unclear: tuple[int, ...] = (),
        writable: WritableSection | None = None,
        behind: UnresolvedTransfer | None = None,
        comes_back: bool = False,
    ) -> None:
        """Record that the effect of ``insn`` is unknown; ``comes_back``: it is a call.

        ``values`` fill the text of ``kind``; ``unclear``: addresses of ARM or Thumb code.
        """
        if insn not in self.function.unresolved:
            own = self._either_set(self.function.entry, thumb=self.function.thumb)
            self.function.unresolved[insn] = UnresolvedTransfer(
                insn,
                self._image.place(insn),
                kind,
                tuple(sorted((values or {}).items())),
                comes_back,
                tuple(dict.fromkeys((*unclear, *own))),
                writable,
                behind,
                function=self.function.entry,
            )
            self.function.version += 1

    def refuse_call(
        self,
        insn: int,
        kind: UnresolvedKind,
        values: Mapping[str, str],
        writable: WritableSection | None,
        link: int | None = None,
    ) -> None:
        """Record that the callees of ``insn`` are unknown, but that the call returns."""
        self.function.going_on.add(insn)
        self.refuse(insn, kind, values, writable=writable, comes_back=True)
        if link is not None:
            self.function.linked[insn] = {link}
        self.continue_after(insn)

    def resumes_at(self, insn: int, targets: Iterable[CalleeEntry]) -> None:
        """Continue the exception return ``insn`` at ``targets``, as a branch does."""
        self.function.exits.discard(insn)
        for target in targets:
            self.branch(insn, target, EdgeKind.INDIRECT)
        self.function.version += 1

    def refuse_exit(self, insn: int) -> None:
        """Record that the target of the exception return ``insn`` is unknown."""
        self.function.exits.discard(insn)
        self.refuse(insn, UnresolvedKind.EXCEPTION_RETURN, {"text": self.function.insns[insn].text})

    def _run(self, addr: int, thumb: bool, it: tuple[Condition, ...]) -> None:
        """Decode instructions in sequence until control may go elsewhere."""
        came_from: int | None = None
        insns, exits = self.function.insns, self._policy.ends
        while True:
            if not thumb:
                came_from, addr = self._straight(came_from, addr)
            known = insns.get(addr)
            if known is not None:
                self.function.leaders.add(addr)
                self._meet(known, thumb, it)
                return
            insn = self._decode(addr, thumb, it, came_from)
            if insn is None:
                return
            insn = on_version(insn, self._image.version)
            if is_supervisor_call(insn) and self._policy.supervisor is SupervisorCallEffect.CALLS:
                insn = as_call(insn)
            insns[addr] = insn
            if LR in insn.writes and not sets_lr_by_convention(insn):
                self.function.keeps_lr = False
            if it:
                self._it[addr] = it
            if thumb and self._is_misplaced(insn, it):
                return
            if thumb:
                it = it[1:] or it_conditions(insn)
            plain = insn.flow is ControlFlow.NEXT and addr not in exits and has_meaning(insn)
            if not plain and self._exits_here(insn):
                return
            came_from, addr = addr, insn.next
            if not plain:
                self.function.edges.add((came_from, addr, EdgeKind.FALLTHROUGH))
                self.function.leaders.add(addr)

    def _is_misplaced(self, insn: Insn, it: tuple[Condition, ...]) -> bool:
        """Whether ``insn`` must not stand in the rest ``it`` of an IT block; if so, refuse it."""
        wrong = misplaced_in_it_block(insn, left=len(it))
        if wrong is not None:
            self.refuse(insn.addr, UnresolvedKind.MISPLACED_IN_IT_BLOCK, {"problem": wrong})
        return wrong is not None

    def _straight(self, came_from: int | None, addr: int) -> tuple[int | None, int]:
        """Add ARM instructions decoded elsewhere, up to one with more effect than falling through.

        Returns the last one, and the address after it. Most code takes this fast path.
        """
        insns, exits, words = self.function.insns, self._policy.ends, known_words
        code, at = self._window.code, addr - self._window.start
        if addr % ARM_LENGTH or at < 0:
            return came_from, addr
        while addr not in insns and addr not in exits:
            known = words.get(code[at : at + ARM_LENGTH])
            if known is None or not known[1]:
                break
            insns[addr] = moved(known[0], addr)
            came_from = addr
            addr += ARM_LENGTH
            at += ARM_LENGTH
        return came_from, addr

    def _meet(self, known: Insn, thumb: bool, it: tuple[Condition, ...]) -> None:
        """Check that control reaches an instruction again with the same decoding."""
        if known.thumb != thumb:
            self._refuse_both_sets(known.addr)
        elif self._it.get(known.addr, ()) != it:
            self.refuse(known.addr, UnresolvedKind.INTO_IT_BLOCK)

    def _refuse_both_sets(self, addr: int) -> None:
        """Refuse the place: bytes that run as ARM and as Thumb code have two graphs."""
        self.refuse(addr, UnresolvedKind.BOTH_SETS)

    def _decode(
        self, addr: int, thumb: bool, it: tuple[Condition, ...], came_from: int | None
    ) -> Insn | None:
        insn = self._decoded(addr, thumb, it)
        if insn is not None:
            return insn
        if came_from is None:
            raise ControlFlowError(
                "there is no code here", where=self._image.place(addr), hint="check the address"
            )
        self.refuse(came_from, UnresolvedKind.RUNS_OFF, {"target": self._image.place(addr)})
        return None

    def _decoded(self, addr: int, thumb: bool, it: tuple[Condition, ...]) -> Insn | None:
        """The instruction at ``addr``, None if there is no code."""
        code = self._window.at(addr, thumb)
        if code is not None:
            with suppress(InputError):  # the code ends inside the instruction
                return decode(code, addr, thumb, it)
        return None

    def _is_idle(self, insn: Insn) -> bool:
        """Whether only an interrupt leaves the loop that ``insn`` stands in."""
        return is_idle(insn, lambda addr: self._decoded(addr, insn.thumb, ()))

    def _exits_here(self, insn: Insn) -> bool:
        """Record the effect of ``insn``; returns whether the next instruction is unreachable from
        it.
        """
        flow = insn.flow
        form = unpredictable_form(insn)
        if form is not None:
            self.refuse(
                insn.addr,
                UnresolvedKind.UNPREDICTABLE,
                {"text": insn.text, "problem": form.what, "section": form.section},
            )
            return True
        if insn.addr in self._policy.ends and flow is not ControlFlow.EXCEPTION_RETURN:
            self.function.exits.add(insn.addr)
            if insn.addr not in self._policy.going_on:
                return True
        if flow is ControlFlow.NEXT:
            return False
        if self._policy.self_jumps_end and self._is_idle(insn):
            self.function.exits.add(insn.addr)
            return True
        if flow is ControlFlow.EXCEPTION_RETURN:
            self.function.exits.add(insn.addr)
        elif flow is ControlFlow.CALL:
            assert insn.target is not None
            target = CalleeEntry(insn.target, insn.target_thumb)
            if self._belongs_to_function(target) or self._is_long_jump(insn, target):
                self.function.keeps_lr = False
                self.jump(insn.addr, target, EdgeKind.TAKEN)
            else:
                self.call(insn.addr, target, tail=False)
        elif flow is ControlFlow.JUMP:
            assert insn.target is not None
            self.jump(insn.addr, CalleeEntry(insn.target, insn.target_thumb), EdgeKind.TAKEN)
        elif flow in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL):
            self.function.sites.add(insn.addr)
        elif insn.operation is Operation.STOP:
            return not insn.conditional
        elif flow is ControlFlow.WAIT:
            self.function.going_on.add(insn.addr)
            self.refuse(insn.addr, UnresolvedKind.WAITS, {"text": insn.text})
        elif is_supervisor_call(insn) and self._policy.supervisor is SupervisorCallEffect.EXITS:
            self.function.exits.add(insn.addr)
        elif is_supervisor_call(insn):
            self.refuse(insn.addr, UnresolvedKind.SUPERVISOR_CALL, {"text": insn.text})
            return False
        elif flow is ControlFlow.TRAP:
            self.refuse(insn.addr, UnresolvedKind.EXCEPTION, {"text": insn.text})
            return False
        else:
            self.refuse(insn.addr, UnresolvedKind.NO_INSTRUCTION, {"text": insn.text})
        return not falls_through(insn)


LONGEST = 4  # bytes of the longest instruction


class CodeWindow:
    """``code`` is the whole code range of an image at ``start`` that was decoded last."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.start, self.code = 0, b""

    def at(self, addr: int, thumb: bool) -> bytes | None:
        """The bytes at ``addr`` of at most one instruction, None if it is not code."""
        if addr % (2 if thumb else 4):
            return None
        if not self.start <= addr < self.start + len(self.code):
            self.start, self.code = self._image.code_around(addr) or (0, b"")
        return self.code[addr - self.start : addr - self.start + LONGEST] or None

    def is_code(self, addr: int, thumb: bool) -> bool:
        """Whether an instruction may start at ``addr``."""
        inside = 0 <= addr - self.start < len(self.code) or self._image.is_executable(addr)
        return inside and addr % (2 if thumb else 4) == 0
