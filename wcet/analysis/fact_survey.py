"""Finds all missing facts without which entries have no bound, in one run.

An error names the facts that would resolve it, and provisional facts under which the analysis
continues: a recursion of one activation, a loop of one execution, or a path that ends at the
unresolved transfer. The entry is analysed again under these until nothing else is missing. The
survey covers the remaining paths only: a stated fact may add paths.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

from quoll.errors import MissingStatement, WcetError
from quoll.image.image import Image
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.integer_programs import constraints_of, entry_result
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.platforms.outside import OutsideMap, outside_map

__all__ = ["FactSurvey", "survey"]

ITERATIONS = 64  # analyses of an entry; each one finds another missing fact


@dataclass(frozen=True, slots=True)
class FactSurvey:
    """Missing facts in the order of discovery, each with the first entry that needs it.

    ``others``: errors that no fact resolves, by entry. ``status``: the exit status of the first
    error, 0 without errors. ``outside``: pages outside the platform's memory. ``ways``: by address
    of the fact's place, a shortest chain of calls from the entry, as functions.
    """

    image: Image
    outside: tuple[OutsideMap, ...]
    missing: tuple[tuple[str, MissingStatement], ...]
    others: Mapping[str, WcetError]
    status: int
    ways: Mapping[int, tuple[int, ...]]


def survey(kernel: Path, options: AnalysisOptions, stages: StageLog) -> FactSurvey:
    """Analyse each entry until nothing is missing. Raises WcetError for wrong inputs."""
    with stages.stage("read"):
        image = options.loaded_memory.image(kernel)
        image.settle_lines()  # rounds share the line table
    started = AnalysisRun.begin(kernel, options, stages, image)
    found: dict[tuple[int, str], tuple[str, MissingStatement]] = {}
    others: dict[str, WcetError] = {}
    statuses: list[int] = []
    ways: dict[int, tuple[int, ...]] = {}
    with tempfile.TemporaryDirectory(prefix="wcet-") as folder:
        file = Path(folder) / "meanwhile.facts"
        under = replace(options, facts=(*options.facts, file))
        for name, address in started.entries.items():
            for _ in range(ITERATIONS):
                file.write_text("".join(f"{provisional_facts(m)}\n" for _, m in found.values()))
                run = AnalysisRun.begin(kernel, under, stages, image)
                error = _error(run, name, address)
                if error is None:
                    break
                statuses.append(error.exit_status)
                new: dict[tuple[int, str], tuple[str, MissingStatement]] = {}
                for missing in error.missing:
                    new.setdefault(missing.key, (name, missing))
                if new.keys() <= found.keys():
                    others[name] = error
                    break
                new = {key: value for key, value in new.items() if key not in found}
                ways |= _ways(run, address, {m.addr for _, m in new.values()} - ways.keys())
                found |= new
    outside = outside_map(started.image, started.platform.hierarchy.memory)
    return FactSurvey(
        started.image, outside, tuple(found.values()), others, next(iter(statuses), 0), ways
    )


def _ways(run: AnalysisRun, address: int, places: Set[int]) -> dict[int, tuple[int, ...]]:
    """A shortest chain of calls from the entry to a function with each of ``places``."""
    from quoll.extraction.extract import extract  # only runs with missing facts need it

    program = extract(run.image, [address], run.facts, run.exits)
    ways: dict[int, tuple[int, ...]] = {}
    chains: dict[int, tuple[int, ...]] = {address & ~1: (address & ~1,)}
    waiting = deque(chains)
    while waiting and ways.keys() < places:
        function = waiting.popleft()
        blocks = program.functions[function].blocks
        here = places & {function, *(i.addr for b in blocks for i in b.insns)}
        ways |= dict.fromkeys(here - ways.keys(), chains[function])
        for callee in sorted({c for b in blocks for c in b.calls} - chains.keys()):
            chains[callee] = (*chains[function], callee)
            waiting.append(callee)
    return ways


def provisional_facts(missing: MissingStatement) -> str:
    """The provisional fact under which the analysis continues."""
    return missing.provisional.replace("PLACE", f"{missing.addr:#x}")


def _error(run: AnalysisRun, name: str, address: int) -> WcetError | None:
    """The error that prevents the bound of an entry; None if there is none."""
    try:
        prepared = cached_or_prepared(run, name, address)
        entry_result(run, name, address, prepared, constraints_of(run, name, prepared))
    except WcetError as error:
        return error
    return None
