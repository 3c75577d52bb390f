"""Small kernels with an interrupt that arrives before any instruction: the observed latency.

A kernel has a system call, the interrupt path, and a controller: a line that arrives is pending, in
the registers that a test reads, until its number is written to a register. The interpreter executes
one path after the other, like the processor. The execution is replayed on the concrete machine, and
the time from the arrival to the end of the path that acknowledges it is the latency.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from pipeline.block_times import transfers
from pipeline.native import CompiledTrace, Instructions, execute
from quoll.arm.decode import decode
from quoll.arm.insn import LR, PC, Insn
from quoll.image.image import Image
from quoll.inlining.sharing import SummarySettings
from quoll.recordings.follow import MissingEdge, follow
from quoll.recordings.trace import End, Execution
from tests.testing.arm.interpreter import ByteMemory
from tests.testing.arm.interpreter import ConcreteMachine as Interpreter
from tests.testing.quoll.building import build
from tests.testing.values.preemptible import HIGH, LEVELS, LOW
from tests.testing.values.preemptible import program as preemptible
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.path_replay import (
    StartContents,
    executed,
    random_machine,
    taking_the_exception,
)
from wcet.platforms.platform_model import Platform

__all__ = [
    "CODE",
    "FRAME",
    "REGISTERS",
    "Latencies",
    "analysed",
    "interrupt_path",
    "kernel",
    "latencies",
    "random_kernel",
]

VECTOR, ACKNOWLEDGE = 0xF800_0040, 0xF800_0064
NONE = 64  # content of VECTOR if no line is pending
LINES = (3, 37)  # one in each register
USER = 0x1000
STEPS = 100_000
CODE = ("-Wl,-Ttext=0xf0010000", "-Wl,--section-start=.vectors=0xffff0000")

# One instruction per vector. A call that returns 1 is preempted: the handler continues there.
FRAME = """
__asm__(
".section .vectors, \\"ax\\"\\n.arm\\n"
"b .\\n"
".global vector_undefined, vector_svc, vector_prefetch_abort, vector_data_abort, vector_irq\\n"
".global exit_to_user_1, exit_to_user_2, exit_to_user_3\\n"
"vector_undefined: exit_to_user_1: movs pc, lr\\n"
"vector_svc: ldr pc, =entry_svc\\n"
"vector_prefetch_abort: exit_to_user_2: movs pc, lr\\n"
"vector_data_abort: exit_to_user_3: movs pc, lr\\n"
"nop\\n"
"vector_irq: ldr pc, =entry_irq\\n"
".ltorg\\n"
".text\\n"
".global exit_to_user, exit_to_user_4, exit_to_user_5, exit_to_interrupt\\n"
".type entry_svc, %function\\n.type entry_irq, %function\\n"
"entry_svc: ldr sp, =stack_top\\n"
"push {r4-r11, lr}\\n"
"bl main\\n"
"cmp r0, #1\\n"
"beq handed\\n"
"pop {r4-r11, lr}\\n"
"exit_to_user: movs pc, lr\\n"
"handed:\\n"
"exit_to_interrupt: bl handler\\n"
"pop {r4-r11, lr}\\n"
"exit_to_user_4: movs pc, lr\\n"
"entry_irq: sub lr, lr, #4\\n"
"ldr sp, =stack_top\\n"
"push {r0-r12, lr}\\n"
"bl handler\\n"
"pop {r0-r12, lr}\\n"
"exit_to_user_5: movs pc, lr\\n"
".ltorg\\n"
".bss\\n.balign 8\\n.space 2048\\nstack_top:\\n.text\\n");
"""
REGISTERS = f"""
#define VECTOR (*(volatile unsigned *){VECTOR:#x}u)
#define ACKNOWLEDGE (*(volatile unsigned *){ACKNOWLEDGE:#x}u)
"""


def kernel(source: str, optimise: str = "-O2") -> Path:
    """The ELF of a kernel whose ``source`` defines ``main(a, b)`` and ``handler()``."""
    return build(REGISTERS + source + FRAME, "-w", optimise=optimise, link=(*CODE, "-lgcc"))


def random_kernel(seed: int) -> Path:
    """A program of the tests of segments as the system call, and a random handler.

    Every other one has a test by a load of several words, of which the registers are not the first.
    """
    call = preemptible(seed)
    if seed % 2:
        assert ONE_BY_ONE in call
        call = call.replace(ONE_BY_ONE, AT_ONCE)
    return kernel(call + _Handler(seed).source(), LEVELS[seed % len(LEVELS)])


ONE_BY_ONE = "int called(void) { return (HIGH | LOW) != 0; }"
AT_ONCE = """int called(void) {
    register unsigned below __asm__("r1"), low __asm__("r2"), high __asm__("r3");
    __asm__ volatile("ldm %3, {r1, r2, r3}" : "=r"(below), "=r"(low), "=r"(high)
                     : "r"(&LOW - 1));
    return (low | high) != 0;
}"""


class _Handler:
    """Draws an interrupt handler that works and tests before and after it acknowledges."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(f"handler {seed}")
        self.loops = 0

    def source(self) -> str:
        before, between, after = (self.statements() for _ in range(3))
        return (
            "__attribute__((noinline)) void handler(void) {\n    unsigned x = memory[0];\n"
            f"{before}    unsigned line = VECTOR;\n{between}    ACKNOWLEDGE = line;\n{after}"
            "    memory[1] = x;\n}\n"
        )

    def statements(self) -> str:
        return "".join(self.statement() for _ in range(self.draw.randrange(3)))

    def statement(self) -> str:
        test, rounds = (
            self.draw.choice(["both()", "either()", "called()"]),
            self.draw.choice([3, 8, 20]),
        )
        i = f"i{self.loops}"
        self.loops += 1
        return self.draw.choice(
            [
                f"    work({rounds});\n",
                f"    if ({test}) work({rounds});\n",
                f"    for (unsigned {i} = 0; {i} < {rounds}; {i}++) x += memory[{i}];\n",
                f"    for (unsigned {i} = 0; {i} < {rounds}; {i}++) "
                f"{{ work({i}); if ({test}) break; }}\n",
                f"    for (unsigned {i} = 0; {i} < {rounds} && !{test}; {i}++) x ^= memory[{i}];\n",
                f"    for (unsigned {i} = 0; {i} < {rounds} && {test}; {i}++) x += memory[{i}];\n",
            ]
        )


