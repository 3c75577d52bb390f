"""The effect of an instruction on words that may be unknown.

Each instruction is compiled once, from its ops to a Python function over the registers, as numbered
in ``quoll.semantics.ops``. The instructions of a block that is executed often are compiled
together: for the case that all registers which they use are known, or up to the first instruction
that an unknown word decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cache.executed.access_trace import AccessTrace, TracedCode, TransferRow, concerns_data
from loopbounds.budgets import table
from loopbounds.execution.branch_relation import (
    ONE_FLAG,
    BranchRelation,
    LoadedWord,
    decided_condition,
    parting_places,
)
from loopbounds.execution.generated_code import (
    BRANCHES,
    NEXT,
    STOPPED,
    UNKNOWN,
    BlockWriter,
    Effect,
    KnownRunWriter,
    compiled,
    insn_source,
)
from loopbounds.execution.memory import Bytes, ConcreteMemory, RecordedWord
from loopbounds.execution.value import WORD, ConcreteValue, StackAddress, Undecided, joined
from loopbounds.execution.word_range import WordRange, narrow
from quoll.arm.insn import PC, SP, Condition, Insn
from quoll.assumptions import S5, Assumption
from quoll.cfg.cfg import Block
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.lift import identity, lift
from quoll.semantics.ops import FLAGS, Op, OpCode, Space, Var

__all__ = [
    "REGISTERS",
    "CompiledInsn",
    "CompiledRun",
    "ConcreteMachine",
    "StateWords",
    "longest_execution",
]

REGISTERS = 25
TRANSFERS = (OpCode.LOAD, OpCode.STORE)
StateWords = tuple[ConcreteValue | Bytes, ...]
ACTS = (OpCode.STORE, OpCode.DISCARD, OpCode.RETRANSLATE, OpCode.GOTO, OpCode.TRAP)


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
    condition: Condition = Condition.AL
    sets_flags: bool = False  # it may
    branches: int = 0  # of its ops

    @staticmethod
    def of(insn: Insn) -> CompiledInsn:
        """The compiled ``insn``. Raises ControlFlowError if it has no semantics."""
        ops = lift(insn)
        acts = any(op.code in ACTS for op in ops)
        written = {op.out.offset for op in ops if op.out and op.out.space is Space.REG}
        outputs = None if acts else tuple(sorted(written))
        conditional = any(op.code is OpCode.CBRANCH for op in ops)
        transfers = sum(op.code in TRANSFERS for op in ops)
        branches = sum(op.code in BRANCHES for op in ops)
        effect = compiled(insn_source(ops))
        flags = any(op.out in FLAGS for op in ops)
        return CompiledInsn(
            effect, outputs, ops, conditional, transfers, not branches, insn.cond, flags, branches
        )

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
        source = KnownRunWriter().source(insn.ops for insn in insns)
        return None if source is None else CompiledRun(compiled(source), tuple(insns))

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
        source = insn_source(insn.ops)
        self._conditions = AssumedCondition(holds=True), AssumedCondition(holds=False)
        self._effects = [compiled(source, condition) for condition in self._conditions]

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
        self._parting: dict[int, frozenset[int]] = {}  # by identity of the block
        self._both_ways: dict[tuple[Op, ...], BothWays] = {}
        self._blocks: dict[int, tuple[Effect | None, tuple[TransferRow, ...] | None]] = {}
        self._rows: dict[int, tuple[TransferRow, ...] | None] = {}  # by identity of the block
        self._condition: Condition | None = None  # holds until flags are set, in a block
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

    def content(self, location: Var | RecordedWord) -> ConcreteValue:
        """The word of a register, or of memory."""
        if isinstance(location, Var):
            return self._registers[location.offset]
        return self._memory.content(location)

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
        self._condition = None
        if self.trace is not None and other.trace is not None:
            self.trace.join(other.trace)

    def known(self, registers: frozenset[int], cells: Sequence[RecordedWord]) -> StateWords:
        """The words of some registers and of memory, without ranges.

        Other registers are forgotten.
        """
        words = [w if i in registers else None for i, w in enumerate(self._registers)]
        self._registers = words
        found = [None if type(w) is WordRange else w for w in words]
        return (*found, *self._memory.known(cells)) if cells else tuple(found)

    def limit(self, limits: Iterable[tuple[int, ConcreteValue]]) -> None:
        """Let registers that are not known hold these words, or words of these ranges."""
        for register, limit in limits:
            held = self._registers[register]
            if type(held) is int:
                continue
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

    def decided(self, node: int, block: Block) -> tuple[int, int]:
        """Execute the first instructions of a node, up to one with an undecided effect.

        Returns how many, and the next address or ``NEXT``.
        """
        self._condition = None
        done, target = self._decided_together(node, block)
        if target != NEXT or done == len(block.insns):
            return done, target
        steps = self.steps(block)
        for index in range(done, len(steps)):
            step = steps[index]
            if step.outputs is not None:
                if self.parts_at(block, index) or self.is_undecided(step):
                    return index, NEXT
                self._compute(step)
                self.note(node, index, step)
                continue
            before = self._registers[:]
            try:
                target = step.effect(self._registers, self._memory)
            except Undecided:
                self._registers = before
                return index, NEXT
            if self.trace is not None:
                self.note(node, index, step)
            if target != NEXT:
                return index + 1, target
        return len(steps), NEXT

    def parts_at(self, block: Block, index: int) -> bool:
        """Whether executions part before an instruction that an unknown flag decides."""
        if id(block) not in self._parting:
            self._parting[id(block)] = parting_places(block.insns)
        if index not in self._parting[id(block)]:
            return False
        flag = ONE_FLAG[block.insns[index].cond >> 1]
        return not isinstance(self._registers[flag.offset], int)

    def is_undecided(self, step: CompiledInsn) -> bool:
        """Whether flags that are not known decide whether an instruction acts."""
        if step.condition is Condition.AL or self._is_assumed(step):
            return False
        return decided_condition(step.condition, self._registers) is None

    def assume(self, condition: Condition, *, holds: bool) -> None:
        """Let a condition hold or not, until flags are set or the block ends."""
        if condition >> 1 in ONE_FLAG:
            flag = ONE_FLAG[condition >> 1].offset
            self._registers[flag] = int(holds is not bool(condition & 1))
        else:
            self._condition = condition if holds else Condition(condition ^ 1)

    def _is_assumed(self, step: CompiledInsn) -> bool:
        """Whether an assumed condition decides all branches of an instruction.

        An exclusive store has one more, on which an unknown word decides.
        """
        assumed = self._condition
        return assumed is not None and step.branches == 1 and step.condition >> 1 == assumed >> 1

    def parts_from(self, other: ConcreteMachine, registers: frozenset[int]) -> bool:
        """Whether some register has one number here and another one there."""
        pairs = ((self._registers[r], other._registers[r]) for r in registers)
        return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)

    def _decided_together(self, node: int, block: Block) -> tuple[int, int]:
        """As ``decided``, up to an instruction that an unknown word decides; compiled."""
        effect, rows = self._block_effect(block)
        trace, touched = self.trace, self._memory.touched
        if effect is None or (trace is not None and rows is None):
            return 0, NEXT
        target, done = effect(self._registers, self._memory), len(block.insns)
        if target <= STOPPED:
            done, target = STOPPED - target, NEXT
            rows = rows and tuple(row for row in rows if row.insn < done)
        if trace is not None and rows is not None and touched is not None:
            trace.execute_block(node, rows, touched)
            touched.clear()
        return done, target

    def _block_effect(self, block: Block) -> tuple[Effect | None, tuple[TransferRow, ...] | None]:
        """The compiled block, with its accesses; None as long as it is rare, or if it cannot be."""
        key = id(block)
        if key not in self._blocks:
            self._executed[key] += 1
            if self._executed[key] < table.EXECUTED_OFTEN:
                return None, None
            source = BlockWriter().source(step.ops for step in self.steps(block))
            effect = None if source is None else compiled(source)
            self._blocks[key] = effect, self._rows_of(block)
        return self._blocks[key]

    def _compute(self, step: CompiledInsn) -> None:
        """Execute an instruction that only writes registers; joined if a condition is unknown."""
        before = self._registers[:] if step.conditional else self._registers
        try:
            step.effect(self._registers, self._memory)
            return
        except Undecided:
            self._registers = before
        self._memory.part()
        ways = before, before[:]
        try:
            for way, registers in enumerate(ways):
                self._with_both_ways(step).execute(way, registers, self._memory)
        except Undecided:
            self._memory.doubt()
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
        if self._is_assumed(step):
            way = int(step.condition is self._condition)  # a branch skips it if it does not hold
            target, _ = self._with_both_ways(step).execute(way, self._registers, self._memory)
            self._condition = None if step.sets_flags else self._condition
            return [(target, self)]
        self._condition = None if step.sets_flags else self._condition
        if step.outputs is not None:
            self._compute(step)
            return [(NEXT, self)]
        before = self._registers[:]
        try:
            return [(step.effect(self._registers, self._memory), self)]
        except Undecided:
            self._registers = before
        both, other = self._with_both_ways(step), self.fork()
        self._memory.part()
        other._memory.part()
        self._memory.reach = other._memory.reach = reach()
        target, unknown = both.execute(0, self._registers, self._memory)
        found = [(target, self)]
        if unknown:
            found.append((both.execute(1, other._registers, other._memory)[0], other))
        self._memory.reach = other._memory.reach = None
        if [to for to, _ in found] == [NEXT, NEXT]:
            self._memory.note_transfers_of(other._memory)
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
