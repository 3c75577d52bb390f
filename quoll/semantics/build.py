"""A builder for ops written by hand: conditions, data accesses, and lists of unknown results."""

from __future__ import annotations

from quoll.arm.addressing import list_change
from quoll.arm.insn import PC, AccessKind, Condition, Insn, MemoryAccess, ShiftKind
from quoll.semantics.ops import FLAGS, C, N, Op, OpCode, Space, V, Var, Z, const, general, temp

__all__ = ["OpsBuilder"]


class OpsBuilder:
    """Appends ops; temporaries are numbered from ``first`` on."""

    def __init__(self, first: int = 0) -> None:
        self.ops: list[Op] = []
        self._count = first

    def fresh(self, size: int = 4) -> Var:
        """A new temporary."""
        self._count += 1
        return temp(self._count - 1, size)

    def emit(self, code: OpCode, out: Var | None, *ins: Var) -> None:
        """Append ``out = code(ins)``."""
        self.ops.append(Op(code, out, ins))

    def value(self, code: OpCode, *ins: Var, size: int = 4) -> Var:
        """Append an op with a new temporary as its result, and return that."""
        out = self.fresh(size)
        self.emit(code, out, *ins)
        return out

    def unknown(self, *outs: Var) -> None:
        """Any value in each of ``outs``."""
        for out in outs:
            self.emit(OpCode.UNKNOWN, out)

    def unknown_flags(self) -> None:
        """Any value in N, Z, C and V."""
        self.unknown(*FLAGS)

    def append(self, ops: list[Op]) -> None:
        """Append ops from elsewhere, with their temporaries and labels renumbered."""
        first, start = self._count, len(self.ops)
        for op in ops:
            for var in (*op.ins, *([op.out] if op.out else [])):
                if var.space is Space.TEMP and var.offset + first >= self._count:
                    self._count = var.offset + first + 1
            self.ops.append(_shifted(op, first, start) if first or start else op)

    def guard(self, cond: Condition) -> int | None:
        """Skip to a label, set later, if ``cond`` (A8.3) fails; returns the op to set it in."""
        if cond is Condition.AL:
            return None
        self.emit(OpCode.CBRANCH, None, const(0), self._failed(cond))
        return len(self.ops) - 1

    def close(self, guard: int | None) -> None:
        """Set the target of ``guard`` to the current end."""
        if guard is not None:
            op = self.ops[guard]
            self.ops[guard] = Op(op.code, None, (const(len(self.ops)), *op.ins[1:]))

    def _failed(self, cond: Condition) -> Var:
        opposite = Condition(cond ^ 1)
        if opposite in _FLAG:
            return _FLAG[opposite]
        if cond in _FLAG:
            return self.value(OpCode.BOOL_NEGATE, _FLAG[cond], size=1)
        if cond in (Condition.HI, Condition.LS):
            clear = self.value(OpCode.BOOL_NEGATE, C, size=1)
            lower = self.value(OpCode.BOOL_OR, clear, Z, size=1)
            return self._unless(cond is Condition.LS, lower)
        less = self.value(OpCode.BOOL_XOR, N, V, size=1)
        if cond in (Condition.GE, Condition.LT):
            return self._unless(cond is Condition.LT, less)
        less = self.value(OpCode.BOOL_OR, less, Z, size=1)
        return self._unless(cond is Condition.LE, less)

    def _unless(self, negate: bool, flag: Var) -> Var:
        return self.value(OpCode.BOOL_NEGATE, flag, size=1) if negate else flag

    def register(self, number: int, insn: Insn) -> Var:
        """A register as an operand; the pc is ahead by two instructions (A2.3)."""
        if number != PC:
            return general(number)
        return const(insn.pc_operand)

    def address(self, insn: Insn, memory: MemoryAccess) -> tuple[Var, Var]:
        """The lowest accessed address, and the value of the base after indexing."""
        if memory.base is None:
            raise ValueError("an access without a base register has no address")
        base = self.value(OpCode.COPY, self.register(memory.base, insn))
        offset = self._offset(insn, memory)
        code = OpCode.INT_SUB if memory.subtract else OpCode.INT_ADD
        moved = self.value(code, base, offset)
        return (moved if memory.pre_indexed else base), moved

    def _offset(self, insn: Insn, memory: MemoryAccess) -> Var:
        if memory.index is None:
            return const(memory.displacement)
        index = self.register(memory.index, insn)
        if memory.shift is ShiftKind.NONE:
            return index
        if memory.lsl:
            return self.value(OpCode.INT_LEFT, index, const(memory.scale_shift))
        return self.value(OpCode.UNKNOWN, index)

    def past_list(self, insn: Insn, memory: MemoryAccess, base: int) -> None:
        """Move the base of a list (ldm, stm, vldm, vstm, rfe) past it, up or down."""
        change = list_change(insn, memory)
        code = OpCode.INT_ADD if change >= 0 else OpCode.INT_SUB
        self.emit(code, general(base), general(base), const(abs(change)))

    def accesses(self, memory: MemoryAccess, lowest: Var) -> list[Var]:
        """Load from, or store unknown values to, all places of ``memory``; returns the loads."""
        loaded = []
        for number in range(memory.count):
            place = self.value(OpCode.INT_ADD, lowest, const(number * memory.size))
            if memory.access is AccessKind.LOAD:
                loaded.append(self.value(OpCode.LOAD, place, size=memory.size))
            elif memory.access is AccessKind.STORE:
                value = self.fresh(memory.size)
                self.unknown(value)
                self.emit(OpCode.STORE, None, place, value)
        return loaded


_FLAG = {Condition.EQ: Z, Condition.CS: C, Condition.MI: N, Condition.VS: V}


def _shifted(op: Op, first: int, start: int) -> Op:
    """``op`` with its temporaries moved by ``first`` and its labels by ``start``."""
    ins = tuple(_renumbered(var, first) for var in op.ins)
    if op.code in (OpCode.BRANCH, OpCode.CBRANCH):
        ins = (const(op.ins[0].offset + start), *ins[1:])
    return Op(op.code, _renumbered(op.out, first) if op.out else None, ins)


def _renumbered(var: Var, first: int) -> Var:
    return temp(var.offset + first, var.size) if var.space is Space.TEMP else var
