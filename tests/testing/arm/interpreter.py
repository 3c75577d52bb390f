"""The concrete twin: executes ops on words, so that every abstract analysis has an oracle.

Ops of an instruction are compiled once to a Python function over the register list.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from quoll.arm.insn import PC, Insn
from quoll.arm.system_registers import LINE
from quoll.errors import ControlFlowError
from quoll.semantics.lift import identity, lift
from quoll.semantics.operations import NAMESPACE, OPERATIONS, expression
from quoll.semantics.ops import UNKNOWN_CODES, Op, OpCode, Space, Var

__all__ = ["ByteMemory", "ConcreteMachine", "ConcreteMemory", "Oracle", "no_oracle"]

REGISTERS = 25  # as numbered in ``ops``, with the pc at 15
WORD = 0xFFFFFFFF
COMPILED = 1 << 14  # functions

Oracle = Callable[[Op], int]
"""Chooses the result of an UNKNOWN or BANK op; it is cut to the size of the op's output.

Of a DISCARD it chooses each byte of the line. Of RETRANSLATE it gives nothing: who has other memory
behind it may exchange the memory then.
"""

Effect = Callable[[list[int], "ConcreteMemory", Oracle], tuple[int, int] | None]


class ConcreteMemory(Protocol):
    """Little-endian memory; ``addr + size`` may exceed a page, not the address space."""

    def load(self, addr: int, size: int) -> int:
        """The unsigned value of ``size`` bytes at ``addr``."""

    def store(self, addr: int, size: int, value: int) -> None:
        """Replace ``size`` bytes at ``addr``."""


class ByteMemory:
    """Bytes by address; a byte never written has the value that ``background`` gives it."""

    def __init__(
        self, content: dict[int, int] | None = None, background: Callable[[int], int] | None = None
    ) -> None:
        self.content: dict[int, int] = dict(content or {})
        self._background = background or (lambda addr: 0)

    def load(self, addr: int, size: int) -> int:
        """The unsigned value of ``size`` bytes at ``addr``."""
        value = 0
        for place in range(size):
            at = addr + place & WORD
            byte = self.content.get(at)
            value |= (self._background(at) if byte is None else byte) << 8 * place
        return value

    def store(self, addr: int, size: int, value: int) -> None:
        """Replace ``size`` bytes at ``addr``."""
        for place in range(size):
            self.content[addr + place & WORD] = value >> 8 * place & 0xFF


def no_oracle(op: Op) -> int:
    """An oracle for code that must not meet an unknown result."""
    raise ControlFlowError(f"the result of {op} is unknown", hint="give the machine an oracle")


class ConcreteMachine:
    """Registers, instruction set state and memory; ``registers[15]`` is the current address.

    ``registers`` is indexed as ``Var.offset`` of the register space: 0 to 14 general, 16 N, 17 Z,
    18 C, 19 V, 20 Q, 21 to 24 GE.
    """

    def __init__(self, memory: ConcreteMemory | None = None, oracle: Oracle = no_oracle) -> None:
        self.registers = [0] * REGISTERS
        self.thumb = False
        self.memory: ConcreteMemory = memory if memory is not None else ByteMemory()
        self.oracle = oracle
        self._effects: dict[Hashable, Effect] = {}

    def step(self, insn: Insn) -> None:
        """Execute ``insn`` and move the pc.

        Raises ``ControlFlowError`` at a trap, at an unknown result without an oracle, and where
        there are no semantics.
        """
        key = identity(insn)
        effect = self._effects.get(key)
        if effect is None:
            effect = self._effects[key] = _compiled(lift(insn))
        self._run(insn, effect)

    def execute(self, insn: Insn, ops: tuple[Op, ...]) -> None:
        """Execute ``ops`` instead of the ops of ``insn``; errors as for ``step``."""
        self._run(insn, _compiled(ops))

    def _run(self, insn: Insn, effect: Effect) -> None:
        leave = effect(self.registers, self.memory, self.oracle)
        if leave is None:
            self.registers[PC] = insn.next & WORD
            return
        target, thumb = leave
        self.thumb = bool(thumb)
        self.registers[PC] = target & (~1 if thumb else ~3)


def _trap() -> None:
    raise ControlFlowError("an exception is taken", hint="end the execution before it")


def _discard(memory: ConcreteMemory, address: int, oracle: Oracle, op: Op) -> None:
    """Replace the bytes of a line by the oracle's, which are stored or older ones."""
    first = address & -LINE & WORD
    for at in range(first, first + LINE):
        memory.store(at, 1, oracle(op) & 0xFF)


