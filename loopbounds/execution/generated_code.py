"""Python functions over the registers, generated from the ops of instructions.

Registers are numbered as in ``quoll.semantics.ops``. A function executes one instruction; a run of
instructions whose registers are all known; or a block up to its first undecided instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from itertools import pairwise
from typing import cast

from loopbounds.execution.memory import ConcreteMemory, may_store
from loopbounds.execution.value import ABSORBED, ConcreteValue, Undecided, mixed
from loopbounds.execution.word_range import BOUNDING
from quoll.semantics.operations import NAMESPACE, expression
from quoll.semantics.ops import UNKNOWN_CODES, Op, OpCode, Space, Var

__all__ = [
    "BRANCHES",
    "NEXT",
    "NOWHERE",
    "STOPPED",
    "UNKNOWN",
    "BlockWriter",
    "Effect",
    "KnownRunWriter",
    "compiled",
    "insn_source",
]

NEXT, NOWHERE = -1, -2  # in place of an address: the next instruction; an unknown address
UNKNOWN = -3  # in place of an address: nothing was executed, because a register is not known
STOPPED = -16  # in place of an address: less the number of instructions that were executed
BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)

Effect = Callable[[list[ConcreteValue], ConcreteMemory], int]


def _trap() -> None:
    """The effect of an exception."""
    raise Undecided("an exception is taken")


def _test(condition: ConcreteValue) -> int:
    if isinstance(condition, int):
        return condition
    raise Undecided("a condition is not known")


def _to(target: ConcreteValue, thumb: ConcreteValue) -> int:
    """The address to which a GOTO leads, or ``NOWHERE``."""
    if isinstance(target, int) and isinstance(thumb, int):
        return target & (~1 if thumb else ~3)
    return NOWHERE


def compiled(source: list[str], test: Callable[[ConcreteValue], int] = _test) -> Effect:
    """The function ``effect`` of some source; ``test`` decides conditions of instructions."""
    names: dict[str, object] = {
        **NAMESPACE, "trap": _trap, "test": test, "to": _to, "mixed": mixed, "OpCode": OpCode,
        "may_store": may_store,
    }  # fmt: skip
    exec("\n".join(source), names)
    return cast("Effect", names["effect"])


def insn_source(ops: tuple[Op, ...]) -> list[str]:
    """Straight-line Python; with inner labels, a loop over the statements between them."""
    head, last = "def effect(r, memory):", len(ops)
    labels = sorted({0, last} | {op.ins[0].offset for op in ops if op.code in BRANCHES})
    if labels == [0, last] or not ops:
        lines = [f"    {line}" for op in ops for line in _lines(op, None)]
        return [head, *lines, f"    return {NEXT}"]
    lines = [head, "    part = 0", "    while True:"]
    for start, end in pairwise(labels):
        lines.append(f"        if part <= {start}:")
        lines += [f"            {line}" for op in ops[start:end] for line in _lines(op, last)]
        lines.append(f"            part = {end}")
    return [*lines, f"        return {NEXT}"]


class KnownRunWriter:
    """Python for instructions whose registers are known when they begin: these are local names."""

    def __init__(self) -> None:
        self._body: list[str] = []
        self._read: dict[str, Var] = {}
        self._written: dict[str, Var] = {}
        self._known: set[str] = set()

    def source(self, insns: Iterable[Sequence[Op]]) -> list[str] | None:
        """The function; None if an inner branch skips less than the rest, or may be undecided."""
        if not all(map(self._insn, insns)):
            return None
        loads = [f"{name} = r[{var.offset}]" for name, var in self._read.items()]
        checks = " and ".join(f"type({name}) is int" for name in self._read) or "True"
        body = [*loads, f"if not ({checks}): return {UNKNOWN}", *self._body]
        body += _restores(self._written)
        return ["def effect(r, memory):", *(f"    {line}" for line in body), f"    return {NEXT}"]

    def _insn(self, ops: Sequence[Op]) -> bool:
        branches = [at for at, op in enumerate(ops) if op.code in BRANCHES]
        if not branches:
            self._ops(ops, "")
            return True
        at, branch = branches[0], ops[branches[0]]
        if branches[1:] or branch.code is OpCode.BRANCH or branch.ins[0].offset != len(ops):
            return False
        self._ops(ops[:at], "")
        self._load([branch.ins[1]])
        condition = _local(branch.ins[1])
        if branch.ins[1].space is not Space.CONST and condition not in self._known:
            return False
        self._load([op.out for op in ops[at:] if op.out is not None])
        before = set(self._known)
        self._body.append(f"if not {condition}:")
        self._ops(ops[at + 1 :], "    ")
        self._body.append("    pass")
        self._known &= before
        return True

    def _load(self, words: Iterable[Var]) -> None:
        """Make registers local that are not yet."""
        names = {_local(var): var for var in words if var.space is Space.REG}
        first = {name: var for name, var in names.items() if name not in self._written}
        self._known |= first.keys() - self._read.keys()
        self._read |= first

    def _ops(self, ops: Sequence[Op], indent: str) -> None:
        for op in ops:
            inputs = [var for var in op.ins if var.space is not Space.CONST]
            self._load(inputs)
            lines = _restores(self._written) if op.code in (OpCode.GOTO, OpCode.TRAP) else []
            lines += _lines(op, None, _local, self._known)
            self._body += [f"{indent}{line}" for line in lines]
            if op.out is not None:
                self._write(op, inputs)

    def _write(self, op: Op, inputs: Sequence[Var]) -> None:
        assert op.out is not None
        name = _local(op.out)
        pure = op.code is not OpCode.LOAD and op.code not in UNKNOWN_CODES
        if pure and all(_local(var) in self._known for var in inputs):
            self._known.add(name)
        else:
            self._known.discard(name)
        if op.out.space is Space.REG:
            self._written[name] = op.out


class BlockWriter:
    """Python for a block, which stops before the first instruction with an undecided effect."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._read: dict[str, Var] = {}
        self._written: dict[str, Var] = {}

    def source(self, insns: Iterable[Sequence[Op]]) -> list[str] | None:
        """The function; None if an inner branch skips less than the rest of an instruction.

        It returns ``STOPPED`` less the number of instructions that it has executed, if an unknown
        word decides whether the next one acts, or where it stores first.
        """
        if not all(self._insn(index, ops) for index, ops in enumerate(insns)):
            return None
        loads = [f"{name} = r[{var.offset}]" for name, var in self._read.items()]
        body = [*loads, *self._lines, *_restores(self._written), f"return {NEXT}"]
        return ["def effect(r, memory):", *(f"    {line}" for line in body)]

    def _insn(self, index: int, ops: Sequence[Op]) -> bool:
        """Write an instruction; False if that is not possible."""
        branches = [at for at, op in enumerate(ops) if op.code in BRANCHES]
        conditional = bool(branches)
        if conditional:
            branch = ops[branches[0]]
            ends = branch.code is OpCode.CBRANCH and branch.ins[0].offset == len(ops)
            if branches[1:] or not ends:
                return False
        codes = [op.code for op in ops]
        if OpCode.DISCARD in codes or OpCode.RETRANSLATE in codes:
            return False
        if OpCode.STORE in codes and OpCode.LOAD in codes[: codes.index(OpCode.STORE)]:
            return False
        indent, stores = "", 0
        before: dict[str, str] = {}  # registers that the instruction has written: their old words
        for op in ops:
            self._load(op)
            if op.code is OpCode.CBRANCH:
                condition = _local(op.ins[1])
                self._stop(index, "", f"type({condition}) is not int", before)
                self._lines.append(f"if not {condition}:")
                self._load(*ops[branches[0] + 1 :])
                indent = "    "
                continue
            if op.code is OpCode.STORE:
                if not stores:
                    unsure = f"not may_store({_local(op.ins[0])})"
                    self._stop(index, indent, unsure, before)
                stores += 1
            if op.code in (OpCode.GOTO, OpCode.TRAP):
                self._lines += [f"{indent}{line}" for line in _restores(self._written)]
            elif op.out is not None and op.out.space is Space.REG:
                name = _local(op.out)
                if name not in before:
                    before[name] = f"old{op.out.offset}"
                    self._lines.append(f"{indent}{before[name]} = {name}")
                self._written[name] = op.out
            self._lines += [f"{indent}{line}" for line in _lines(op, None, _local)]
        if conditional:
            self._lines.append("    pass")
        return True

    def _load(self, *ops: Op) -> None:
        """Make the registers of ops local."""
        for op in ops:
            words = op.ins if op.out is None else (*op.ins, op.out)
            self._read |= {_local(var): var for var in words if var.space is Space.REG}

    def _stop(self, index: int, indent: str, unsure: str, before: dict[str, str]) -> None:
        """Stop before an instruction, if it is ``unsure``."""
        self._lines.append(f"{indent}if {unsure}:")
        for name, var in self._written.items():
            self._lines.append(f"{indent}    r[{var.offset}] = {before.get(name, name)}")
        self._lines.append(f"{indent}    return {STOPPED - index}")


