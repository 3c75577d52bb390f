"""Claims against executions: the kinds of findings for wrong bounds and missing paths.

- ``edge``: an executed step is no step of the graph, though a bound was printed;
- ``return``: the report says that an exception return leaves the kernel, but its target and status
  are constants of the kernel;
- ``end``: an execution ends where no path may end;
- ``loop``: a loop runs more often than its bound;
- ``exact``: a bound is called exact, but none of all inputs reaches it;
- ``time``: an execution takes longer than the bound, by our own model or the concrete machine;
- ``latency``: from the arrival of an interrupt to the end of its handler passes more than printed;
- ``wait``: an execution waits for an interrupt on a path with a bound;
- ``meaning``: a bound is printed though an instruction has no meaning on the core;
- ``crash``: the analysis raises an exception that is no WcetError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from random import Random

from campaigns.adversary.executor import NEVER, Arrival, End, Executor, Run
from campaigns.adversary.product import Claims, Product
from campaigns.adversary.program import Memory, Program
from campaigns.adversary.timing import Clock, floor
from quoll.errors import FactsError, InfeasibleError, WcetError
from wcet.analysis.result import AnalysisResult

__all__ = ["Finding", "Judge", "Verdict"]

ARRIVALS = 6
STATES = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: its kind, and a text with figures."""

    kind: str
    text: str


@dataclass(slots=True)
class Verdict:
    """The result of one program; ``counts``: of runs and of checked claims."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    excused: list[str] = field(default_factory=list)  # violations of listed assumptions

    def kinds(self) -> set[str]:
        """The kinds of the findings."""
        return {f.kind for f in self.findings}


class Judge:
    """Judges the programs of one ELF."""

    def __init__(self, product: Product, executor: Executor) -> None:
        self.product, self.executor = product, executor
        self._words: dict[int, int] = {}

    def judge(self, program: Program, number: str) -> Verdict:
        """Run the analysis, then the program, and compare."""
        verdict = Verdict()
        verdict.counts["programs"] += 1
        try:
            result = self.product.analyse(program, number)
        except WcetError as error:
            verdict.counts[f"refused: {type(error).__name__}"] += 1
            if program.facts and isinstance(error, (FactsError, InfeasibleError)):
                verdict.findings.append(Finding("true fact", f"{program.form}: {error}"))
            return verdict
        except Exception as error:  # a crash is a finding
            verdict.findings.append(Finding("crash", f"{type(error).__name__}: {error}"))
            return verdict
        verdict.counts["bounded"] += 1
        if program.meaningless:
            verdict.findings.append(Finding("meaning", f"{program.form}: has a bound"))
            return verdict
        if program.wrong_facts:
            verdict.findings.append(Finding("wrong fact", f"{program.form}: has a bound"))
            return verdict
        chance = Random(f"{program.family} {program.lines}")
        if program.handler:
            Interrupted(self, program, number, result, verdict, chance).check()
        else:
            claims = Claims(result, f"p{number}")
            self._plain(program, number, claims, verdict, chance)
        return verdict

    def _plain(
        self, program: Program, number: str, claims: Claims, verdict: Verdict, chance: Random
    ) -> None:
        most: dict[int, int] = {}
        longest: Run | None = None
        access = claims.result.platform.timing.memory.access
        extremes = (False, True) if program.memory is Memory.CACHED else (False,)
        for given, lost in product(program.inputs, extremes):
            self.executor.fresh(number, chance)
            run = self.executor.execute(number, given, Arrival(), program.memory, lost=lost)
            verdict.counts["runs"] += 1
            found = list(self.steps(program, claims, run, verdict))
            for header, count in turns(claims, run).items():
                most[header] = max(most.get(header, 0), count)
                if count > claims.loops[header][0]:
                    text = f"{header:#x} runs {count} times, bound {claims.loops[header][0]}"
                    found.append(Finding("loop", f"{text}; {given}"))
            if run.end is End.WAITS:
                found.append(Finding("wait", f"waits at {run.pcs[-1]:#x}, bound {claims.cycles}"))
            run = claims.path(run)
            least = floor(run, 0, program.board, self.word, access)
            if least > claims.cycles:
                found.append(Finding("time", f"{least} cycles at least, bound {claims.cycles}"))
            if found and self.excused(program, run, claims, verdict):
                continue
            verdict.findings += found
            if not found and (longest is None or run.steps > longest.steps):
                longest = run
        slow = program.board.armv7 and chance.random() < 0.7  # its machine is not compiled
        if longest is not None and longest.end is not End.FAULT and not slow:
            self._replay(claims, longest, verdict, chance)
        if any(map(claims.assumes, program.apart.split())):
            return  # the claim "exact" has the same assumption
        if program.enumerated and not verdict.findings:
            for header, (bound, exact, _) in claims.loops.items():
                if exact and 0 < most.get(header, 0) < bound:
                    text = f"{header:#x}: exact {bound}, but {most.get(header, 0)} at most"
                    verdict.findings.append(Finding("exact", text))

    def _replay(self, claims: Claims, run: Run, verdict: Verdict, chance: Random) -> None:
        clock = Clock(claims.result.platform, claims.insns)
        try:
            cycles = clock.cycles([run], 0, STATES, chance)
        except WcetError as error:
            verdict.counts[f"no replay: {type(error).__name__}"] += 1
            return
        if cycles is None:
            return
        verdict.counts["replays"] += STATES
        if cycles > claims.cycles:
            text = f"the concrete machine takes {cycles} cycles, bound {claims.cycles}"
            verdict.findings.append(Finding("time", text))

    def steps(
        self, program: Program, claims: Claims, run: Run, verdict: Verdict
    ) -> Iterator[Finding]:
        """The first step of ``run`` that is not in the graph, as a finding.

        A path ends where control stays in a loop that does nothing. It may end where interrupts are
        unmasked, and at an exception return that leaves the kernel according to the report, unless
        target and status are constants that contradict it.
        An execution in which a store changes a return address violates the assumption, if the
        report lists it for that return.
        """
        if not run.pcs:
            return
        unmasked = set(run.unmasked)
        for at, (before, after) in enumerate(pairwise(run.pcs), 1):
            if (before, after) not in claims.steps:
                if before in claims.halts or (before in claims.ends and at in unmasked):
                    return
                kind = "edge"
                if before in claims.ends and claims.leaves_kernel(before):
                    if at in run.user or not program.constant_returns:
                        verdict.excused.append("returns")
                        return
                    kind = "return"
                if claims.leaves_open(before):
                    verdict.excused.append("changed return")
                    return
                place = self.product.image.place
                yield Finding(kind, f"from {place(before)} to {place(after)}")
                return
        if run.end is End.RETURNED and run.pcs[-1] not in claims.ends:
            yield Finding("end", f"at {self.product.image.place(run.pcs[-1])}")

    def excused(self, program: Program, run: Run, claims: Claims, verdict: Verdict) -> bool:
        """Whether the execution violates an assumption that the report lists."""
        if run.unaligned and claims.assumes("aligned"):
            verdict.excused.append("aligned")
            return True
        for name in filter(claims.assumes, program.apart.split()):
            verdict.excused.append(name)
            return True
        return False

    def word(self, address: int) -> int:
        """The word of code at ``address``."""
        known = self._words.get(address)
        if known is None:
            code = self.product.image.read(address, 4) or b"\0\0\0\0"
            known = self._words[address] = int.from_bytes(code, "little")
        return known


def turns(claims: Claims, run: Run) -> dict[int, int]:
    """The most executions of each loop's header per entry from outside."""
    most = dict.fromkeys(claims.loops, 0)
    for header, (_, _, body) in claims.loops.items():
        running = 0
        for pc in run.pcs:
            if pc == header:
                running += 1
                if running > most[header]:
                    most[header] = running
            elif running and pc not in body:
                running = 0
    return most


