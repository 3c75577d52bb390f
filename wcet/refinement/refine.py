"""The refined bound of an entry: exclusions of earlier runs, then rounds, whose results are stored.

Exclusions are stored by content (``ilp.constraints.proved_exclusions``), and so is the end: the
worst path that was not refuted with them. While nothing changes, a later run solves and proves
nothing. One that ended with its time goes on only in a run that has more time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ilp.constraints.proved_exclusions import InfeasibleCore, ProvedExclusions, exclusions_key
from quoll.assumptions import Assumption
from quoll.errors import UsageError
from quoll.image.image import Image
from quoll.preemption.segments import SegmentValues
from quoll.processes.processor_time import own
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore
from wcet.analysis.analysis import cached_or_valued
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.integer_programs import (
    StartProgram,
    constraints_of,
    entry_result,
    proved_of,
    start_programs,
)
from wcet.analysis.result import EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.platforms.platform_model import Platform
from wcet.refinement.core_names import named_cores, store_names
from wcet.refinement.rounds import Ending, RefinementRounds, Round, worst_start
from wcet.refinement.state_search import StateSearch
from wcet.refinement.witness import witness

__all__ = ["STEPS", "RefinedBound", "refine"]

STEPS = 40  # that are climbed; a step of the longest entries takes a second
SOLVED_AGAIN = 3  # times from nothing, until the worst path is the one that was not refuted


@dataclass(frozen=True, slots=True)
class RefinedBound:
    """The bound of an entry after refinement; ``cores``: the exclusions as edges of its graph.

    ``worst``: the start of the longest paths with them, and its solution.
    """

    image: Image
    platform: Platform
    entry: EntryResult  # before
    rounds: tuple[Round, ...]
    ending: Ending
    assumptions: tuple[Assumption, ...]
    cores: tuple[InfeasibleCore, ...]
    worst: StartProgram

    @property
    def cycles(self) -> int:
        """The bound in cycles."""
        return self.rounds[-1].cycles if self.rounds else self.entry.cycles


@dataclass(frozen=True, slots=True)
class EndOfRefinement:
    """A record: the name of the ``Ending`` of the worst path with all exclusions.

    ``seconds``: the time of a run that ended with it; a run with more time goes on. None: no run
    goes on.
    """

    ending: str
    seconds: float | None = None

    def ends(self, seconds: float) -> bool:
        """Whether a run with so much time does not go on."""
        return self.seconds is None or seconds <= self.seconds


def refine(
    kernel: Path, options: AnalysisOptions, seconds: float, stages: StageLog, climb: int = STEPS
) -> RefinedBound:
    """Refine the bound of the one entry that ``options`` requests.

    ``seconds``: processor time of the rounds, after the stages before them, and of the search for a
    longer execution. ``climb``: the most steps of this search.

    Raises as ``wcet.analysis.analysis.analyse`` does, and UsageError for several entries and for a
    parametric bound.
    """
    run = AnalysisRun.begin(kernel, options, stages)
    if len(run.entries) != 1:
        raise UsageError("wcet refine is about one entry", hint="name it with --entry")
    ((name, address),) = run.entries.items()
    prepared, entry = cached_or_valued(run, name, address)
    limits = constraints_of(run, name, prepared)
    before = replace(
        entry_result(run, name, address, prepared, limits), seen=run.seen.of(name, address)
    )
    if before.parametric is not None:
        raise UsageError(
            f"the bound of {name} is a function of {', '.join(before.parametric.names)}",
            hint="give numbers with --set NAME=N",
        )
    graphs = (paths.graph for paths in prepared.paths)
    key = exclusions_key(run.store.identity(name, address), graphs)
    proved = proved_of(run, name, address, prepared)
    programs = start_programs(run, name, address, prepared, limits, proved)
    found: tuple[Round, ...] = ()
    if proved.cores:
        worst = programs[worst_start(programs)].answer.worst
        found = (Round(proved.shown, worst.solution.cycles, stored=True),)
    ending = _ending(options.store, end_key(key, proved, programs, climb), seconds)
    if ending is None:
        end = own() + seconds
        with stages.stage("refine", name):
            rounds = RefinementRounds.begin(run, name, address, programs, proved, entry)
            names = () if proved.cores else named_cores(options.store, kernel).get(name, ())
            if again := rounds.carried_over(names, end):
                found = (Round(again, rounds.cycles(), stored=True),)
            more, ending = rounds.run(end)
            found += more
            for _ in range(SOLVED_AGAIN):  # a later run begins with the path of this solution
                proved = rounds.proved() if rounds.cores else proved
                solved = start_programs(run, name, address, prepared, limits, proved)
                same = end_key(key, proved, rounds.programs, climb)
                later = end_key(key, proved, solved, climb)
                settled = same == later
                if settled or ending is Ending.TIME:
                    break
                rounds.solve_again(solved)
                more, ending = rounds.run(end)
                found += more
        if rounds.cores:
            proved = rounds.proved()
            _store(options.store, key, proved)
            store_names(options.store, kernel, name, rounds.named())
        programs = rounds.programs
        if ending is not Ending.TIME:
            with stages.stage("witness", name):
                search = _search(rounds, own() + seconds)
                before = with_witness(run, before, search, address, climb)
        if ending is Ending.TIME:
            _store(options.store, later, EndOfRefinement(ending.name, seconds))
        elif settled:
            _store(options.store, later, EndOfRefinement(ending.name))
    stages.done()
    assumptions = tuple(dict.fromkeys((*before.assumptions, *proved.assumptions)))
    return RefinedBound(
        run.image,
        run.platform,
        before,
        found,
        ending,
        assumptions,
        proved.cores,
        programs[worst_start(programs)],
    )


def _search(rounds: RefinementRounds, end: float) -> StateSearch:
    """The search for states whose executions take the longest path."""
    number = worst_start(rounds.programs)
    values = SegmentValues(rounds.values, rounds.segments[number])
    return StateSearch(rounds.programs[number], rounds.conditions.code.image, values, end)


def with_witness(
    run: AnalysisRun, entry: EntryResult, search: StateSearch, address: int, climb: int
) -> EntryResult:
    """The entry with an execution near the worst path, if it is longer than the known one."""
    found = witness(entry.name, search, run.platform, climb)
    if found is None:
        return entry
    run.seen.add(entry.name, address, found)
    longer = entry.seen is None or entry.seen.cycles < found.cycles
    return replace(entry, seen=found) if longer else entry


def end_key(
    exclusions: str, proved: ProvedExclusions, programs: Sequence[StartProgram], climb: int
) -> str:
    """The key of the end of refinement: of the exclusions, and of the worst path with them.

    Also of the steps of the search for a longer execution.
    """
    number = worst_start(programs)
    worst = programs[number].answer.worst
    edges = [step.edge for step in worst.path.steps]
    return exclusions and key_of("end", exclusions, proved.cores, number, edges, climb)


def _ending(store: ResultsStore, key: str, seconds: float) -> Ending | None:
    known: EndOfRefinement | None = store.load(key, EndOfRefinement) if key else None
    return Ending[known.ending] if known is not None and known.ends(seconds) else None


def _store(store: ResultsStore, key: str, record: object) -> None:
    if key:
        store.save(key, record)
