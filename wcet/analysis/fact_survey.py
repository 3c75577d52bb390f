"""Finds all missing facts without which entries have no bound, in one run.

An error names the facts that would resolve it, and provisional facts under which the analysis
continues: a recursion of one activation, a loop of one execution, or a path that ends at the
unresolved transfer. Entries are analysed again under these until nothing else is missing, or the
limit on processor time is reached. The survey covers the remaining paths only: a stated fact may
add paths.

A loop without a bound does not end an analysis: the stages behind it go on with a provisional bound
(``wcet.analysis.provisional_bounds``), so that one analysis finds the loops of all functions. Loops
that callers might bound are left out first. If there are some, the entry is analysed once more as
``wcet analyse`` does it, which tells whether they need a fact; all are listed if the time is up.
"""

from __future__ import annotations

import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from loopbounds.loop_lines import LoopLine, loop_lines
from quoll.cfg.cfg import Cfg, Program
from quoll.cfg.endless_functions import endless_functions
from quoll.errors import (
    PATH_END,
    ControlFlowError,
    MissingKind,
    MissingStatement,
    UnboundedLoop,
    WcetError,
)
from quoll.facts.control_flow_facts import SwitchesContextFact
from quoll.facts.line_anchors import LineAnchors
from quoll.image.image import Image
from quoll.inlining.function_shape import shape_of
from quoll.processes import processor_time
from quoll.processes.time_limit import TimeIsUp, processor_time_limit
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.integer_programs import Constraints, constraints_of, entry_result
from wcet.analysis.prepared import Prepared
from wcet.analysis.provisional_bounds import LoopSurvey, with_provisional_bounds
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.platforms.outside import OutsideMap, outside_map

__all__ = ["SECONDS", "FactSurvey", "survey"]

ITERATIONS = 64  # analyses of an entry; each one finds another missing fact
SECONDS = 60.0  # of processor time: a survey takes no longer
NAMED = 4  # functions in a reason


EntryErrors = Callable[[AnalysisRun, str, int], WcetError | None]


@dataclass(frozen=True, slots=True)
class FactSurvey:
    """Missing facts in the order of discovery, each with the first entry that needs it.

    ``others``: errors that no fact resolves, by entry. ``status``: the exit status of the first
    error of the first entry with one, 0 without errors. ``outside``: pages outside the platform's
    memory. ``ways``: by address of the fact's place, a shortest chain of calls from the entry, as
    functions. ``unfinished``:
    the entries that the time limit left, of which more may be missing. ``lines``: the source lines
    that name missing loops and no others, by header.
    """

    image: Image
    outside: tuple[OutsideMap, ...]
    missing: tuple[tuple[str, MissingStatement], ...]
    others: Mapping[str, WcetError]
    status: int
    ways: Mapping[int, tuple[int, ...]]
    unfinished: tuple[str, ...] = ()
    lines: Mapping[int, LoopLine] = field(default_factory=dict)


def survey(
    kernel: Path, options: AnalysisOptions, stages: StageLog, seconds: float = SECONDS
) -> FactSurvey:
    """Analyse each entry until nothing is missing, or for ``seconds`` of processor time.

    Raises WcetError for wrong inputs.
    """
    with stages.stage("read"):
        image = options.loaded_memory.image(kernel)
        image.settle_lines()  # rounds share the line table
    started = AnalysisRun.begin(kernel, options, stages, image)
    with tempfile.TemporaryDirectory(prefix="wcet-") as folder:
        file = Path(folder) / "meanwhile.facts"
        under = replace(options, facts=(*options.facts, file))
        search = _Search(kernel, under, stages, image, file, dict(started.entries))
        try:
            with processor_time_limit(seconds):
                search.run()
        except TimeIsUp:
            stages.done()
            search.end()
    outside = outside_map(started.image, started.platform.hierarchy.memory)
    return FactSurvey(
        started.image,
        outside,
        tuple(search.found.values()),
        search.others,
        next((search.statuses[e] for e in started.entries if e in search.statuses), 0),
        search.ways,
        tuple(search.unfinished),
        dict(search.lines(LineAnchors(image, kernel, options.sources))),
    )


