"""Values at the transfers of one function, as far as it is explored.

Each claim that extraction makes from the form of the code is checked here: that a return loads
the return address, that a jump to a function leaves sp and lr as they were, and which registers a
function preserves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from quoll.abstract_domain.abstract_state import MODE
from quoll.abstract_domain.function_values import CALLEE_SAVED, BlockCode, LocalValues
from quoll.abstract_domain.resumption import restored, resumed_code
from quoll.abstract_domain.terms import describe, entry_symbol, plain
from quoll.arm.insn import LR, SP, ControlFlow, Insn
from quoll.arm.status import StatusField, status_written
from quoll.assumptions import SPILLED_TABLE, Assumption
from quoll.cfg.cfg import Cfg, Edge, EdgeKind
from quoll.cfg.transfers import TransferEffect, callee_at, is_call
from quoll.errors import WcetError
from quoll.facts.contract import STANDARD, CallContract
from quoll.image.image import Image
from quoll.indirect.by_values import TransferResolution, resolve
from quoll.indirect.reaching_definitions import OpaqueOrigin, opaque_origin

__all__ = ["FunctionConfirmation", "ReturnConfirmer", "TransferValues", "UnresolvedReason"]

PRESERVED = (*CALLEE_SAVED, LR)
TIMES = 16  # weakenings of a contract before it counts as storing to all reachable bytes
WAYS_BACK = 2  # most return addresses; an interval of two words contains no others
SUPERVISOR = 0x13  # processor mode bits


@dataclass(frozen=True, slots=True)
class UnresolvedReason:
    """The reason why a transfer is unresolved."""

    reason: str
    dead: bool = False  # the explored code excludes the transfer
    balanced: bool = False  # sp has its entry value, and nothing contradicts a return
    bounded: bool = False  # the target is one of few words, for every caller
    loaded: bool = False  # the target is unknown, and sp has its entry value
    switches: bool = False  # it leaves with another stack pointer than the caller's
    mode: int | None = None  # the known mode at the transfer, if the mode at entry is unknown
    restores: bool = False  # the mode is unknown, as a status word of unknown mode was written


@dataclass(frozen=True, slots=True)
class TransferValues:
    """The values at the transfer that ends a block.

    ``preserved``: the callee-saved registers, and lr, that hold their entry values. ``effect``: the
    effect of an undecided transfer, and whether it is a call. ``link``: the code addresses that lr
    then holds; None if unknown.
    """

    preserved: frozenset[int]
    effect: tuple[TransferEffect, bool] | UnresolvedReason | None
    link: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class FunctionConfirmation:
    """The values in one function, as far as extraction needs them.

    ``left`` holds the function's stores. ``assumptions`` are the named assumptions of all this
    (rule 1).
    """

    endings: Mapping[int, TransferValues]  # by block: undecided transfers, returns and tail calls
    left: CallContract
    assumptions: frozenset[Assumption]


class ReturnConfirmer:
    """Computes values and contracts, function by function.

    A contract starts as the procedure call standard, without stores into callers' frames, and only
    weakens: the greatest fixed point, in which the contract of each function is right if the
    contracts of its callees are.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._code = BlockCode()
        self._contracts: dict[int, CallContract] = {}
        # calls through one table have equal keys
        self._of_any: dict[tuple[int, ...], CallContract] = {}
        self._weakened: Counter[int] = Counter()  # function -> number of weakenings
        self.modes: dict[int, int] = {}  # function -> assumed mode at entry
        # functions that are assumed to write status words of the mode in which they run
        self.restoring: set[int] = set()

    def __call__(self, cfg: Cfg, undecided: Set[int]) -> FunctionConfirmation | str:
        """The values of ``cfg``, whose open transfers are ``undecided``; else the reason."""
        try:
            values = self._values(cfg)
        except WcetError as fault:
            return str(fault)
        endings = {
            block.index: TransferValues(
                frozenset(r for r in PRESERVED if _holds(values, block.index, r)),
                _effect(values, block.index) if block.last.addr in undecided else None,
                _link(values, block.index) if block.calls else None,
            )
            for block in cfg.blocks
            if block.tail or block.returns or block.comes_back or block.last.addr in undecided
        }
        left = values.left()
        assumptions = values.assumptions
        if values.spills_tables:
            spilled = self._through_spilled_tables(cfg, endings)
            endings |= {index: ending for index, (ending, _) in spilled.items()}
            assumptions |= {assumption for _, assumption in spilled.values()}
        return FunctionConfirmation(endings, left, assumptions)

    def resumed(self, cfg: Cfg, sites: Set[int]) -> dict[int, frozenset[int]]:
        """The targets of exception returns at ``sites`` that surely continue in this program."""
        found: dict[int, frozenset[int]] = {}
        try:
            values = self._values(cfg)
        except WcetError:
            return found
        for block in cfg.blocks:
            outcome = values.outcome(block.index) if block.last.addr in sites else None
            if outcome is not None and outcome.leave is not None:
                target, status = restored(outcome.leave)
                code = resumed_code(self._image, plain(target), status)
                if code:
                    found[block.last.addr] = code
        return found

    def _values(self, cfg: Cfg, *, keeps_tables: bool = False) -> LocalValues:
        return LocalValues(
            cfg,
            self._image,
            self._code,
            self.contract_of_any,
            mode=self.modes.get(cfg.entry),
            same_mode=cfg.entry in self.restoring,
            retain_tables=keeps_tables,
        )

    def _through_spilled_tables(
        self, cfg: Cfg, endings: Mapping[int, TransferValues]
    ) -> dict[int, tuple[TransferValues, Assumption]]:
        """Jumps through tables whose address was spilled to the stack, with their assumptions."""
        unknown = [
            index
            for index, ending in endings.items()
            if isinstance(ending.effect, UnresolvedReason)
            and not (ending.effect.dead or cfg.blocks[index].returns or is_call(cfg.blocks[index]))
        ]
        if not unknown:
            return {}
        values = self._values(cfg, keeps_tables=True)
        found = {}
        for index in unknown:
            effect, last = _effect(values, index), cfg.blocks[index].last
            if isinstance(effect, UnresolvedReason) or effect[0].table is None or effect[1]:
                continue
            text = SPILLED_TABLE.of(
                insn=last.text,
                place=self._image.place(last.addr),
                table=self._image.place(effect[0].table),
            )
            found[index] = TransferValues(endings[index].preserved, effect), text
        return found

    def contract(self, entry: int) -> CallContract:
        """The contract of the function at ``entry``, as explored so far."""
        return self._contracts.get(entry, STANDARD)

    def contract_of_any(self, entries: tuple[int, ...]) -> CallContract:
        """The common contract of the functions at ``entries``."""
        found = self._of_any.get(entries)
        if found is None:
            left = (STANDARD, *map(self.contract, entries))
            found = self._of_any[entries] = CallContract.of_any(left)
        return found

    def left_by(self, cfg: Cfg, confirmed: FunctionConfirmation, assumed: Set[int]) -> CallContract:
        """The contract of ``cfg``: callee-saved registers, with sp, that every return preserves.

        The returns at ``assumed`` are assumed to preserve everything.
        """
        preserved = CALLEE_SAVED
        for block in cfg.blocks:
            if block.last.addr in assumed or block.no_return or not (block.returns or block.tail):
                continue
            preserved &= confirmed.endings[block.index].preserved
            if block.tail:
                preserved &= self.contract_of_any(block.calls).preserved
        return confirmed.left.preserving(preserved)

    def note(self, entry: int, left: CallContract) -> bool:
        """Weaken the contract of the function to cover ``left``; returns whether it changed.

        Recursive functions may pass on an address and add to it each time, so that their stores
        grow for ever: after ``TIMES`` weakenings all bytes that the address may reach count as
        stored.
        """
        before = self.contract(entry)
        after = CallContract.of_any((before, left))
        if after == before:
            return False
        self._of_any.clear()
        self._weakened[entry] += 1
        self._contracts[entry] = after if self._weakened[entry] <= TIMES else after.widened(before)
        return True