def analysed(
    elf: Path, settings: SummarySettings | None = None, platform: str = "kzm"
) -> AnalysisResult:
    """All entries on the KZM board, with no fact and nothing kept."""
    options = AnalysisOptions(
        entries=("all",),
        platform=platform,
        l2=None,
        facts=(),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(budget=Budget(seconds=4), workers=1),
        summary_settings=settings or SummarySettings(),
    )
    return analyse(elf, options, StageLog(verbose=False))


class _Board:
    """Memory with an interrupt controller; ``touched``: it was accessed since this was cleared."""

    def __init__(self, image: Image, content: dict[int, int]) -> None:
        self.memory = ByteMemory(content, lambda addr: (image.read(addr, 1) or b"\0")[0])
        self.pending: set[int] = set()
        self.acknowledged: set[int] = set()
        self.touched = False
        self.first: int | None = None  # address of the instruction's access

    def load(self, addr: int, size: int) -> int:
        self._note(addr)
        if addr in (LOW, HIGH):
            first = 0 if addr == LOW else 32
            return sum(1 << line - first for line in self.pending if first <= line < first + 32)
        if addr == VECTOR:
            return max(self.pending, default=NONE)
        return self.memory.load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self._note(addr)
        if addr == ACKNOWLEDGE:
            self.acknowledged |= self.pending & {value}
            self.pending.discard(value)
        else:
            self.memory.store(addr, size, value)

    def _note(self, addr: int) -> None:
        self.touched |= addr in (LOW, HIGH, VECTOR, ACKNOWLEDGE)
        self.first = addr if self.first is None else min(addr, self.first)


@dataclass
class _Ran:
    """An execution: one path after the other; positions count the instructions of all paths."""

    pcs: list[int] = field(default_factory=list)
    accesses: dict[int, int] = field(default_factory=dict)
    begins: list[int] = field(default_factory=list)  # positions where an exception was taken
    touched: list[int] = field(default_factory=list)  # positions of accesses to the controller
    handed: int | None = None  # position at which the handler goes on in the call's place


@dataclass(frozen=True)
class Latencies:
    """``most`` cycles seen, of the ``arrivals`` that were tried, on ``paths`` that differ."""

    bound: int
    most: int
    arrivals: int
    paths: int