@dataclass
class Interrupted:
    """A program with a handler: an interrupt arrives at every point, and is followed to its end."""

    judge: Judge
    program: Program
    number: str
    result: AnalysisResult
    verdict: Verdict
    chance: Random
    longest: dict[str, tuple[int, list[Run], int, int]] = field(default_factory=dict)

    def check(self) -> None:
        """Check every distinct arrival."""
        self.claims = {n: Claims(self.result, n) for n in self.result.entries}
        insns = {a: i for c in self.claims.values() for a, i in c.insns.items()}
        self.clock = Clock(self.result.platform, insns)
        quiet = self.run(Arrival())
        self.covered("syscall", quiet)
        if quiet.end is End.WAITS and "syscall" in self.claims:
            self.found("wait", f"waits at {quiet.pcs[-1]:#x}")
        syscall = self.claims.get("syscall")
        if syscall and not syscall.pending:
            self.bounded("syscall", [quiet], 0, syscall.cycles, "time")
        for arrival in self.arrivals(quiet):
            self.arrives(arrival)
        self.in_handler()
        if self.program.board.armv7 and self.chance.random() < 0.7:
            return  # its machine is not compiled: slow
        for kind, (_, runs, begin, bound) in self.longest.items():
            self.replay(kind, runs, begin, bound)

    def arrivals(self, quiet: Run) -> Iterator[Arrival]:
        """Arrivals at the entry, after each read, after each change of the mask, at any steps."""
        patterns = [1, 1 << 31, 1 << 32, 1 << 40, 0xF0, 0x10000]
        pattern = self.chance.choice(patterns)
        yield Arrival(step=0, pattern=pattern)
        reads = len(quiet.reads)
        chosen: Sequence[int] = range(reads)
        if reads > ARRIVALS:
            chosen = sorted({0, reads - 1, *self.chance.sample(range(reads), ARRIVALS - 2)})
        for read in chosen:
            yield Arrival(read=read + 1, pattern=self.chance.choice(patterns))
        unmasked = set(quiet.unmasked)
        again = [step for step in sorted(unmasked) if step + 1 not in unmasked]
        for step in again[:ARRIVALS]:
            if step + 1 < quiet.steps:
                yield Arrival(step=step + 1, pattern=pattern)
        if quiet.steps > 1:
            yield Arrival(step=self.chance.randrange(1, quiet.steps), pattern=pattern)

    def run(self, arrival: Arrival) -> Run:
        """The execution of the program with this arrival."""
        self.judge.executor.fresh(self.number, None)
        self.verdict.counts["runs"] += 1
        return self.judge.executor.execute(self.number, self.program.inputs[-1], arrival)

    def arrives(self, arrival: Arrival) -> None:
        """Check the time from the arrival to the end of the path, and to the end of the handler."""
        run = self.run(arrival)
        if run.arrived is None:
            return
        self.covered("syscall", run)
        if run.end in (End.FAULT, End.WAITS):
            return
        syscall = self.claims.get("syscall")
        begin = run.arrived if arrival.read != NEVER else arrival.step
        if syscall and (begin == 0 or arrival.read != NEVER):
            self.bounded("syscall", [run], begin, syscall.cycles, "time")
        if run.end is End.STEPS:
            runs = [run]
        else:
            handled = self.handler(Arrival(pattern=arrival.pattern), pending=True)
            if handled is None:
                return
            runs = [run, handled]
        if self.result.latency is not None:
            self.bounded("latency", runs, begin, self.result.latency.cycles, "latency")

    def handler(self, arrival: Arrival, *, pending: bool) -> Run | None:
        """The handler's execution, to its end."""
        self.verdict.counts["runs"] += 1
        run = self.judge.executor.handle(self.number, arrival, pending=pending)
        self.covered("interrupt", run)
        return run if run.end in (End.RETURNED, End.STEPS) else None

    def in_handler(self) -> None:
        """Check arrivals of another interrupt in the handler, after any read."""
        first = self.handler(Arrival(), pending=True)
        if first is None or self.result.latency is None:
            return
        for read in range(min(3, len(first.reads))):
            arrival = Arrival(read=read + 1, pattern=self.chance.choice([1, 0xF0, 1 << 33]))
            one = self.handler(arrival, pending=True)
            if one is None or one.arrived is None:
                continue
            other = self.handler(Arrival(pattern=arrival.pattern), pending=True)
            if other is None:
                continue
            self.bounded(
                "latency", [one, other], one.arrived, self.result.latency.cycles, "latency"
            )

    def covered(self, entry: str, run: Run) -> None:
        """Check that every step is in the graph."""
        claims = self.claims.get(entry)
        if claims is None:
            return
        self.verdict.findings += self.judge.steps(self.program, claims, run, self.verdict)
        for header, count in turns(claims, run).items():
            if count > claims.loops[header][0]:
                text = f"{header:#x} runs {count} times, bound {claims.loops[header][0]}"
                self.found("loop", text)

    def bounded(self, entry: str, runs: list[Run], begin: int, bound: int, kind: str) -> None:
        """Check the time from ``begin`` on against ``bound``; the longest run is replayed later."""
        board = self.program.board
        access = self.result.platform.timing.memory.access
        least = sum(
            floor(run, begin if n == 0 else 0, board, self.judge.word, access if n == 0 else 0)
            for n, run in enumerate(runs)
        )
        if least > bound:
            self.found(kind, f"{entry}: {least} cycles at least, {bound} printed")
            return
        longest = self.longest.get(kind)
        if longest is None or least > longest[0]:
            self.longest[kind] = least, runs, begin, bound

    def replay(self, kind: str, runs: list[Run], begin: int, bound: int) -> None:
        """Check the time on the concrete machine."""
        try:
            cycles = self.clock.cycles(runs, begin, 1, self.chance)
        except WcetError as error:
            self.verdict.counts[f"no replay: {type(error).__name__}"] += 1
            return
        self.verdict.counts["replays"] += 1
        if cycles is not None and cycles > bound:
            text = f"the concrete machine takes {cycles} cycles, {bound} printed"
            self.found(kind, text)

    def found(self, kind: str, text: str) -> None:
        """Record a finding."""
        self.verdict.findings.append(Finding(kind, text))
