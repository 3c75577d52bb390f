"""The effect of an instruction on words that may be unknown.

Each instruction is compiled once, from its ops to a Python function over the registers, as numbered
in ``quoll.semantics.ops``. The instructions of a block that is executed often are compiled
together, for the case that all registers which they use are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from cache.executed.access_trace import AccessTrace, TracedCode, TransferRow, concerns_data
from loopbounds.budgets import table
from loopbounds.execution.branch_relation import BranchRelation, LoadedWord
from loopbounds.execution.memory import ConcreteMemory
from loopbounds.execution.value import (
    ABSORBED,
    WORD,
    ConcreteValue,
    StackAddress,
    Undecided,
    joined,
    mixed,
)
from loopbounds.execution.word_range import BOUNDING, WordRange, narrow
from quoll.arm.insn import PC, SP, Insn
from quoll.assumptions import S5, Assumption
from quoll.cfg.cfg import Block
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.lift import identity, lift
from quoll.semantics.operations import NAMESPACE, expression
from quoll.semantics.ops import UNKNOWN_CODES, Op, OpCode, Space, Var

__all__ = ["NEXT", "NOWHERE", "CompiledInsn", "ConcreteMachine", "longest_execution"]

REGISTERS = 25
NEXT, NOWHERE = -1, -2  # in place of an address: the next instruction; an unknown address
UNKNOWN = -3  # in place of an address: nothing was executed, because a register is not known
BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)
TRANSFERS = (OpCode.LOAD, OpCode.STORE)
ACTS = (OpCode.STORE, OpCode.DISCARD, OpCode.RETRANSLATE, OpCode.GOTO, OpCode.TRAP)

Effect = Callable[[list[ConcreteValue], ConcreteMemory], int]


@dataclass(frozen=True, slots=True)
class CompiledInsn:
    """An instruction, ready to be executed. ``outputs``: None if it acts beyond registers.

    ``transfers``: its accesses to memory; if it is not ``fixed``, a condition may decide them.
    """

    effect: Effect
    outputs: tuple[int, ...] | None
    ops: tuple[Op, ...]
    conditional: bool = False
    transfers: int = 0
    fixed: bool = True

    @staticmethod
    def of(insn: Insn) -> CompiledInsn:
        """The compiled ``insn``. Raises ControlFlowError if it has no semantics."""
        ops = lift(insn)
        acts = any(op.code in ACTS for op in ops)
        written = {op.out.offset for op in ops if op.out and op.out.space is Space.REG}
        outputs = None if acts else tuple(sorted(written))
        conditional = any(op.code is OpCode.CBRANCH for op in ops)
        transfers = sum(op.code in TRANSFERS for op in ops)
        fixed = all(op.code not in BRANCHES for op in ops)
        effect = _compiled(_source(ops))
        return CompiledInsn(effect, outputs, ops, conditional, transfers, fixed)

    @property
    def all_or_none(self) -> bool:
        """Whether one condition decides about all of its accesses to memory."""
        branches = [at for at, op in enumerate(self.ops) if op.code in BRANCHES]
        transfers = [at for at, op in enumerate(self.ops) if op.code in TRANSFERS]
        return (
            len(branches) == 1
            and self.ops[branches[0]].ins[0].offset == len(self.ops)
            and (branches < transfers[:1])
        )

    def execute(self, registers: list[ConcreteValue], memory: ConcreteMemory) -> int:
        """The address of the next instruction, ``NEXT`` or ``NOWHERE``.

        If an unknown condition decides, its outputs become unknown. Raises Undecided if the
        instruction may then do more than write registers, and as ``ConcreteMemory.store``.
        """
        try:
            return self.effect(registers, memory)
        except Undecided:
            if self.outputs is None:
                raise
            if self.transfers != 0:
                memory.doubt()
            for register in self.outputs:
                registers[register] = None
            return NEXT


@dataclass(frozen=True, slots=True)
class CompiledRun:
    """Successive instructions; ``effect`` executes them if it knows their registers."""

    effect: Effect
    insns: tuple[CompiledInsn, ...]

    @staticmethod
    def of(insns: Sequence[CompiledInsn]) -> CompiledRun | None:
        """The run of ``insns``; None if they cannot be compiled together."""
        source = _KnownWriter().source(insn.ops for insn in insns)
        return None if source is None else CompiledRun(_compiled(source), tuple(insns))

    def execute(self, registers: list[ConcreteValue], memory: ConcreteMemory) -> int:
        """As for an instruction."""
        target = self.effect(registers, memory)
        if target == UNKNOWN:
            target = NEXT
            for insn in self.insns:
                target = insn.execute(registers, memory)
                if target != NEXT:
                    break
        return target


class AssumedCondition:
    """The result of an unknown condition; ``asked``: how often an instruction has tested one."""

    def __init__(self, *, holds: bool) -> None:
        self._holds, self.asked = holds, 0

    def __call__(self, condition: ConcreteValue) -> int:
        if isinstance(condition, int):
            return condition
        self.asked += 1
        return self._holds


class BothWays:
    """An instruction, ready to be executed with either result of one unknown condition."""

    def __init__(self, insn: CompiledInsn) -> None:
        source = _source(insn.ops)
        self._conditions = AssumedCondition(holds=True), AssumedCondition(holds=False)
        self._effects = [_compiled(source, condition) for condition in self._conditions]

    def execute(
        self, way: int, registers: list[ConcreteValue], memory: ConcreteMemory
    ) -> tuple[int, bool]:
        """The next address as for an instruction, and whether a condition was unknown.

        ``way``: 0 if it holds, 1 if not. Raises Undecided for two unknown conditions.
        """
        condition = self._conditions[way]
        condition.asked = 0
        target = self._effects[way](registers, memory)
        if condition.asked > 1:
            raise Undecided("two conditions are not known")
        return target, condition.asked == 1


def _runs(insns: Sequence[CompiledInsn]) -> Iterator[CompiledInsn | CompiledRun]:
    """The instructions in runs: all of them, or halves, or halves of these."""
    pending = [insns]
    while pending:
        part = pending.pop()
        run, middle = CompiledRun.of(part), len(part) // 2
        if run is not None:
            yield run
        elif not middle:
            yield from part
        else:
            pending += [part[middle:], part[:middle]]


class ConcreteMachine:
    """The state of an execution that starts at an entry of ``image`` with these general registers.

    None: any word. ``executed``: instructions so far. ``forgets``: a store of unknown address makes
    memory unknown.
    """

    def __init__(
        self,
        image: Image,
        registers: Sequence[int | None] = (None,) * PC,
        *,
        forgets: bool = False,
    ) -> None:
        self.executed = 0
        self._memory = ConcreteMemory(image, forgets=forgets)
        self._registers: list[ConcreteValue] = [*registers, *[None] * (REGISTERS - len(registers))]
        self._place_unknown = self._registers[SP] is None
        if self._place_unknown:
            self._registers[SP] = StackAddress(0)
        self._steps: dict[Hashable, CompiledInsn] = {}
        self._of_block: dict[int, tuple[CompiledInsn | CompiledRun, ...]] = {}  # by identity
        self._executed: Counter[int] = Counter()  # blocks by identity, as long as they are rare
        self._single: dict[int, tuple[CompiledInsn, ...]] = {}  # by identity of the block
        self._both_ways: dict[tuple[Op, ...], BothWays] = {}
        self._rows: dict[int, tuple[TransferRow, ...] | None] = {}  # by identity of the block
        self.trace: AccessTrace | None = None

    def follow_cache(self, code: TracedCode | None) -> None:
        """Follow the data cache from here on, by ``execute_at`` or ``note``; None: do not."""
        self.trace = None if code is None else code.begin()
        self._memory.touched = None if code is None else []

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """The assumptions so far."""
        about_stack = {S5.of()} if self._place_unknown else set[Assumption]()
        return tuple(sorted(self._memory.assumed | about_stack))

    def word(self, address: int, size: int) -> int | None:
        """The bytes of memory there; None: not known."""
        found = self._memory.load(address, size)
        return found if isinstance(found, int) else None

    def put(self, address: int, size: int, word: int) -> None:
        """Change a word of memory. Raises Undecided as ``ConcreteMemory.store``."""
        self._memory.store(address, size, word)

    def agrees(self, known: Iterable[tuple[int, ValueSet]]) -> bool:
        """Whether each of these registers holds one of its values, or is not known."""
        held = self._registers
        return all(
            not isinstance(word := held[register], int) or word in values
            for register, values in known
        )

    def fork(self) -> ConcreteMachine:
        """The same state, of another execution."""
        other = object.__new__(ConcreteMachine)
        other.__dict__.update(self.__dict__)
        other._registers, other._memory = self._registers[:], self._memory.fork()
        other.trace = None if self.trace is None else self.trace.fork()
        return other

    def in_state_of(self, other: ConcreteMachine) -> bool:
        """Whether another execution knows the same of registers and memory."""
        return self._registers == other._registers and self._memory.has_words_of(other._memory)

    def join(self, other: ConcreteMachine) -> None:
        """Know only the words and ranges that are known in both."""
        pairs = zip(self._registers, other._registers, strict=True)
        self._registers = [a if a is b else joined(a, b) for a, b in pairs]
        self._memory.join(other._memory)
        if self.trace is not None and other.trace is not None:
            self.trace.join(other.trace)

    def known(self, registers: frozenset[int]) -> tuple[ConcreteValue, ...]:
        """The words of some registers, without ranges; the others are forgotten."""
        words = [w if i in registers else None for i, w in enumerate(self._registers)]
        self._registers = words
        return tuple([None if type(w) is WordRange else w for w in words])

    def limit(self, limits: Iterable[tuple[int, ConcreteValue]]) -> None:
        """Let registers that are not known hold these words, or words of these ranges."""
        for register, limit in limits:
            held = self._registers[register]
            if isinstance(held, WordRange) and isinstance(limit, WordRange):
                self._registers[register] = held.within(limit)
            elif isinstance(held, WordRange) or (held is None and narrow(limit)):
                self._registers[register] = limit

    def branched(self, relation: BranchRelation, *, taken: bool) -> bool:
        """Limit words by the branch that was taken or not; False if it cannot be so."""
        changes = relation.limited(self._registers, taken=taken)
        for register, word in (changes or {}).items():
            if self._registers[register] is not None or narrow(word):
                self._registers[register] = word
                if register in relation.loaded:
                    self._memory.limit(self._address(relation.loaded[register]), word)
        return changes is not None

    def _address(self, place: LoadedWord) -> ConcreteValue:
        base = 0 if place.base is None else self._registers[place.base]
        if isinstance(base, StackAddress):
            return base.moved(place.offset)
        return base + place.offset & WORD if isinstance(base, int) else None

    def steps(self, block: Block) -> tuple[CompiledInsn, ...]:
        """The compiled instructions of a block, for ``ways``."""
        found = self._single.get(id(block))
        if found is None:
            found = self._single[id(block)] = tuple(map(self._step, block.insns))
        return found

    def decided(self, node: int, steps: Sequence[CompiledInsn]) -> tuple[int, int]:
        """Execute the first instructions of a node, up to one with an undecided effect.

        Returns how many, and the next address or ``NEXT``.
        """
        for done, step in enumerate(steps):
            if step.outputs is not None:
                self._compute(step)
                self.note(node, done, step)
                continue
            before = self._registers[:]
            try:
                target = step.effect(self._registers, self._memory)
            except Undecided:
                self._registers = before
                return done, NEXT
            if self.trace is not None:
                self.note(node, done, step)
            if target != NEXT:
                return done + 1, target
        return len(steps), NEXT

    def _compute(self, step: CompiledInsn) -> None:
        """Execute an instruction that only writes registers; joined if a condition is unknown."""
        before = self._registers[:] if step.conditional else self._registers
        try:
            step.effect(self._registers, self._memory)
            return
        except Undecided:
            self._registers = before
        self._memory.doubt()
        ways = before, before[:]
        try:
            for way, registers in enumerate(ways):
                self._with_both_ways(step).execute(way, registers, self._memory)
        except Undecided:
            for register in step.outputs or ():
                before[register] = None
        else:
            self._registers = [a if a is b else joined(a, b) for a, b in zip(*ways, strict=True)]

    def ways(
        self, step: CompiledInsn, reach: Callable[[], tuple[int, int] | None]
    ) -> list[tuple[int, ConcreteMachine]]:
        """The possible states after an instruction, each with the address of the next or ``NEXT``.

        ``reach``: the range of its first byte in memory; None: unknown. Raises Undecided as
        ``execute``, but not if one condition is unknown, or the address of a store in reach.
        """
        if step.outputs is not None:
            self._compute(step)
            return [(NEXT, self)]
        before = self._registers[:]
        try:
            return [(step.effect(self._registers, self._memory), self)]
        except Undecided:
            self._registers = before
        both, other = self._with_both_ways(step), self.fork()
        self._memory.doubt()
        other._memory.doubt()
        self._memory.reach = other._memory.reach = reach()
        target, unknown = both.execute(0, self._registers, self._memory)
        found = [(target, self)]
        if unknown:
            found.append((both.execute(1, other._registers, other._memory)[0], other))
        self._memory.reach = other._memory.reach = None
        if [to for to, _ in found] == [NEXT, NEXT]:
            self.join(other)
            del found[1:]
        return found

    def _with_both_ways(self, step: CompiledInsn) -> BothWays:
        if step.ops not in self._both_ways:
            self._both_ways[step.ops] = BothWays(step)
        return self._both_ways[step.ops]

    def execute(self, block: Block) -> int:
        """The address of the next block, or ``NOWHERE``.

        Raises Undecided if an unknown word decides the address or the effect, and after too many
        instructions; ControlFlowError for an instruction without semantics.
        """
        self.executed += len(block.insns)
        if self.executed > table.EXECUTED_INSTRUCTIONS:
            raise Undecided(f"it is longer than {table.EXECUTED_INSTRUCTIONS:,} instructions")
        steps = self._of_block.get(id(block)) or self._compiled_block(block)
        target = NEXT
        for step in steps:
            target = step.execute(self._registers, self._memory)
        return block.end if target == NEXT else target

    def execute_at(self, node: int, block: Block) -> int:
        """As ``execute``, of the block of a node, following the data cache."""
        touched, rows = self._memory.touched, self._rows_of(block)
        if rows is not None and self.trace is not None and touched is not None:
            target = self.execute(block)
            self.trace.execute_block(node, rows, touched)
            touched.clear()
            return target
        self.executed += len(block.insns)
        target = NEXT
        for index, step in enumerate(self.steps(block)):
            target = step.execute(self._registers, self._memory)
            self.note(node, index, step)
        return block.end if target == NEXT else target

    def note(self, node: int, index: int, step: CompiledInsn) -> None:
        """Let the data cache see an instruction of a node, which has been executed."""
        touched = self._memory.touched
        if self.trace is not None and touched is not None:
            self.trace.execute(node, index, touched, transfers=step.transfers != 0)
            touched.clear()

    def _rows_of(self, block: Block) -> tuple[TransferRow, ...] | None:
        """The accesses of a block, if their number tells which are executed."""
        if id(block) not in self._rows:
            steps = list(enumerate(zip(block.insns, self.steps(block), strict=True)))
            known = all(
                step.transfers and (step.fixed or step.all_or_none)
                if concerns_data(insn)
                else not step.transfers
                for _, (insn, step) in steps
            )
            rows = tuple(
                TransferRow.of(index, insn, step.transfers, conditional=not step.fixed)
                for index, (insn, step) in steps
                if step.transfers
            )
            known = known and sum(row.conditional for row in rows) <= 1
            self._rows[id(block)] = rows if known else None
        return self._rows[id(block)]

    def _compiled_block(self, block: Block) -> tuple[CompiledInsn | CompiledRun, ...]:
        insns = tuple(map(self._step, block.insns))
        self._executed[id(block)] += 1
        if self._executed[id(block)] < table.EXECUTED_OFTEN:
            return insns
        self._of_block[id(block)] = steps = tuple(_runs(insns))
        return steps

    def _step(self, insn: Insn) -> CompiledInsn:
        key = identity(insn)
        if key not in self._steps:
            self._steps[key] = CompiledInsn.of(insn)
        return self._steps[key]


def longest_execution(image: Image) -> int:
    """The instructions after which an execution of ``image`` is given up."""
    return table.EXECUTED_INSTRUCTIONS if image.as_loaded else table.ATTEMPTED_INSTRUCTIONS


def _trap() -> None:
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


def _compiled(source: list[str], test: Callable[[ConcreteValue], int] = _test) -> Effect:
    names: dict[str, object] = {
        **NAMESPACE, "trap": _trap, "test": test, "to": _to, "mixed": mixed, "OpCode": OpCode,
    }  # fmt: skip
    exec("\n".join(source), names)
    return cast("Effect", names["effect"])


def _source(ops: tuple[Op, ...]) -> list[str]:
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


class _KnownWriter:
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