def _restores(written: dict[str, Var]) -> list[str]:
    return [f"r[{var.offset}] = {name}" for name, var in written.items()]


def _local(var: Var) -> str:
    """The name of a register as a local variable; of others as ``_text``."""
    return f"r{var.offset}" if var.space is Space.REG else _text(var)


def _text(var: Var) -> str:
    if var.space is Space.CONST:
        return f"{var.offset:#x}"
    return f"r[{var.offset}]" if var.space is Space.REG else f"t{var.offset}_{var.size}"


def _lines(
    op: Op,
    last: int | None,
    name: Callable[[Var], str] = _text,
    known: Set[str] = frozenset(),
) -> list[str]:
    """Statements for one op; ``last``: the label behind the last op, None if there is no other.

    ``name`` names a word, and ``known`` has the names of words that are known numbers.
    """
    ins = [name(var) for var in op.ins]
    match op.code:
        case OpCode.BRANCH | OpCode.CBRANCH:
            target = op.ins[0].offset
            leave = [f"return {NEXT}"]
            if last not in (None, target):
                leave = [f"part = {target}", "continue"]
            if op.code is OpCode.BRANCH:
                return leave
            return [f"if test({ins[1]}):", *(f"    {line}" for line in leave)]
        case OpCode.GOTO:
            return [f"return to({ins[0]}, {ins[1]})"]
        case OpCode.TRAP:
            return ["trap()"]
        case OpCode.STORE:
            return [f"memory.store({ins[0]}, {op.ins[1].size}, {ins[1]})"]
        case OpCode.DISCARD:
            return [f"memory.discard({ins[0]})"]
        case OpCode.RETRANSLATE:
            return ["memory.retranslate()"]
    assert op.out is not None, op
    out = name(op.out)
    if op.code is OpCode.LOAD:
        return [f"{out} = memory.load({ins[0]}, {op.out.size})"]
    if op.code in UNKNOWN_CODES:
        return [f"{out} = None"]
    value = expression(op.code, ins, [var.size for var in op.ins], op.out.size)
    unsure = [
        text
        for text, var in zip(ins, op.ins, strict=True)
        if var.space is not Space.CONST and text not in known
    ]
    if not unsure:
        return [f"{out} = {value}"]
    numbers = " and ".join(f"type({text}) is int" for text in dict.fromkeys(unsure))
    sizes = tuple(var.size for var in op.ins)
    other = f"mixed(OpCode.{op.code.name}, ({', '.join(ins)},), {op.out.size}, {sizes})"
    if op.code not in ABSORBED | BOUNDING | {OpCode.BOOL_OR}:
        unknown = " or ".join(f"{text} is None" for text in dict.fromkeys(unsure))
        other = f"None if {unknown} else {other}"
    return [f"{out} = {value} if {numbers} else {other}"]