NAMES = {**NAMESPACE, "trap": _trap, "discard": _discard}


@lru_cache(COMPILED)
def _compiled(ops: tuple[Op, ...]) -> Effect:
    """A function with the effect of ``ops``; it returns where a GOTO leads, else None.

    Machines share them: a test starts one for each execution of a program.
    """
    names = dict(NAMES)
    exec("\n".join(_source(ops, names)), names)
    effect: Effect = names["effect"]  # type: ignore[assignment]
    return effect


def _source(ops: tuple[Op, ...], names: dict[str, object]) -> list[str]:
    """Straight-line Python; with labels inside, a loop over the parts between them."""
    head = ["def effect(r, memory, oracle):"]
    labels = sorted({0, len(ops)} | {op.ins[0].offset for op in ops if _branches(op)})
    if labels == [0, len(ops)] or not ops:
        return (
            head + [f"    {line}" for op in ops for line in _lines(op, None, names)] + ["    pass"]
        )
    lines = [*head, "    part = 0", "    while True:"]
    for start, end in pairwise(labels):
        lines.append(f"        if part <= {start}:")
        for number in range(start, end):
            last = len(ops)
            lines += [f"            {line}" for line in _lines(ops[number], last, names)]
        lines.append(f"            part = {end}")
    return [*lines, "        return None"]


def _branches(op: Op) -> bool:
    return op.code in (OpCode.BRANCH, OpCode.CBRANCH)


def _text(var: Var) -> str:
    if var.space is Space.CONST:
        return f"{var.offset:#x}"
    return f"r[{var.offset}]" if var.space is Space.REG else f"t{var.offset}_{var.size}"


def _lines(op: Op, last: int | None, names: dict[str, object]) -> list[str]:
    """Statements for one op; ``last`` is the label of the end, None if it is the only one."""
    ins = [_text(var) for var in op.ins]
    if _branches(op):
        return _branch_lines(op, ins, last)
    if op.code is OpCode.GOTO:
        return [f"return {ins[0]}, {ins[1]}"]
    if op.code is OpCode.TRAP:
        return ["trap()"]
    if op.code is OpCode.STORE:
        return [f"memory.store({ins[0]}, {op.ins[1].size}, {ins[1]})"]
    if op.code is OpCode.DISCARD:
        name = f"op{len(names)}"
        names[name] = op
        return [f"discard(memory, {ins[0]}, oracle, {name})"]
    if op.code is OpCode.RETRANSLATE:
        names["retranslate"] = op
        return ["oracle(retranslate)"]
    if op.out is None:
        raise ValueError(f"{op} has no result")
    out = _text(op.out)
    if op.code is OpCode.LOAD:
        return [f"{out} = memory.load({ins[0]}, {op.out.size})"]
    if op.code in UNKNOWN_CODES:
        name = f"op{len(names)}"
        names[name] = op
        return [f"{out} = oracle({name}) & {(1 << 8 * op.out.size) - 1:#x}"]
    assert op.code in OPERATIONS
    sizes = [var.size for var in op.ins]
    return [f"{out} = {expression(op.code, ins, sizes, op.out.size)}"]


def _branch_lines(op: Op, ins: list[str], last: int | None) -> list[str]:
    target = op.ins[0].offset
    leave = "return None" if last in (None, target) else f"part = {target}; continue"
    if op.code is OpCode.BRANCH:
        return leave.split("; ")
    return [f"if {ins[1]}:"] + [f"    {line}" for line in leave.split("; ")]