@dataclass(slots=True)
class _Search:
    """The state of a survey, which a time limit may end anywhere; ``file``: provisional facts."""

    kernel: Path
    options: AnalysisOptions
    stages: StageLog
    image: Image
    file: Path
    unfinished: dict[str, int]  # entry -> address
    found: dict[tuple[int, str], tuple[str, MissingStatement]] = field(default_factory=dict)
    others: dict[str, WcetError] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)  # of the first error, by entry
    ways: dict[int, tuple[int, ...]] = field(default_factory=dict)
    reached: dict[str, Program] = field(default_factory=dict)  # by entry, the code known so far
    examined: str = ""  # the entry at which the survey is
    loops: LoopSurvey = field(default_factory=LoopSurvey)  # of its analysis
    doubtful: dict[str, list[UnboundedLoop]] = field(default_factory=dict)  # by entry, asked last
    programs: list[tuple[object, Program]] = field(default_factory=list)  # as in ``AnalysisRun``

    def run(self) -> None:
        """Examine entries until nothing is missing in any.

        First only the control flow of all entries: it takes seconds, where a proof takes minutes.
        Its time tells the smallest entry, which is analysed first.
        """
        sizes = dict.fromkeys(self.unfinished, 0.0)
        sizes = self._examine_all(dict(self.unfinished), _control_flow_error, sizes)
        self._examine_all(self.unfinished, _error, sizes)

    def _examine_all(
        self, waiting: dict[str, int], errors: EntryErrors, sizes: Mapping[str, float]
    ) -> dict[str, float]:
        """Examine the entry of ``waiting`` that ends first, as it seems, until none is left.

        So a long proof in one entry does not hide facts that others miss. The end of an entry is
        after the time that it has taken, and another one in proportion to its size. Entries of
        which only doubtful loops are to be confirmed come last.

        Returns the processor time in seconds that each took.
        """
        rounds = dict.fromkeys(waiting, 0)
        spent = dict.fromkeys(waiting, 0.0)
        rate = 0.0  # seconds of an examination by size, the most so far
        while waiting:
            name = min(
                waiting,
                key=lambda n: (n in self.doubtful, spent[n] + rate * sizes[n], sizes[n]),
            )
            self.examined = name
            start = processor_time.own()
            rounds[name] += 1
            goes_on = self._examine(name, waiting[name], errors)
            took = processor_time.own() - start
            spent[name] += took
            rate = max(rate, took / sizes[name]) if sizes[name] else rate
            if not goes_on or rounds[name] == ITERATIONS:
                del waiting[name]
        return spent

    def _examine(self, name: str, address: int, errors: EntryErrors) -> bool:
        """Examine an entry once; whether more may be missing then."""
        run, self.loops = self._run(), LoopSurvey()
        loops = None if name in self.doubtful else self.loops
        error = errors(replace(run, loops=loops), name, address)
        new = self._all_noted(run, name, address, self.loops.needed)
        if error is not None:
            if self._noted(run, name, address, error):
                return True
            self.others[name] = _without_file(error, self.file)
            return False
        self.others.pop(name, None)
        if new - {MissingKind.LOOPS}:  # other facts than bounds change the paths
            return True
        known = {at for at, _ in self.found}
        left = [e for e in self.loops.doubtful if any(m.addr not in known for m in e.missing)]
        if left:
            self.doubtful[name] = left
        return bool(left)

    def end(self) -> None:
        """Note the loops that are known, but not noted, when the time is up.

        An entry of which only doubtful loops are to be confirmed misses nothing else.
        """
        met, self.loops = (*self.loops.needed, *self.loops.doubtful), LoopSurvey()
        if met:
            name = self.examined
            self._all_noted(self._run(), name, self.unfinished[name], met)
        for name, errors in self.doubtful.items():
            kinds = self._all_noted(self._run(), name, self.unfinished[name], errors)
            if kinds <= {MissingKind.LOOPS}:
                del self.unfinished[name]

    def _all_noted(
        self, run: AnalysisRun, name: str, address: int, errors: Sequence[WcetError]
    ) -> Set[MissingKind]:
        """Note the facts that errors miss; the kinds of new ones."""
        return {kind for one in errors for kind in self._noted(run, name, address, one)}

    def _noted(
        self, run: AnalysisRun, name: str, address: int, error: WcetError
    ) -> Set[MissingKind]:
        """Note the facts that an error misses; the kinds of new ones."""
        self.statuses.setdefault(name, error.exit_status)
        places = {missing.addr for missing in error.missing}
        if name not in self.reached or not places <= self._code(name):
            found = _reached_code(run, address)
            self.reached[name] = _with_functions_of(found, self.reached.get(name))
            ends = {m.key: (name, m) for m in _ends(found, address, self.image)}
            if new_ends := {key: end for key, end in ends.items() if key not in self.found}:
                self._note(name, address, new_ends)
                return {MissingKind.ENDS}
        new: dict[tuple[int, str], tuple[str, MissingStatement]] = {}
        for missing in _described(error.missing, self.reached[name], self.image):
            if missing.key not in self.found:
                new.setdefault(missing.key, (name, missing))
        new = _without_consequences(new, self.reached[name])
        self._note(name, address, new)
        return {missing.kind for _, missing in new.values()}

    def _code(self, name: str) -> Set[int]:
        """The addresses of the code that an entry is known to reach."""
        known = self.reached[name].functions.values() if name in self.reached else ()
        return {insn.addr for cfg in known for block in cfg.blocks for insn in block.insns}

    def _note(
        self, name: str, address: int, new: Mapping[tuple[int, str], tuple[str, MissingStatement]]
    ) -> None:
        ends = {m.addr for _, m in new.values() if m.kind is MissingKind.ENDS}
        left = {  # a fact about a loop in which paths end would be refused
            key: (entry, m)
            for key, (entry, m) in self.found.items()
            if m.kind is not MissingKind.LOOPS or m.addr not in ends
        }
        self.found = {**left, **new}
        places = {missing.addr for _, missing in new.values()}
        self.ways |= _ways(self.reached[name], address, places - self.ways.keys())

    def lines(self, lines: LineAnchors) -> Iterator[tuple[int, LoopLine]]:
        """The source lines of the missing loops."""
        headers = [m.addr for _, m in self.found.values() if m.kind is MissingKind.LOOPS]
        functions = {f: cfg for p in self.reached.values() for f, cfg in p.functions.items()}
        return loop_lines(functions.values(), headers, lines)

    def _run(self) -> AnalysisRun:
        """A run under provisional facts for everything that was found missing."""
        self.file.write_text("".join(f"{provisional_facts(m)}\n" for _, m in self.found.values()))
        run = AnalysisRun.begin(self.kernel, self.options, self.stages, self.image)
        return replace(run, programs=self.programs)


