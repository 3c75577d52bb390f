"""Basic blocks compiled for abstract interpretation, once per block.

A block becomes a list of steps: runs of evaluators, and the few points where control inside the
block forks or joins. Consecutive instructions with the same condition fork only once. Dead results
are not computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from quoll.abstract_domain import evaluators as ev
from quoll.abstract_domain import truth_evaluators as truths
from quoll.abstract_domain.abstract_state import FLAG, SLOTS
from quoll.abstract_domain.banked_registers import (
    forget_banks,
    note_restored,
    read_bank,
    read_saved_status,
    read_status,
    save_status,
    set_mask,
    switch_mode,
    write_bank,
    write_mask,
    write_user_bank,
)
from quoll.abstract_domain.cache_registers import read_levels, read_sizes
from quoll.abstract_domain.double_words import DoubleWordRole, aligns_target, find_roles, is_branch
from quoll.abstract_domain.evaluators import restrict, restrict_unknown
from quoll.abstract_domain.live_ops import LiveOps, guard_of, live_ops, rejoins, sets_flags
from quoll.abstract_domain.steps import (
    CompiledBlock,
    ExitStep,
    ForkStep,
    JoinStep,
    Micro,
    Step,
    StraightStep,
    SwitchStep,
    TrapStep,
)
from quoll.arm.cache_registers import CacheRegister, may_select, read_by, selected_by
from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import Condition, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import (
    loaded_user_registers,
    names_banked_register,
    reads_current_status,
    saves_control,
    state_change,
    writes_masks,
    writes_saved_status,
)
from quoll.arm.system_registers import DISCARDED
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.lift import lifted
from quoll.semantics.operations import OPERATIONS
from quoll.semantics.ops import FLAGS, Op, OpCode, Space, Var, const, general

__all__ = ["KnownRegisters", "compile_block"]

# Address of an instruction -> registers and their words; None: the address that it accesses.
KnownRegisters = Mapping[int, tuple[tuple[int | None, ValueSet], ...]]

SP, PC = 13, 15
FIRST_FLAG = 16  # in the numbering of ops
LABELS = 1 << 16  # labels per instruction
CACHED = 1 << 16


def compile_block(
    insns: Sequence[Insn],
    given: KnownRegisters | None = None,
    elsewhere: tuple[int, int] | None = None,
) -> CompiledBlock:
    """The steps of a block; raises ControlFlowError for an instruction without semantics.

    ``given``: possible words of registers at an instruction address. ``elsewhere``: first and last
    byte of the range that accesses of unknown address stay in.
    """
    return _Compiler(given or {}, elsewhere).run(insns)


class _Compiler:
    """Assigns slots to variables, chooses evaluators, and cuts the ops into steps."""

    def __init__(self, given: KnownRegisters, elsewhere: tuple[int, int] | None) -> None:
        self.given, self.elsewhere = given, elsewhere
        self.insn: Insn | None = None
        self.address: ValueSet | None = None  # stated words of the next address
        self.listed = False  # whether the instruction has made an access
        self.slots: dict[object, int] = {}
        self.tail: list[Any] = []
        self.steps: list[Step] = []
        self.micros: list[Micro] = []
        self.site = 0
        self.index = 0  # index of the instruction
        self.copies = 0  # bodies emitted; an instruction may have two
        self.group: tuple[Condition, int] | None = None  # condition and label of an open group
        self.selected: int | None = None  # steps before the write that selected a cache
        # the instruction's variables under the names of its form
        self.names: Mapping[Var, Var] = {}

    def run(self, insns: Sequence[Insn]) -> CompiledBlock:
        found = [lifted(insn) for insn in insns]
        live = live_ops(found)
        before = Condition.AL
        for self.index, insn in enumerate(insns):
            among = False
            if self.group is not None:
                end = self.index + APART
                following = zip(insns[self.index : end], live[self.index : end], strict=True)
                among = rejoins(before, following)
            self.names = found[self.index].names
            self._instruction(insn, live[self.index], among)
            before = before if insn.cond is Condition.AL else insn.cond
        self._close_group()
        self._flush()
        return CompiledBlock(tuple(self.steps), tuple(self.tail))

    def _instruction(self, insn: Insn, live: LiveOps, among: bool) -> None:
        ops = live.ops
        guard = None if insn.cond is Condition.AL else guard_of(ops)
        if self.group is not None and guard is None and among:
            self._body(insn, live, 0)
            self._swap()
            self._body(insn, live, 0)
            return
        if self.group is not None and guard is not None and insn.cond == self.group[0] ^ 1:
            self._swap()
        if guard is None or self.group is None or self.group[0] is not insn.cond:
            self._close_group()
            if guard is not None:
                self._open_group(insn.cond, ops, guard)
        self._body(insn, live, 0 if guard is None else guard + 1)
        if self.group is not None and sets_flags(ops):
            self._close_group()

    def _swap(self) -> None:
        assert self.group is not None
        condition, label = self.group
        self._flush()
        self.steps.append(SwitchStep(label))
        self.group = (Condition(condition ^ 1), label)

    def _open_group(self, condition: Condition, ops: Sequence[Op | None], guard: int) -> None:
        for op in ops[:guard]:
            if op is not None:
                self._op(op)
        branch = ops[guard]
        assert branch is not None
        self._fork(self._label(len(ops)), branch)
        self.group = (condition, self._label(len(ops)))

    def _close_group(self) -> None:
        if self.group is not None:
            self._flush()
            self.steps.append(JoinStep(self.group[1], ()))
            self.group = None

    def _body(self, insn: Insn, live: LiveOps, start: int) -> None:
        """Emit an instruction without its condition, from the op ``start`` on."""
        template = None
        identifies = may_select(insn) or read_by(insn) is not None
        if insn.addr not in self.given and self.elsewhere is None and not identifies:
            template = _template(insn, live, start)
        if template is None:
            self._ops(insn, live.ops, start)
            return
        self.copies += 1
        place = TemplatePosition(self.site, LOCATIONS + len(self.tail), (self.index, self.copies))
        micros, tail = template.at(place, self.names)
        self.site += len(micros)
        self.micros += micros
        self.tail += tail

    def _ops(self, insn: Insn, ops: Sequence[Op | None], start: int) -> None:
        labels = {op.ins[0].offset for op in ops[start:] if op is not None and is_branch(op)}
        pairs = find_roles(ops, start)
        self.insn = insn
        unset: list[int] = []
        self.copies += 1
        given = self.given.get(insn.addr, ())
        for register, known in given:
            if register is not None:
                self._emit(restrict, register, register, register, known)
        self.listed = False
        self.address = next((known for register, known in given if register is None), None)
        switched = False
        user_registers = list(reversed(loaded_user_registers(insn)))
        stores_state = insn.operation is Operation.STORE_RETURN_STATE
        reads_status = reads_current_status(insn) and SP not in insn.writes
        identifying = None if insn.writes & {SP, PC} else read_by(insn)
        if writes_masks(insn):
            self._emit(ev.forget_globals, 0, 0)
        for number in range(start, len(ops) + 1):
            if number in labels:
                self._flush()
                own = self.group is not None and self.group[1] == self._label(number)
                self.steps.append(JoinStep(self._label(number) + LABELS // 2 * own, tuple(unset)))
            op = ops[number] if number < len(ops) else None
            if op is None:
                continue
            if is_branch(op):
                label = self._label(op.ins[0].offset)
                own = self.group is not None and self.group[1] == label
                self._fork(label + LABELS // 2 * own, op)
            elif op.code is OpCode.BANK and op.out is not None and op.out.space is Space.REG:
                if not switched:
                    self._switch(insn, self._slot(op.ins[1]))
                switched = True
            elif reads_status and op.code is OpCode.UNKNOWN and op.out is not None:
                self._emit(read_status, self._slot(op.out), 0)
            elif identifying is not None and op.code is OpCode.UNKNOWN and op.out is not None:
                self._read_of_caches(identifying, op.out)
            elif stores_state and op.code is OpCode.UNKNOWN and op.out == general(SP):
                self._store_return_state(insn, ops, self._slot(op.ins[1]))
            elif number in pairs:
                self._paired(op, pairs[number])
            elif aligns_target(ops, number):
                self._emit(
                    ev.copy_any, self._new((self.index, "unmasked"), None), self._slot(op.ins[0])
                )
                self._op(op)
            else:
                self._op(op)
            if user_registers and op.code is OpCode.LOAD and op.out is not None:
                register = user_registers.pop()
                if register in BANKED_BY_USER:
                    self._emit(write_user_bank, 0, self._slot(op.out), 0, register)
            if op.out is not None and op.out.space is Space.TEMP:
                unset.append(self._slot(op.out))
        if names_banked_register(insn):
            self._emit(forget_banks, 0, 0)
        if may_select(insn):
            self._select_cache(insn)
        if writes_saved_status(insn):
            self._save_status(insn)
        if writes_masks(insn):  # an interrupt handler may run then, and change memory
            self._set_mask(insn)
            self._emit(ev.forget_globals, 0, 0)

    def _set_mask(self, insn: Insn) -> None:
        """Set or clear the interrupt mask: cps (B9.3.2)."""
        change = state_change(insn)
        if change is not None and change.interrupts and change.enables is not None:
            self._emit(set_mask, 0, 0, 0, not change.enables)

    def _select_cache(self, insn: Insn) -> None:
        """Keep the word that selects a cache, where no path skips the write."""
        register, self.selected = selected_by(insn), None
        if register not in (None, PC) and insn.cond is Condition.AL and self.group is None:
            assert register is not None
            self._emit(ev.copy_any, self._new(("selected",), None), register)
            self.selected = len(self.steps)

    def _read_of_caches(self, register: CacheRegister, out: Var) -> None:
        """Load a register that identifies caches; the selected one where control met nothing."""
        there = self._slot(out)
        if register is CacheRegister.LEVELS:
            self._emit(read_levels, there, 0)
        elif self.selected is not None and all(
            type(step) is StraightStep for step in self.steps[self.selected :]
        ):
            self._emit(read_sizes, there, self._new(("selected",), None))
        else:
            self._unknown(out, there)

    def _switch(self, insn: Insn, status: int) -> None:
        """Set the mode from the status word that an exception return restores."""
        returns = insn.flow is ControlFlow.EXCEPTION_RETURN
        if returns and insn.operation is not Operation.RETURN_FROM_EXCEPTION:
            self._emit(read_saved_status, status, 0)
        self._emit(switch_mode, 0, status)
        if insn.operation is not Operation.CHANGE_STATE:
            self._emit(write_mask, 0, status)
        if returns:
            self._emit(note_restored, 0, status)

    def _save_status(self, insn: Insn) -> None:
        """Set the saved status: msr of an SPSR (B9.3.11, B9.3.12)."""
        saved = saves_control(insn)
        if saved is False:
            return
        constant = immediate_operand(insn)
        if insn.sources:
            word = insn.sources[0]
        else:
            word = self._new(("constant", constant), constant)
        known = saved is True and insn.cond is Condition.AL and word != PC
        self._emit(save_status, 0, word, word, known)

    def _store_return_state(self, insn: Insn, ops: Sequence[Op | None], stack: int) -> None:
        """Write back the base of srs: sp of the mode on whose stack it stores (B9.3.16)."""
        assert insn.memory is not None
        modes = [op.ins[1] for op in ops if op is not None and op.code is OpCode.BANK]
        change = 8 if insn.memory.displacement >= 0 else -8
        self._emit(write_bank, 0, stack, self._slot(modes[0]), change)

    def _fork(self, label: int, op: Op) -> None:
        condition = self._slot(op.ins[1]) if op.code is OpCode.CBRANCH else None
        self._flush()
        self.steps.append(ForkStep(label, condition))

    def _label(self, number: int) -> int:
        return self.index * LABELS + number

    def _flush(self) -> None:
        if self.micros:
            self.steps.append(StraightStep(tuple(self.micros)))
            self.micros = []

    def _emit(self, function: ev.Evaluator, out: int, a: int, b: int = 0, *extra: Any) -> None:
        """``extra``, if any, follows the site."""
        self.site += 1
        self.micros.append((function, out, a, b, (self.site, *extra) if extra else self.site))

    def _slot(self, var: Var) -> int:
        var = self.names.get(var, var)
        if var.space is Space.REG:
            if var.offset < FIRST_FLAG:
                return var.offset
            if var.offset < FIRST_FLAG + len(FLAGS):
                return var.offset - FIRST_FLAG + FLAG
            return self._new(("untracked",), None)
        if var.space is Space.CONST:
            return self._new(("constant", var.offset), var.offset)
        return self._new((self.index, var.offset), None)

    def _new(self, key: object, value: Any) -> int:
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = LOCATIONS + len(self.tail)
            self.tail.append(value)
        return slot

    def _op(self, op: Op) -> None:
        """Emit an op without a pair."""
        if op.code is OpCode.GOTO:
            self._flush()
            unmasked = self.slots.get((self.index, "unmasked"))
            target = self._slot(op.ins[0]) if unmasked is None else unmasked
            self.steps.append(ExitStep(target, self._slot(op.ins[1])))
        elif op.code is OpCode.TRAP:
            self._flush()
            self.steps.append(TrapStep())
        elif op.code is OpCode.STORE:
            address, value = op.ins
            places = self._slot(address), self._slot(value)
            self._restrict_address(places[0], value.size)
            self._emit(ev.store, 0, *places, value.size, (self.index, self.copies))
        elif op.code is OpCode.DISCARD:
            place = self._slot(op.ins[0])
            self._emit(ev.discard, 0, place, place, DISCARDED, (self.index, self.copies))
        elif op.code is OpCode.RETRANSLATE:
            self._emit(ev.retranslate, 0, 0)
        elif op.out is not None:
            self._result(op, op.out)
        else:
            raise AssertionError(f"{op} has no abstract meaning")

    def _restrict_address(self, slot: int, size: int) -> None:
        """Apply the facts about an address to the first access of an instruction.

        A list is accessed upwards, so all of it stays in ``elsewhere``, unless it lies below the
        base.
        """
        if self.address is not None:
            self._emit(restrict, slot, slot, slot, self.address)
            self.address = None
        if self.elsewhere is None or self.insn is None or self.insn.memory is None:
            return
        memory, (low, high) = self.insn.memory, self.elsewhere
        if memory.base == PC:
            return
        if memory.displacement >= 0 and not self.listed:
            size = max(size, memory.size * memory.count)
        self.listed = True
        if low + size - 1 <= high:
            known = ValueSet(low, high + 1 - size, 1)
            self._emit(restrict_unknown, slot, slot, slot, known, self.insn.addr)

    def _result(self, op: Op, out: Var) -> None:
        if out.space is Space.REG and out.offset == SP:
            there = self._new((self.index, "sp"), None)
            self._compute(op, out, there)
            self._emit(ev.copy_sp, SP, there)
        elif out.space is Space.REG and out.offset >= FIRST_FLAG + len(FLAGS):
            return
        else:
            self._compute(op, out, self._slot(out))

    def _compute(self, op: Op, out: Var, there: int) -> None:
        """Emit ``op`` into slot ``there``, which holds ``out``."""
        inputs = [self._slot(var) for var in op.ins]
        a = inputs[0] if inputs else 0
        b = inputs[1] if len(inputs) > 1 else a
        bits = 8 * (op.ins[0].size if op.ins else out.size)
        code = op.code
        flag = out.space is Space.REG and out.offset >= FIRST_FLAG
        if code is OpCode.COPY or (code is OpCode.INT_ZEXT and out.size <= 4):
            copy = truths.copy_flag if flag else ev.copy_word if out.size == 4 else ev.copy_any
            self._emit(copy, there, a)
        elif code in truths.BOOLEANS:
            self._emit(truths.BOOLEANS[code], there, a, b)
        elif code in truths.COMPARISONS:
            self._compare(op, there, a, b)
        elif code in (OpCode.INT_CARRY, OpCode.INT_SCARRY, OpCode.INT_SBORROW):
            self._emit(truths.unknown_flag, there, 0)
        elif code is OpCode.LOAD:
            self._restrict_address(a, out.size)
            self._emit(ev.load, there, a, a, out.size, (self.index, self.copies))
        elif code is OpCode.UNKNOWN:
            self._unknown(out, there)
        elif code is OpCode.BANK:
            self._emit(read_bank, there, inputs[1], 0, op.ins[0].offset)
        elif code is OpCode.INT_ZEXT:
            self._emit(ev.widen, there, a)
        elif code is OpCode.INT_SEXT:
            self._emit(ev.sign_extend, there, a, a, bits, 8 * out.size)
        elif code is OpCode.SUBPIECE:
            self._emit(ev.subpiece, there, a, a, 8 * op.ins[1].offset, 8 * out.size)
        elif code is OpCode.PIECE:
            self._emit(ev.piece if out.size == 8 else truths.unknown_flag, there, a, b)
        elif OPERATIONS[code].inputs == 1:
            self._emit(ev.unary, there, a, a, code, bits)
        else:
            self._binary(op, there, a, b, bits)
        if flag and code not in TRUTHS:
            self._emit(truths.copy_flag, there, there)

    def _binary(self, op: Op, there: int, a: int, b: int, bits: int) -> None:
        if bits == 32 and op.code is OpCode.INT_ADD:
            self._emit(ev.add, there, a, b)
        elif bits == 32 and op.code is OpCode.INT_SUB:
            self._emit(ev.subtract, there, a, b, 0)
        elif bits == 32 and op.code is OpCode.INT_AND:
            self._emit(ev.bit_and, there, a, b)
        elif bits == 32 and op.code is OpCode.INT_OR:
            self._emit(ev.bit_or, there, a, b)
        elif bits == 32 and op.code is OpCode.INT_LEFT:
            self._emit(ev.shift_left, there, a, b)
        else:
            self._emit(ev.binary, there, a, b, op.code, bits)

    def _compare(self, op: Op, there: int, a: int, b: int) -> None:
        size = op.ins[0].size
        negated = op.code is OpCode.INT_NOTEQUAL
        if size == 1 and op.code in (OpCode.INT_EQUAL, OpCode.INT_NOTEQUAL):
            self._emit(truths.equal_truths, there, a, b, negated)
        elif size == 4 or (size < 4 and op.code not in SIGNED):
            self._emit(truths.compare, there, a, b, truths.COMPARISONS[op.code])
        else:
            self._emit(truths.unknown_flag, there, 0)

    def _unknown(self, out: Var, there: int) -> None:
        if out.size in (2, 4) or (out.space is Space.TEMP and out.size == 1):
            self._emit(ev.unknown_word, there, 0, 0, 8 * out.size)
        else:
            self._emit(truths.unknown_flag, there, 0)

    def _paired(self, op: Op, role: DoubleWordRole) -> None:
        """Emit a sum or difference, with the flags computed from its operands."""
        if role.kind == "absent" or op.out is None:
            return
        operands = self._new((self.index, "kept", role.sum), None)
        if role.kind == "zero":
            self._emit(truths.difference_is_zero, self._slot(op.out), operands)
            return
        if role.kind == "flag":
            self._pair_flag(op, operands, role)
            return
        a, b = (self._slot(var) for var in op.ins)
        result = self._new((self.index, "result", role.sum), None)
        if op.code is OpCode.INT_SUB:
            self._emit(ev.subtract, result, a, b, operands)
        else:
            self._emit(truths.save_operands, operands, a, b)
            self._emit(ev.add, result, a, b)
        copy = ev.copy_sp if op.out.space is Space.REG and op.out.offset == SP else ev.copy_word
        self._emit(copy, self._slot(op.out), result)
        for flag in role.deferred:
            self._pair_flag(flag, operands, role)

    def _pair_flag(self, op: Op, operands: int, role: DoubleWordRole) -> None:
        assert op.out is not None
        result = self._new((self.index, "result", role.sum), None)
        if op.code is OpCode.INT_CARRY:
            self._emit(truths.carry, self._slot(op.out), operands, result)
        else:
            adds = op.code is OpCode.INT_SCARRY
            self._emit(truths.overflow, self._slot(op.out), operands, result, adds)


SIGNED = frozenset([OpCode.INT_SLESS, OpCode.INT_SLESSEQUAL])
OVERFLOWS = frozenset([OpCode.INT_CARRY, OpCode.INT_SCARRY, OpCode.INT_SBORROW])
TRUTHS = frozenset([OpCode.COPY, *truths.BOOLEANS, *truths.COMPARISONS, *OVERFLOWS])
APART = 4  # unconditional instructions interpreted on both paths of a condition


def _template(insn: Insn, live: LiveOps, start: int) -> CompiledTemplate | None:
    """The compiled form of ``insn`` from the op ``start`` on; None if it forks or exits."""
    if live in _templates:
        return _templates[live]
    if len(_templates) >= CACHED:
        _templates.clear()
    compiler = _Compiler({}, None)
    compiler._ops(insn, live.ops, start)
    found = None if compiler.steps else CompiledTemplate.of(compiler.micros, compiler.tail)
    return _templates.setdefault(live, found)


_templates: dict[LiveOps, CompiledTemplate | None] = {}


BANKED_BY_USER = range(8, 15)
LOCATIONS = SLOTS  # slots of registers and flags; slots of constants and temporaries follow


class _EvaluatorArgument(Enum):
    """The argument of an evaluator besides slots, after the site."""

    NOTHING = "nothing"
    ACCESS = "access"  # the size; the template position adds the key of the access
    SLOT = "slot"
    VALUES = "values"


class TemplatePosition(NamedTuple):
    """The position of a template: the site before it, and the number of its first new slot.

    ``access`` is the key under which its accesses are recorded.
    """

    site: int
    first: int
    access: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """Evaluators of one instruction without a fork; ``tail``: contents of its own slots.

    A template is made once for all instructions of a form, and instantiated at each.
    """

    micros: tuple[tuple[ev.Evaluator, int, int, int, _EvaluatorArgument, Any], ...]
    tail: tuple[Var | None, ...]  # constants; None for temporaries

    @staticmethod
    def of(micros: Sequence[Micro], tail: Sequence[Any]) -> CompiledTemplate:
        """The template of the compiled first instruction of a block."""
        constants = [None if value is None else const(value) for value in tail]
        return CompiledTemplate(
            tuple((*m[:4], *_evaluator_argument(m)) for m in micros), tuple(constants)
        )

    def at(
        self, place: TemplatePosition, names: Mapping[Var, Var]
    ) -> tuple[list[Micro], list[int | None]]:
        """The evaluators at ``place``, and the initial contents of their own slots."""
        slots = list(range(LOCATIONS))
        for name, var in names.items():
            if name.space is Space.REG:
                slots[name.offset] = var.offset
        slots += range(place.first, place.first + len(self.tail))
        site, _, access = place
        micros: list[Micro] = []
        for function, out, a, b, kind, value in self.micros:
            site += 1
            extra: Any = site
            if kind is _EvaluatorArgument.ACCESS:
                extra = site, value, access
            elif kind is _EvaluatorArgument.SLOT:
                extra = site, slots[value]
            elif kind is _EvaluatorArgument.VALUES:
                extra = site, *value
            micros.append((function, slots[out], slots[a], slots[b], extra))
        return micros, [None if v is None else names.get(v, v).offset for v in self.tail]


def _evaluator_argument(micro: Micro) -> tuple[_EvaluatorArgument, Any]:
    function, extra = micro[0], micro[4]
    if type(extra) is int:
        return _EvaluatorArgument.NOTHING, None
    if function in (ev.load, ev.store, ev.discard):
        return _EvaluatorArgument.ACCESS, extra[1]
    if function is ev.subtract and extra[1]:
        return _EvaluatorArgument.SLOT, extra[1]
    return _EvaluatorArgument.VALUES, extra[1:]