class _Subject:
    """A kernel, its symbols and its instructions."""

    def __init__(self, image: Image, platform: Platform, random: Random) -> None:
        self.image, self.platform, self.random = image, platform, random
        self.vectors = {name: point.vector for name, point in platform.entries.items()}
        symbols = [s for n in image.symbols.names() if (s := image.symbol(n)) is not None]
        self.ends = {s.addr for s in symbols if s.name.startswith("exit_to_user")}
        (self.handed,) = (s.addr for s in symbols if s.name == "exit_to_interrupt")
        self.known: dict[int, Insn] = {}
        self.interpreter = Interpreter(oracle=lambda op: 0)
        self.instructions: Instructions | None = None
        memory = image.symbol("memory")
        assert memory is not None
        self.content = {memory.addr + i: random.randrange(256) for i in range(256)}
        self.arguments = (random.randrange(32), random.randrange(32))

    def insn(self, pc: int) -> Insn:
        found = self.known.get(pc)
        if found is None:
            code = self.image.read(pc, 4)
            assert code is not None
            found = self.known[pc] = decode(code, pc, False)
        return found

    def run(self, entry: str, before: Sequence[int], arrives: int | None, line: int) -> _Ran | None:
        """The execution from ``entry`` until ``line`` is served; the lines ``before`` are pending.

        ``line`` arrives before the instruction at position ``arrives``, or is one of ``before``.
        None if control is already back in user mode, or if the line is pending already.
        """
        board, ran = _Board(self.image, dict(self.content)), _Ran()
        board.pending.update(before)
        self.interpreter.memory = board
        while True:
            ran.begins.append(len(ran.pcs))
            if not self._path(entry, board, ran, arrives, line):
                return None
            arrived = arrives is None or arrives < len(ran.pcs)
            if arrived and line in board.acknowledged:
                return ran
            if not board.pending:
                return None
            entry = "interrupt"

    def _path(self, entry: str, board: _Board, ran: _Ran, arrives: int | None, line: int) -> bool:
        """Execute one path; False if the line arrives while it is pending."""
        machine = self.interpreter
        machine.registers[:2] = list(self.arguments)
        machine.registers[LR], machine.registers[PC] = USER, self.vectors[entry]
        for _ in range(STEPS):
            at, pc = len(ran.pcs), machine.registers[PC]
            if at == arrives:
                if line in board.pending:
                    return False
                board.pending.add(line)
                board.acknowledged.clear()
            ran.pcs.append(pc)
            if pc in self.ends:
                return True
            if pc == self.handed:
                ran.handed = at + 1
            board.touched, board.first = False, None
            machine.step(self.insn(pc))
            if board.first is not None:
                ran.accesses[at] = board.first
            if board.touched:
                ran.touched.append(at)
        raise AssertionError("the path does not end")

    def clocks(self, ran: _Ran, contents: StartContents) -> tuple[list[int], int]:
        """The clock before each instruction, and the time at which the machine is idle.

        Only the first exception takes time, so that the observed latency is a lower limit.
        """
        insns = tuple(map(self.insn, ran.pcs))
        following = [*ran.pcs[1:], USER]
        taken = tuple(
            transfers(insn) and (after != insn.next or insn.addr in self.ends)
            for insn, after in zip(insns, following, strict=True)
        )
        path = Walk(insns, taken, tuple(range(len(insns))))
        steps = executed(path, ran.accesses, self.platform, self.random)
        machine = random_machine(self.platform, steps, contents, self.random)
        machine.clock = taking_the_exception(machine.core)
        if self.instructions is None:
            self.instructions = Instructions(machine.core, aligned=machine.aligned)
        trace = CompiledTrace.of(self.instructions, steps)
        finished = execute(machine, trace)
        return [0, *trace.issued.tolist()], finished


def interrupt_path(result: AnalysisResult) -> Execution:
    """The execution when a line arrives in user mode."""
    subject = _Subject(result.image, result.platform, Random(1))
    ran = subject.run("interrupt", LINES[:1], None, LINES[0])
    assert ran is not None
    words = [(at, addr, 4) for at, addr in ran.accesses.items()]
    return Execution(memoryview(array("I", ran.pcs)), np.array(words, np.uint32), End.OUTSIDE)


