"""Random small C programs, compiled, run by the interpreter, and replayed with caches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from cache.policy import ReplacementPolicy
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from pipeline.native import CompiledTrace, Instructions, execute
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import LR, PC, SP, Condition, Insn
from quoll.image.image import Image
from quoll.inlining.vivu import FULL, VivuSettings
from quoll.recordings.follow import follow
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.pipeline.sampled import sample
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.path_replay import (
    StartContents,
    executed,
    nominal_core,
    random_machine,
)
from wcet.platforms.platform_model import Platform

CODE = "-Wl,-Ttext=0xf0010000"
STACK = 0xF0200000
RETURN = 0xF0300000  # where the entry returns to; nothing is there
LONGEST = 1_000_000  # instructions
TOGETHER = 5  # initial states of one execution
FLAGS = ("-fno-tree-loop-distribute-patterns", "-fno-builtin", "-fno-stack-protector")


class Writer:
    """Writes one program. Every loop has a counter of its own with a bound that is a number."""

    def __init__(self, random: Random) -> None:
        self.random, self.loops = random, 0
        self.lines: list[str] = []

    def program(self) -> str:
        """Globals, a table of constants, two or three functions, and ``main(a, b)``."""
        numbers = ", ".join(str(self.random.randrange(256)) for _ in range(64))
        self.lines = [
            f"static const unsigned char table[64] = {{{numbers}}};",
            "unsigned data[256];",
            "struct item { unsigned char kind; short count; unsigned word; } items[16];",
        ]
        functions: list[str] = []
        for number in range(self.random.randint(1, 2)):
            name = f"f{number}"
            self.function(f"__attribute__((noinline)) unsigned {name}", functions, 1)
            functions.append(name)
        self.function("unsigned main", functions, 2)
        return "\n".join(self.lines) + "\n"

    def function(self, head: str, callees: list[str], depth: int) -> None:
        self.lines.append(f"{head}(unsigned a, unsigned b) {{")
        self.lines.append("    unsigned x = a, local[8];")
        self.lines += [f"    local[{i}] = b + {i};" for i in range(8)]
        self.block(callees, depth, 1)
        self.lines += ["    return x + local[a & 7];", "}"]

    def block(self, callees: list[str], depth: int, level: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(callees, depth, level)

    def statement(self, callees: list[str], depth: int, level: int) -> None:
        pad, random = "    " * level, self.random
        kind = random.choice(["work", "work", "if", "loop", "loop", "switch", "call"])
        if kind == "loop" and depth and self.loops < 4:
            self.loop(callees, depth, level)
        elif kind == "if" and depth:
            self.lines.append(f"{pad}if ({self.condition()}) {{")
            self.block(callees, depth - 1, level + 1)
            self.lines.append(f"{pad}}} else x = x * 3 + {random.randrange(99)};")
        elif kind == "switch":
            self.lines.append(f"{pad}switch (x & 7) {{")
            for case in range(6):
                self.lines.append(f"{pad}case {case}: {self.work()} break;")
            self.lines.append(f"{pad}default: x++; }}")
        elif kind == "call" and callees:
            self.lines.append(f"{pad}x += {random.choice(callees)}(x, b);")
        else:
            self.lines.append(pad + self.work())

    def loop(self, callees: list[str], depth: int, level: int) -> None:
        pad, i = "    " * level, f"i{self.loops}"
        self.loops += 1
        bound, step = self.random.randint(1, 30), self.random.choice([1, 1, 2])
        end = f" && {self.condition()}" if self.random.random() < 0.4 else ""
        self.lines.append(
            f"{pad}for (unsigned {i} = 0; {i} < {bound}{end}; {i} += {step}) {{ "
            f"x += data[({i} * 5 + x) & 255];"
        )
        self.block(callees, depth - 1, level + 1)
        self.lines.append(pad + "}")

    def condition(self) -> str:
        return self.random.choice(
            ["x & 4", "a > b", "(int)x < 1000", "data[x & 63] != 7", "items[x & 15].kind & 1"]
        )

    def work(self) -> str:
        n = self.random.randrange(64)
        return self.random.choice(
            [
                f"data[{n}] = x ^ table[x & 63];",
                f"local[x & 7] += data[{n}];",
                f"x = (x << {n % 13}) ^ local[{n % 8}];",
                "items[x & 15].count++;",
                f"items[{n % 16}].word = x * b;",
                "x += table[(x >> 3) & 63];",
                f"data[(x >> 2) & 127] += {n};",
            ]
        )


def program(seed: int, optimise: str, cpu: str = "arm1136jf-s", *, thumb: bool = False) -> Path:
    """The ELF of one program; code and data stand in cached memory."""
    source = Writer(Random(seed)).program()
    return build(source, *FLAGS, optimise=optimise, cpu=cpu, thumb=thumb, link=(CODE, "-lgcc"))


def bound(elf: Path, platform: str | None = "kzm", vivu: VivuSettings = FULL) -> AnalysisResult:
    """The result of the analysis for ``main``, without facts. Raises UnboundedLoop and its like."""
    options = AnalysisOptions(
        entries=("main",),
        platform=platform,
        l2=None,
        facts=(),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(budget=Budget(seconds=4), workers=1),
        vivu=vivu,
    )
    return analyse(elf, options, StageLog(verbose=False))


class Recorder(ByteMemory):
    """Memory of a program; ``first`` is the lowest address of each instruction's access.

    ``changing``: the first and last byte of devices, which give any word at each read.
    """

    def __init__(
        self,
        image: Image,
        random: Random,
        changing: tuple[int, int] = (1, 0),
        varied: str | None = None,
    ) -> None:
        """``varied``: the only variable with any content; others are as loaded."""
        noise = random.randbytes(4096)
        loaded = None if varied is None else _span(image, varied)
        super().__init__(background=lambda addr: _byte(image, addr, noise, loaded))
        self.at, self.random, self.changing = 0, random, changing
        self.first: dict[int, int] = {}

    def load(self, addr: int, size: int) -> int:
        self.first[self.at] = min(addr, self.first.get(self.at, addr))
        if self.changing[0] <= addr <= self.changing[1]:
            return self.random.choice(
                [self.random.randrange(30), self.random.getrandbits(8 * size)]
            )
        return super().load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self.first[self.at] = min(addr, self.first.get(self.at, addr))
        super().store(addr, size, value)


def _span(image: Image, name: str) -> range:
    symbol = image.symbol(name)
    return range(symbol.addr, symbol.addr + symbol.size) if symbol else range(0)


def _byte(image: Image, addr: int, noise: bytes, varied: range | None = None) -> int:
    """A byte of memory: constants as in the ELF, variables with any content."""
    known = image.constant(addr, 1)
    if known is None and varied is not None and addr not in varied:
        loaded = image.read(addr, 1)
        known = loaded[0] if loaded else None
    return noise[addr % len(noise)] if known is None else known


def run(
    image: Image,
    entry: int,
    random: Random,
    changing: tuple[int, int] = (1, 0),
    *,
    thumb: bool = False,
    varied: str | None = None,
) -> tuple[list[int], dict[int, int]]:
    """Addresses executed from ``entry`` until it returns, and of the first byte accessed.

    ``thumb``: it starts in Thumb state. ``varied``: as in ``Recorder``.
    """
    memory = Recorder(image, random, changing, varied)
    machine = ConcreteMachine(memory, oracle=lambda op: random.getrandbits(32))
    machine.registers[:13] = [random.choice([random.getrandbits(32), random.randrange(9)])
                              for _ in range(13)]  # fmt: skip
    machine.registers[SP], machine.registers[LR], machine.thumb = STACK, RETURN | thumb, thumb
    pcs = executed_from(image, machine, entry, memory)
    return pcs, memory.first


def executed_from(
    image: Image, machine: ConcreteMachine, entry: int, memory: Recorder | None = None
) -> list[int]:
    """Addresses executed from ``entry`` until control gets to the address in lr.

    ``memory``: of the machine, if it notes accesses.
    """
    end = machine.registers[LR] & ~1
    machine.registers[PC] = entry
    decoded: dict[tuple[int, bool], Insn] = {}
    pcs: list[int] = []
    conditions: tuple[Condition, ...] = ()  # of the rest of an IT block
    while (pc := machine.registers[PC]) != end:
        assert len(pcs) < LONGEST, "the execution does not end"
        insn = decoded.get((pc, machine.thumb))
        if insn is None:
            code = image.read(pc, 4) or image.read(pc, 2)
            assert code is not None
            insn = decode(code, pc, machine.thumb, conditions)
            decoded[pc, machine.thumb] = insn
        if memory is not None:
            memory.at = len(pcs)
        pcs.append(pc)
        conditions = conditions[1:] or it_conditions(insn)
        machine.step(insn)
    return pcs


@dataclass(frozen=True)
class Case:
    """One input of one program, in cycles; ``most`` over all initial states."""

    bound: int
    charged: int
    most: int


def check(
    result: AnalysisResult,
    seed: int,
    inputs: int,
    states: int,
    name: str = "main",
    varied: str | None = None,
) -> list[Case]:
    """Run and replay. Raises AssertionError where an execution exceeds bound or charge.

    ``states``: of each input. Conditions without a recorded outcome are drawn for up to
    ``TOGETHER`` states. ``name``: of the entry. ``varied``: as in ``Recorder``.
    """
    entry, symbol = result.entries[name], result.image.symbol(name)
    thumb, cases = symbol is not None and symbol.thumb, []
    platform = result.platform
    core, aligned = nominal_core(platform.timing), platform.hierarchy.aligned
    known = Instructions(core, aligned=aligned)
    for number in range(inputs):
        random = Random(f"{seed} {number}")
        pcs, accesses = run(result.image, entry.address, random, thumb=thumb, varied=varied)
        visits = follow(entry.graph, result.image, pcs)
        path = Walk.of(entry.graph, visits)
        charged = path_cycles(entry.costs, (PathStep(v.node, v.edge) for v in visits))
        most = 0
        together = TOGETHER if samples_caches(platform) else 1
        for first in range(0, states, together):
            steps = executed(path, accesses, platform, random)
            contents = list(StartContents)[first // together % len(StartContents)]
            machine = random_machine(platform, steps, contents, random)
            trace = CompiledTrace.of(known, steps)
            if more := min(together, states - first) - 1:
                most = max(most, sampled(platform, trace, more, random))
            most = max(most, execute(machine, trace))
        assert most <= charged <= entry.cycles, (seed, number, most, charged, entry.cycles)
        cases.append(Case(entry.cycles, charged, most))
    return cases


def samples_caches(platform: Platform) -> bool:
    """Whether ``sampled`` draws only states that the platform may have."""
    hierarchy = platform.hierarchy
    return (
        hierarchy.policy is ReplacementPolicy.ONE_WAY
        and hierarchy.prediction is BranchPrediction.OFF
        and not hierarchy.locked
        and platform.timing.tlb is None
    )


def sampled(platform: Platform, trace: CompiledTrace, states: int, random: Random) -> int:
    """The most cycles of an execution over states that are drawn in C."""
    machine = random_machine(platform, trace.executed, StartContents.COLD, random)
    seed = random.getrandbits(63)
    return sample(machine, trace, platform.timing.entry, states, seed, one_way=False).most


def guided(
    elf: Path,
    tmp_path: Path,
    text: str,
    entry: str = "main",
    vivu: VivuSettings = FULL,
    *,
    prove_stated: bool = False,
) -> AnalysisResult:
    """The analysis of one entry under facts."""
    facts = tmp_path / "guidance.facts"
    facts.write_text(text)
    options = AnalysisOptions(
        entries=(entry,),
        platform="kzm",
        l2=None,
        facts=(facts,),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(Budget(seconds=4), workers=1, prove_stated=prove_stated),
        vivu=vivu,
    )
    return analyse(elf, options, StageLog(verbose=False))
