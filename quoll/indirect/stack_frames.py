"""A quick proof that the return address and saved registers survive in the frame of a function.

Most functions save lr and callee-saved registers at constant distances from sp and reload them.
This proof follows only that, in one pass without lifting, and gives up on everything else; values
(``quoll.indirect.returns``) then decide. Values prove the same, only later: a test compares the two
on whole libraries.

A register or a stack word holds the entry value of a register (for sp, plus a constant), some
unknown stack address (``STACK``), a status word with the mode at entry (``STATUS``), or nothing
known. As for values, a store of unknown address does not hit the frame (S1, rule 1), but a store to
an unknown place of the stack may. A callee stores at the places of its contract
(``quoll.facts.contract``): overwritten words are lost. Instructions that may change the mode are
not followed, so the mode at entry holds throughout: writing back a word that ``mrs`` has read, as
code does to mask interrupts for a while, preserves sp and lr. A status word in the frame survives a
call if no stack address was passed to anyone; a saved register is assumed to survive even then.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush

from quoll.abstract_domain.function_values import Callees, called
from quoll.arm.addressing import base_change
from quoll.arm.immediates import added_constant, immediate_operand
from quoll.arm.insn import LR, PC, SP, AccessKind, ControlFlow, Insn, MemoryAccess, ShiftKind
from quoll.arm.operation import Operation
from quoll.arm.status import (
    MODE_BITS,
    StatusField,
    leaves_mode,
    reads_current_status,
    state_change,
    status_written,
)
from quoll.arm.system_registers import changes_translation, discards_any_line, discards_line
from quoll.assumptions import F1, S1, S6, Assumption
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.facts.contract import ANY_ARGUMENTS, ByteSpan, CallContract, CallFrame, spans

__all__ = ["FrameContract", "FrameProofFailure", "bytes_read_above", "call_frames", "prove_frame"]

WORD = 1 << 32
STACK = -1  # an unknown address of the stack
STATUS = -2  # a word whose lowest five bits are the processor mode at entry
SAVED = frozenset([*range(4, 12), SP])
HANDED = (0, 1, 2, 3, 12)  # registers that may pass an address to a callee
COMPARES = (Operation.COMPARE, Operation.TEST)
MASKS = (Operation.OR, Operation.BIT_CLEAR, Operation.EXCLUSIVE_OR)

Value = int | None  # register << 32 | offset, STACK, STATUS, or None


class FrameProofFailure(Exception):
    """An instruction or form that this proof does not follow."""

    def __init__(self, insn: Insn | None = None) -> None:
        super().__init__()
        self.insn = insn


@dataclass(frozen=True, slots=True)
class FrameContract:
    """``left``: the contract with callers. ``assumes``: the named assumptions of the proof."""

    left: CallContract
    assumes: frozenset[Assumption]

    @property
    def preserved(self) -> frozenset[int]:
        """The callee-saved registers that every return preserves."""
        return self.left.preserved


def entry(register: int, offset: int = 0) -> int:
    """The entry value of ``register`` plus a constant."""
    return register << 32 | offset % WORD


RESTORED = frozenset(entry(register) for register in (*SAVED, LR))


def _distance(value: Value) -> int | None:
    """The distance of a known stack address from sp at entry."""
    known = _place(value)
    return known[1] if known is not None and known[0] == SP else None


def _place(value: Value) -> tuple[int, int] | None:
    """The register whose entry value this is, and the added constant."""
    if value is None or value < 0:
        return None
    offset = value % WORD
    return value >> 32, offset - WORD if offset >= WORD // 2 else offset


def _on_stack(value: Value) -> bool:
    return value is not None and (value == STACK or value >> 32 == SP)


def _join(a: Value, b: Value) -> Value:
    if a == b:
        return a
    return STACK if _on_stack(a) or _on_stack(b) else None


class _InsnRole(Enum):
    """The effect of an instruction on the proof."""

    NOTHING = "nothing"  # no register changes
    ELSEWHERE = "elsewhere"  # registers of a coprocessor may change
    PLAIN = "plain"  # a word computed from the read registers
    COMPUTED = "computed"  # a copy, a constant added, a status word
    ACCESS = "access"
    SWITCH = "switch"  # the processor mode may change
    DISCARD = "discard"  # stores may be lost


_kinds: dict[object, _InsnRole] = {}  # by encoding and target: an svc may count as a call


def _kind(insn: Insn) -> _InsnRole:
    key = insn.raw, insn.thumb, insn.target
    found = _kinds.get(key)
    if found is None:
        found = _kinds[key] = _classified(insn)
    return found


def _classified(insn: Insn) -> _InsnRole:
    if leaves_mode(insn):
        return _InsnRole.SWITCH
    if discards_line(insn) or discards_any_line(insn):
        return _InsnRole.DISCARD
    if insn.memory is not None:
        return _InsnRole.ACCESS
    if not insn.writes:
        return _InsnRole.NOTHING if insn.operation in COMPARES else _InsnRole.ELSEWHERE
    single = len(insn.sources) == 1 and insn.shift is ShiftKind.NONE
    status = insn.operation is Operation.READ_STATUS
    return _InsnRole.COMPUTED if single or status else _InsnRole.PLAIN


@dataclass(slots=True)
class _State:
    """Registers, and the words of the stack by distance from sp at entry; 0 for the rest.

    ``escaped``: whether a stack address may be anywhere but in registers.
    """

    registers: list[Value]
    words: dict[int, Value]
    escaped: bool = False

    def copy(self) -> _State:
        return _State(self.registers.copy(), self.words.copy(), self.escaped)

    def join(self, other: _State) -> _State:
        pairs = zip(self.registers, other.registers, strict=True)
        registers = [a if a == b else _join(a, b) for a, b in pairs]
        if _distance(registers[SP]) is None:
            raise FrameProofFailure
        words = self.words
        if words != other.words:
            both = words.keys() | other.words.keys()
            joined = ((at, _join(words.get(at), other.words.get(at))) for at in both)
            words = {at: value for at, value in joined if value is not None}
        return _State(registers, words, self.escaped or other.escaped)


def call_frames(cfg: Cfg, contracts: Callees) -> Mapping[int, CallFrame]:
    """The frame at each call, by address of the instruction; empty where the proof gives up.

    ``contracts`` gives the contracts of callees.
    """
    proof = _FrameProof(cfg, frozenset(), contracts)
    try:
        proof.follow()
    except FrameProofFailure:
        return {}
    return proof.at_calls()


def bytes_read_above(cfg: Cfg, contracts: Callees) -> int:
    """The bytes above sp at entry that the function itself may load; all where no proof succeeds.

    ``contracts`` gives the contracts of callees.
    """
    proof = _FrameProof(cfg, frozenset(), contracts)
    try:
        proof.follow()
    except FrameProofFailure:
        return ANY_ARGUMENTS.stack
    return proof.read_above()


def prove_frame(cfg: Cfg, returns: Set[int], contracts: Callees) -> FrameContract:
    """Prove that the transfers at ``returns`` return, and that tail calls preserve sp and lr.

    ``contracts`` gives the contracts of callees. Raises FrameProofFailure.
    """
    return _FrameProof(cfg, returns, contracts).run()


class _FrameProof:
    def __init__(self, cfg: Cfg, returns: Set[int], contracts: Callees) -> None:
        self._cfg, self._returns, self._contracts = cfg, returns, contracts
        self._states: list[_State | None] = [None] * len(cfg.blocks)
        self._preserved = SAVED
        self._assumes: set[Assumption] = set()
        self._stores: set[ByteSpan] = set()
        self._elsewhere = False
        self._above = 0  # bytes above sp at entry that are loaded
        self._lends = False  # whether a stack address may be in memory, or is an argument
        self._loads_anywhere = False  # whether the address of a load is not known
        self._restored: set[int] = set()  # distances of words that registers are restored from

    def run(self) -> FrameContract:
        """The contract, if every return and every tail call leaves as the standard demands."""
        self.follow()
        for block in self._cfg.blocks:
            start = self._states[block.index]
            if start is not None and (block.tail or block.last.addr in self._returns):
                self._check_leaving(block, self._through(block, start.copy())[1])
        left = CallContract(self._preserved, spans(self._stores), self._elsewhere)
        return FrameContract(left, frozenset(self._assumes))

    def at_calls(self) -> Mapping[int, CallFrame]:
        """The frame at each call that was followed, by address of the instruction."""
        found: dict[int, CallFrame] = {}
        for block in self._cfg.blocks:
            start = self._states[block.index]
            if start is None or not (block.calls or block.passes):
                continue
            leaves = self._through(block, start.copy())[1]
            sp = _distance(leaves.registers[SP])
            if sp is None:
                continue
            words = leaves.words.items()
            saved = frozenset(
                at - sp
                for at, value in words
                if at >= sp and at in self._restored and value in RESTORED
            )
            found[block.last.addr] = CallFrame(-sp, saved)
        return found

    def read_above(self) -> int:
        """The bytes above sp at entry that loads may reach."""
        return ANY_ARGUMENTS.stack if self._lends and self._loads_anywhere else self._above

    def follow(self) -> None:
        """Compute the states at the starts of all blocks."""
        if any(block.comes_back for block in self._cfg.blocks):
            raise FrameProofFailure  # the return addresses of calls are computed
        self._states[0] = _State([entry(r) for r in range(PC)] + [None], {})
        successors: list[list[Edge]] = [[] for _ in self._cfg.blocks]
        for edge in self._cfg.edges:
            successors[edge.src].append(edge)
        pending = [0]
        while pending:
            index = heappop(pending)
            block, start = self._cfg.blocks[index], self._states[index]
            assert start is not None
            stays, leaves = self._through(block, start.copy())
            for edge in successors[index]:
                if edge.kind is EdgeKind.ACROSS:
                    after = self._after_call(block, leaves)
                else:
                    after = stays if edge.kind is EdgeKind.FALLTHROUGH else leaves
                if self._reach(edge.dst, after) and edge.dst not in pending:
                    heappush(pending, edge.dst)

    def _reach(self, block: int, state: _State) -> bool:
        """Join ``state`` into the start of ``block``; returns whether it changed."""
        known = self._states[block]
        joined = state.copy() if known is None else known.join(state)
        self._states[block] = joined
        return known is None or joined != known

    def _through(self, block: Block, state: _State) -> tuple[_State, _State]:
        """The states when the last instruction does not, and when it does, transfer control."""
        last = block.last
        for insn in block.insns[:-1]:
            self._step(insn, state)
        if last.flow is ControlFlow.EXCEPTION_RETURN and not block.exits:
            raise FrameProofFailure(last)
        if last.flow is ControlFlow.NEXT:
            self._step(last, state)
            return state, state
        if (
            last.flow in (ControlFlow.JUMP, ControlFlow.CALL, ControlFlow.INDIRECT_CALL)
            or last.memory is None
        ):
            leaves = state.copy()
            if LR in last.writes:
                leaves.registers[LR] = None
            if leaves_mode(last) and last.flow is ControlFlow.TRAP:
                raise FrameProofFailure(last)
            return state, leaves
        leaves = state.copy()
        if last.flow is not ControlFlow.EXCEPTION_RETURN:
            self._access(last, last.memory, leaves)
        return state, leaves

    def _check_leaving(self, block: Block, leaves: _State) -> None:
        last = block.last
        if last.addr in self._returns:
            target = leaves.registers[PC] if last.memory else leaves.registers[last.sources[0]]
            if target != entry(LR):
                raise FrameProofFailure(last)
        elif block.tail and not block.no_return:
            if leaves.registers[LR] != entry(LR) or leaves.registers[SP] != entry(SP):
                raise FrameProofFailure(last)
            self._preserved &= self._called(block, leaves).preserved
        else:
            return
        self._preserved &= {r for r in SAVED if leaves.registers[r] == entry(r)}

    def _after_call(self, block: Block, leaves: _State) -> _State:
        """The state after a call: registers that its callees preserve, and our saved registers."""
        sp = _distance(leaves.registers[SP])
        contract = self._called(block, leaves)
        preserved = contract.preserved
        if SP not in preserved or sp is None:
            raise FrameProofFailure(block.last)
        self._assumes.add(S1.of())
        lent = any(_on_stack(value) for r, value in enumerate(leaves.registers) if r != SP)
        escaped = leaves.escaped or lent
        registers: list[Value] = [
            leaves.registers[r] if r in preserved else None for r in range(PC + 1)
        ]
        words: dict[int, Value] = {
            at: value
            for at, value in leaves.words.items()
            if at >= sp and (value in RESTORED or (value == STATUS and at < 0 and not escaped))
        }
        for base, low, high in contract.stores:
            at = _distance(leaves.registers[base])
            if at is not None:
                _overwrite(words, at + low, at + high)
        return _State(registers, words, escaped)

    def _called(self, block: Block, leaves: _State) -> CallContract:
        """The contract of the callees of ``block``; their stores are stores of this function."""
        contract = called(block, self._contracts)
        self._lends |= any(_on_stack(leaves.registers[r]) for r in HANDED)
        for span in contract.stores:
            value = leaves.registers[span.base]
            if value == STACK:
                raise FrameProofFailure(block.last)
            place = _place(value)
            if place is not None:
                self._stores.add(span.moved(*place))
            self._elsewhere |= place is None
        if contract.elsewhere:
            self._elsewhere = True
            if leaves.escaped or any(_on_stack(leaves.registers[r]) for r in HANDED):
                self._assumes.add(F1.of())
        return contract

    def _step(self, insn: Insn, state: _State) -> None:
        kind = _kind(insn)
        if kind is _InsnRole.NOTHING:
            return
        registers = state.registers
        if kind is _InsnRole.ELSEWHERE:
            if changes_translation(insn):
                self._assumes.add(S6.of())
            self._escape(state, given=any(_on_stack(registers[r]) for r in insn.reads))
        if kind is _InsnRole.PLAIN:
            value: Value = None
            for register in insn.reads:
                if _on_stack(registers[register]):
                    value = STACK
        elif kind is _InsnRole.DISCARD or (
            kind is _InsnRole.SWITCH and not _preserves_mode(insn, registers)
        ):
            raise FrameProofFailure(insn)
        elif insn.memory is not None:
            self._step_access(insn, insn.memory, state)
            return
        else:
            value = _computed(insn, registers)
        for register in insn.writes:
            conditional = insn.conditional
            registers[register] = _join(registers[register], value) if conditional else value
        if SP in insn.writes and _distance(registers[SP]) is None:
            raise FrameProofFailure(insn)

    def _step_access(self, insn: Insn, memory: MemoryAccess, state: _State) -> None:
        before = state.copy() if insn.conditional else None
        self._access(insn, memory, state)
        if _distance(state.registers[SP]) is None:
            raise FrameProofFailure(insn)
        if before is not None:
            joined = before.join(state)
            state.registers, state.words = joined.registers, joined.words

    def _access(self, insn: Insn, memory: MemoryAccess, state: _State) -> None:
        """Follow a load or store; only known places of the stack are followed."""
        base = None if memory.base is None else state.registers[memory.base]
        at = _distance(base)
        stores = memory.access in (AccessKind.STORE, AccessKind.SWAP)
        if memory.user or (stores and (memory.base is None or base == STACK)):
            raise FrameProofFailure(insn)
        if memory.access is not AccessKind.STORE:
            self._note_load(memory, base)
        if at is None or memory.index is not None:
            if stores and at is not None:
                raise FrameProofFailure(insn)
            if stores:
                self._assumes.add(S1.of())
                self._note_store(memory, base)
            self._escape(state, given=stores and _holds_stack(insn, state))
            for register in insn.writes:
                state.registers[register] = None
            if memory.writeback and memory.base is not None and _on_stack(base):
                state.registers[memory.base] = STACK
            return
        first = at + (memory.displacement if memory.pre_indexed else 0)
        after = entry(SP, at + base_change(insn, memory)) if memory.writeback else base
        loaded = [
            (register, state.words.get(first + 4 * i) if memory.size == 4 else None)
            for i, register in enumerate(insn.transfers)
        ]
        if stores:
            self._escape(state, given=_holds_stack(insn, state))
            self._note_store(memory, base)
            _store(insn, memory, first, state)
        for register in insn.writes:
            state.registers[register] = None
        assert memory.base is not None
        state.registers[memory.base] = after
        if memory.access is AccessKind.LOAD:
            for i, (register, value) in enumerate(loaded):
                state.registers[register] = value
                if value == entry(LR if register == PC else register):
                    self._restored.add(first + 4 * i)

    def _escape(self, state: _State, *, given: bool) -> None:
        """Note whether a stack address was ``given`` away."""
        state.escaped |= given
        self._lends |= given

    def _note_load(self, memory: MemoryAccess, base: Value) -> None:
        """Record how far above sp at entry a load reaches; ``base``: the value of its base."""
        at = _distance(base)
        if at is not None and memory.index is None:
            first = at + (memory.displacement if memory.pre_indexed else 0)
            self._above = max(self._above, first + memory.size * memory.count)
        elif _on_stack(base):
            self._above = ANY_ARGUMENTS.stack
        else:
            self._loads_anywhere = True

    def _note_store(self, memory: MemoryAccess, base: Value) -> None:
        """Record a store for the contract; ``base`` is the value of the base register."""
        place = _place(base)
        if place is None or memory.index is not None:
            self._elsewhere = True
            return
        first = memory.displacement if memory.pre_indexed else 0
        self._stores.add(ByteSpan(SP, first, first + memory.size * memory.count).moved(*place))


def _holds_stack(insn: Insn, state: _State) -> bool:
    """Whether a register that ``insn`` stores holds a stack address."""
    return any(_on_stack(state.registers[register]) for register in insn.transfers)


def _preserves_mode(insn: Insn, registers: list[Value]) -> bool:
    """Whether ``insn`` only masks interrupts, or writes a word of this mode."""
    fields = status_written(insn)
    if StatusField.CONTROL in fields:
        return [registers[r] for r in insn.sources] == [STATUS]
    change = state_change(insn)
    masks = change is not None and change.enables is not None and change.mode is None
    return masks or bool(fields)


def _computed(insn: Insn, registers: list[Value]) -> Value:
    """The result of an instruction that does not access memory."""
    if insn.operation is Operation.READ_STATUS:
        return STATUS if reads_current_status(insn) else None
    if len(insn.sources) == 1 and insn.shift is ShiftKind.NONE:
        value = registers[insn.sources[0]]
        if insn.operation is Operation.MOVE:
            return value
        if insn.operation in MASKS and value == STATUS:
            constant = immediate_operand(insn)
            return None if constant is None or constant & MODE_BITS else STATUS
        place, added = _place(value), added_constant(insn)
        if place is not None and added is not None:
            return entry(place[0], place[1] + added)
    return STACK if any(_on_stack(registers[r]) for r in insn.reads) else None


def _store(insn: Insn, memory: MemoryAccess, first: int, state: _State) -> None:
    size = memory.size * memory.count
    _overwrite(state.words, first, first + size)
    if memory.size == 4 and len(insn.transfers) == memory.count and first % 4 == 0:
        for i, register in enumerate(insn.transfers):
            value = state.registers[register]
            if value is not None:
                state.words[first + 4 * i] = value


def _overwrite(words: dict[int, Value], low: int, high: int) -> None:
    """Forget the words that overlap the bytes from ``low`` to before ``high``."""
    for at in [at for at in words if low - 4 < at < high]:
        del words[at]