def _reached_code(run: AnalysisRun, address: int) -> Program:
    """All functions that an entry reaches under the facts of the run.

    Functions that switch contexts are analysed apart from their callers.
    """
    from quoll.extraction.extract import extract  # only runs with missing facts need it

    switching = dict.fromkeys(at for at, _ in run.facts.addressed(SwitchesContextFact))
    return extract(run.image, [address, *switching], run.facts, run.exits)


def _with_functions_of(program: Program, before: Program | None) -> Program:
    """``program``, with functions that were reached under fewer provisional facts."""
    earlier = {} if before is None else before.functions
    return replace(program, functions={**earlier, **program.functions})


def _ends(program: Program, address: int, image: Image) -> list[MissingStatement]:
    """The ends of paths where functions begin in which no path ends: causes of other questions."""
    unresolved = {one.addr: one for one in program.unresolved}
    found = []
    for function in endless_functions(program.functions, address & ~1, unresolved):
        if function.halts:
            continue
        behind = [program.functions[entry].name for entry in sorted(function.behind)]
        name = program.functions[function.entry].name
        why = f"{name} never returns, and no path ends in it"
        if others := [other for other in behind if other != name]:
            count = f"{len(others)} function{'s' if len(others) > 1 else ''}"
            shown = ", ".join(others[:NAMED]) + (", ..." if len(others) > NAMED else "")
            why += f"; this leaves out {count} that only it reaches: {shown}"
        found.append(MissingStatement(function.entry, MissingKind.ENDS, why, PATH_END, PATH_END))
    return found


def _without_file(error: WcetError, file: Path) -> WcetError:
    """The error, without the name of the file of provisional facts, which is gone later."""
    if error.where is not None:
        error.where = re.sub(rf"{re.escape(str(file))}:\d+", "a proposed fact", error.where)
    return error


def _described(
    missing: Sequence[MissingStatement], program: Program, image: Image
) -> Iterator[MissingStatement]:
    """The missing facts; loops that wait for a device register are named by it, once for each.

    A loop that waits until other code stores to a variable is an end of paths.
    """
    from quoll.indirect.device_polls import (  # it loads the disassembler
        awaited_variable,
        device_exits,
        device_poll,
    )

    functions = {
        i.addr: cfg for cfg in program.functions.values() for b in cfg.blocks for i in b.insns
    }
    for one in missing:
        loop = one.kind is MissingKind.LOOPS and one.addr in functions
        poll = device_poll(image, functions[one.addr], one.addr) if loop else None
        variable = awaited_variable(image, functions[one.addr], one.addr) if loop else None
        if variable is not None:
            why = (
                f"{image.place(one.addr)}: the loop waits until other code stores to "
                f"{image.place(variable)}, and the path ends there; if that code runs meanwhile, "
                "state 'loop PLACE at most N' instead"
            )
            yield MissingStatement(one.addr, MissingKind.ENDS, why, PATH_END, PATH_END)
            continue
        exits = device_exits(image, functions[one.addr], one.addr) if loop and not poll else None
        if poll is not None:
            waits, counted = str(poll), "reads it"
        elif exits is not None:
            waits, counted = str(exits), "executes its header"
        else:
            lines = _source_lines(functions[one.addr], one, image) if loop else ""
            yield replace(one, group=lines)
            continue
        line = image.line(one.addr)
        why = f"{image.place(one.addr)}: the loop {waits}; N is how often it {counted} at most"
        yield replace(one, why=why, several=True, group=f"{waits} {line}")