def _effect(values: LocalValues, block: int) -> tuple[TransferEffect, bool] | UnresolvedReason:
    """The effect of the indirect transfer ending ``block``, and whether it is a call."""
    found = resolve(values, block)
    thumb = values.cfg.blocks[block].last.thumb
    if not isinstance(found, TransferResolution):
        dead = not found.reached
        reason = found.reason if dead else str(_origin(values, block) or found.reason)
        balanced = not dead and _holds(values, block, SP)
        loaded = balanced and found.loaded
        switches = not dead and _leaves_stack(values, block)
        stored = balanced and not found.stored
        mode = None if dead else _mode_left(values, block)
        restores = not dead and _writes_mode(values, block)
        return UnresolvedReason(
            reason, dead, stored, found.bounded, loaded, switches, mode, restores
        )
    targets = tuple(callee_at(target, thumb=thumb) for target in found.targets)
    return TransferEffect(targets, found.kind == "return", found.table), found.kind == "call"


def _origin(values: LocalValues, block: int) -> OpaqueOrigin | None:
    """The reason why the target of the transfer ending ``block`` is unknown, if one is found."""
    into: dict[int, list[Edge]] = {}
    for edge in values.cfg.edges:
        into.setdefault(edge.dst, []).append(edge)
    return opaque_origin(values.cfg, into, values.cfg.blocks[block], values.image)