def latencies(
    result: AnalysisResult, seed: int, inputs: Sequence[tuple[int, int]] = ()
) -> Latencies:
    """Every arrival there is, against the bound. Raises AssertionError where it is exceeded.

    And where no bounded path covers the execution, unless tests are in functions with a summary.
    In user mode, before each instruction of the system call, and before each instruction of the
    path of another line and of the same one, which was taken in user mode, after the system call
    or in its place. ``inputs`` are arguments of the system call; two that are drawn if there are
    none.
    """
    assert result.latency is not None
    random = Random(f"latencies {seed}")
    subject = _Subject(result.image, result.platform, random)
    bound = result.latency.cycles
    most = arrivals = 0
    hidden = any(p.hides_tests for entry in result.entries.values() for p in entry.paths)
    timed: set[tuple[int, ...]] = set()
    for arguments in inputs or [subject.arguments]:
        subject.arguments = arguments
        for line in LINES:
            for position, count, ran in _every_arrival(subject, line):
                arrivals += count
                if (key := (position, *ran.pcs)) in timed:
                    continue
                timed.add(key)
                assert hidden or covered(result, ran, position), (seed, arguments, line, position)
                at, finished = subject.clocks(ran, random.choice(list(StartContents)))
                seen = finished - at[max(0, position - 1)]
                place = result.image.place(ran.pcs[position])
                assert seen <= bound, (seed, arguments, line, position, place, seen, bound)
                most = max(most, seen)
    return Latencies(bound, most, arrivals, len(timed))


def covered(result: AnalysisResult, ran: _Ran, position: int) -> bool:
    """Whether paths that are bounded cover all that ran from the arrival at ``position`` on.

    The path that was under way is one of its entry's, from a start no later than that; each path of
    an interrupt is one as a whole. The handler in the call's place is assumed to be shorter.
    """
    ends = [*ran.begins[1:], len(ran.pcs)]
    for begin, end in zip(ran.begins, ends, strict=True):
        names = [n for n, e in result.entries.items() if e.address == ran.pcs[begin]]
        paths = result.entries[names[0]].paths
        last = end
        if ran.handed is not None and begin < ran.handed <= end:
            last = ran.handed
        starts = [
            (p, at)
            for p in paths
            for at in range(begin, min(max(begin, position), last - 1) + 1)
            if (at == begin if p.start is None else ran.pcs[at] == p.start)
        ]
        if position < last and not any(_is_path(result, p, ran.pcs[at:last]) for p, at in starts):
            return False
    return True


def _is_path(result: AnalysisResult, paths: PreparedPaths, pcs: Sequence[int]) -> bool:
    try:
        follow(paths.graph, result.image, pcs)
    except MissingEdge:
        return False
    return True


def _every_arrival(subject: _Subject, line: int) -> Iterator[tuple[int, int, _Ran]]:
    """(first position, size, execution) for each group of arrivals with equal executions.

    Arrivals without an access to the controller between them form a group; the first one waits
    longest.
    """
    alone = subject.run("interrupt", (line,), None, line)  # it arrives in user mode
    assert alone is not None
    yield 0, 1, alone
    yield from _arrivals(subject, "syscall", None, line, 0)
    for other in LINES:
        yield from _arrivals(subject, "interrupt", other, line, 1)
        called = subject.run("syscall", (other,), None, other)
        assert called is not None
        handled = called.begins[1] if called.handed is None else called.handed
        yield from _arrivals(subject, "syscall", other, line, handled)


def _arrivals(
    subject: _Subject, entry: str, other: int | None, line: int, position: int
) -> Iterator[tuple[int, int, _Ran]]:
    """The arrivals from ``position`` on, on a path while ``other`` is pending."""
    before = () if other is None else (other,)
    whole = None if other is None else subject.run(entry, before, None, other)
    while True:
        ran = subject.run(entry, before, position, line)
        if ran is not None:
            last = next((at for at in ran.touched if at >= position), len(ran.pcs) - 1)
            if other is None:
                last = min(last, ran.begins[1] - 1 if len(ran.begins) > 1 else last)
            yield position, last - position + 1, ran
        elif whole is not None:  # it is pending, or all is over
            last = next((at for at in whole.touched if at >= position), len(whole.pcs))
        if (ran is None and whole is None) or (whole is not None and last + 1 >= len(whole.pcs)):
            return
        position = last + 1