def _source_lines(cfg: Cfg, loop: MissingStatement, image: Image) -> str:
    """The source lines of the instructions in a loop, which copies of it share; "" if unknown."""
    try:
        nest = shape_of(cfg, image).nest
    except ControlFlowError:
        return ""
    lines = {
        image.line(insn.addr)
        for block, headers in nest
        if loop.addr in headers
        for insn in block.insns
    }
    return ", ".join(sorted(f"{line.path}:{line.line}" for line in lines if line is not None))


def _without_consequences(
    new: Mapping[tuple[int, str], tuple[str, MissingStatement]], program: Program
) -> dict[tuple[int, str], tuple[str, MissingStatement]]:
    """``new`` without path ends in functions that another question calls context switches.

    A statement that a function switches contexts covers its exception returns. If other functions
    have the same code, it is asked about again.
    """
    switching = {one.addr for _, one in new.values() if one.kind is MissingKind.SWITCHES}
    functions = [program.functions[f] for f in switching & program.functions.keys()]
    inside = {insn.addr for cfg in functions for block in cfg.blocks for insn in block.insns}
    return {
        key: (name, one)
        for key, (name, one) in new.items()
        if one.kind is not MissingKind.ENDS or one.addr not in inside
    }


def _ways(program: Program, address: int, places: Set[int]) -> dict[int, tuple[int, ...]]:
    """A shortest chain of calls from the entry to a function with each of ``places``."""
    ways: dict[int, tuple[int, ...]] = {}
    chains: dict[int, tuple[int, ...]] = {address & ~1: (address & ~1,)}
    waiting = deque(chains)
    while waiting and ways.keys() < places:
        function = waiting.popleft()
        blocks = program.functions[function].blocks
        here = places & {function, *(i.addr for b in blocks for i in b.insns)}
        ways |= dict.fromkeys(here - ways.keys(), chains[function])
        called = {c for b in blocks for c in (*b.calls, *b.passes)} & program.functions.keys()
        for callee in sorted(called - chains.keys()):
            chains[callee] = (*chains[function], callee)
            waiting.append(callee)
    return ways


def provisional_facts(missing: MissingStatement) -> str:
    """The provisional fact under which the analysis continues."""
    return missing.provisional.replace("PLACE", f"{missing.addr:#x}")


def _control_flow_error(run: AnalysisRun, name: str, address: int) -> WcetError | None:
    """The error that prevents the inlining of an entry; None if there is none."""
    from quoll.inlining.expand import refuse_unexpandable
    from wcet.analysis.entry_stages import AnalysisTarget, programmed

    try:
        program = programmed(AnalysisTarget(run, name, address))
        refuse_unexpandable(program, address & ~1, run.image)
    except WcetError as error:
        return error
    return None


def _error(run: AnalysisRun, name: str, address: int) -> WcetError | None:
    """The error that prevents the bound of an entry; None if there is none.

    If ``run.loops`` collects loops without a bound, they are no error.
    """
    try:
        prepared = cached_or_prepared(run, name, address)
        limits = constraints_of(run, name, prepared)
        while unbounded := _unbounded(run, name, address, prepared, limits):
            if run.loops is None or not unbounded.missing:
                return unbounded
            run.loops.needed.append(unbounded)
            prepared = with_provisional_bounds(prepared, unbounded)
    except WcetError as error:
        return error
    return None


def _unbounded(
    run: AnalysisRun,
    name: str,
    address: int,
    prepared: Prepared,
    limits: Sequence[Constraints],
) -> UnboundedLoop | None:
    """The error about loops without a bound in the paths of an entry, if there are some."""
    try:
        entry_result(run, name, address, prepared, limits)
    except UnboundedLoop as error:
        return error
    return None