def _link(values: LocalValues, block: int) -> frozenset[int] | None:
    """The code addresses that lr holds when ``block`` transfers control, if they are few."""
    outcome = values.outcome(block)
    if outcome is None or outcome.leave is None:
        return frozenset()
    state = outcome.leave.state
    words = plain(describe(state.term(LR), state.facts))
    if words.size > WAYS_BACK:
        return _left_by_calls(values.cfg, block)
    if not all(values.image.is_executable(word & ~1) for word in words):
        return None
    return frozenset(words)


def _left_by_calls(cfg: Cfg, block: int) -> frozenset[int] | None:
    """The words in lr if only ``bl`` jumps enter ``block`` and it does not write lr; else None."""
    into = [edge for edge in cfg.edges if edge.dst == block]
    sources = [cfg.blocks[edge.src].last for edge in into if edge.kind is EdgeKind.TAKEN]
    linked = len(sources) == len(into) and all(insn.flow is ControlFlow.CALL for insn in sources)
    alone = not any(LR in insn.writes for insn in cfg.blocks[block].insns[:-1])
    if not (block and linked and alone):
        return None
    return frozenset(insn.next | insn.thumb for insn in sources)


def _leaves_stack(values: LocalValues, block: int) -> bool:
    """Whether sp is not relative to its entry value.

    A routine that stores the stack pointer of one thread and loads another's returns when the
    thread runs again. A routine that only writes a status word may leave sp to its caller, who
    knows the mode: it does not switch stacks.
    """
    outcome = values.outcome(block)
    if outcome is None or outcome.leave is None:
        return False
    if not any(_sets_stack(insn) for b in values.cfg.blocks for insn in b.insns):
        return False
    return outcome.leave.state.term(SP) >> 32 != entry_symbol(SP)


def _mode_left(values: LocalValues, block: int) -> int | None:
    """Supervisor mode, if control is transferred in it and the mode at entry is unknown.

    If the mode is unknown there too, the only mode that the function changes to counts. Functions
    of a kernel are called in Supervisor mode; a function that leaves in another mode continues in
    another context.
    """
    outcome = values.outcome(block)
    if values.mode is not None or outcome is None or outcome.leave is None:
        return None
    left = outcome.leave.state.known_mode
    found = {left} if left is not None else set(values.modes())
    return SUPERVISOR if found == {SUPERVISOR} else None


def _writes_mode(values: LocalValues, block: int) -> bool:
    """Whether the mode is unknown when ``block`` transfers control, as a status word is written."""
    outcome = values.outcome(block)
    left = None if outcome is None else outcome.leave
    if left is None or left.state.registers[MODE] is not None:
        return False
    insns = (insn for block in values.cfg.blocks for insn in block.insns)
    return any(StatusField.CONTROL in status_written(insn) for insn in insns)


def _sets_stack(insn: Insn) -> bool:
    """Whether ``insn`` sets sp to a word that is not computed from sp."""
    if SP not in insn.writes:
        return False
    return SP in insn.transfers or SP not in insn.reads


def _holds(values: LocalValues, block: int, register: int) -> bool:
    """Whether ``register`` has its entry value when ``block`` transfers control."""
    outcome = values.outcome(block)
    if outcome is None or outcome.leave is None:
        return True
    return outcome.leave.state.term(register) == entry_symbol(register) << 32
