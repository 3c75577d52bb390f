"""Quoll in a program: ``import wcet``. Names in ``__all__`` are stable.

An analysis from here is the same as ``wcet analyse`` without options: the same stages, the same
cache, the same bounds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.errors import WcetError
from quoll.results.results_store import NOWHERE, ResultsStore, begin_run
from wcet.analysis.analysis import analyse as analysed
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.gate.record import EntryRecord, recorded
from wcet.reports.json_document import to_json

__all__ = ["BoundedLoop", "EntryBounds", "KernelBounds", "WcetError", "analyse"]


@dataclass(frozen=True, slots=True)
class BoundedLoop:
    """A loop of the source, in all its contexts: the greatest bound, with its method.

    ``bound`` counts executions of the header per entry of the loop; None if it is no number.
    """

    function: str
    path: str
    line: int
    bound: int | None
    method: str


@dataclass(frozen=True, slots=True)
class EntryBounds:
    """The bound of one entry. ``cycles`` is None if it is a function, which is in ``formula``.

    ``causes`` and ``functions`` distribute the cycles of the worst path; each adds up to them, or
    is empty if no counts are known that reach the bound.
    """

    name: str
    cycles: int | None
    formula: str
    microseconds: float | None
    causes: Mapping[str, int]
    functions: Mapping[str, int]
    loops: tuple[BoundedLoop, ...]


@dataclass(frozen=True, slots=True)
class KernelBounds:
    """The result. ``latency``: the worst interrupt latency in cycles, if known.

    ``unbounded``: the entries without a bound, with the reasons. All bounds depend on
    ``assumptions``.
    """

    kernel: Path
    sha256: str
    platform: str
    clock_hz: int
    entries: Mapping[str, EntryBounds]
    unbounded: Mapping[str, str]
    latency: int | None
    assumptions: tuple[str, ...]
    result: AnalysisResult  # of the stages; its fields may change with any version

    def to_json(self) -> str:
        """The document that ``wcet analyse --json`` writes."""
        return to_json(self.result)


def analyse(
    kernel: str | os.PathLike[str],
    *,
    entries: Iterable[str] = ("all",),
    platform: str | None = None,
    facts: Iterable[str | os.PathLike[str]] = (),
    parameters: Mapping[str, int] | None = None,
    cache: bool = True,
) -> KernelBounds:
    """Bound the worst-case execution time of ``entries`` of the ELF ``kernel``.

    ``platform`` is a name or a file (default: chosen from the build attributes); ``facts`` are read
    with the file beside the ELF; ``parameters`` are values of loop parameters; ``cache=False`` is
    as ``--no-cache``. Raises a WcetError, for whose ``code`` there is ``wcet explain``, if no entry
    has a bound. Warnings are printed on standard error.
    """
    if isinstance(entries, str):
        raise TypeError("entries are several names: entries=['syscall']")
    begin_run()
    store = ResultsStore.of_user() if cache else NOWHERE
    options = analysis_options(
        tuple(entries), platform, tuple(map(Path, facts)), parameters or {}, store
    )
    result = analysed(Path(kernel), options, StageLog(verbose=False))
    record = recorded(result, Path())
    return KernelBounds(
        kernel=Path(kernel),
        sha256=result.image.sha256,
        platform=result.platform.name,
        clock_hz=result.platform.clock_hz,
        entries={name: _entry(result, name, record.entries[name]) for name in result.entries},
        unbounded={name: str(error) for name, error in result.unbounded.items()},
        latency=None if result.latency is None else result.latency.cycles,
        assumptions=tuple(map(str, result.assumptions)),
        result=result,
    )


def analysis_options(
    entries: tuple[str, ...],
    platform: str | None,
    facts: tuple[Path, ...],
    parameters: Mapping[str, int],
    store: ResultsStore,
) -> AnalysisOptions:
    """The options of a command line with these settings only."""
    return AnalysisOptions(
        entries=entries or ("all",),
        platform=platform,
        facts=facts,
        bounds=BoundOptions(store=store, budget=Budget()),
        parameters=parameters,
        store=store,
    )


def _entry(result: AnalysisResult, name: str, record: EntryRecord) -> EntryBounds:
    functions: dict[str, int] = {}
    for line in record.lines:
        functions[line.function] = functions.get(line.function, 0) + line.cycles
    cycles = record.cycles
    return EntryBounds(
        name=name,
        cycles=cycles,
        formula=record.formula,
        microseconds=None if cycles is None else result.microseconds(cycles),
        causes=record.causes,
        functions=functions,
        loops=tuple(
            BoundedLoop(loop.function, loop.path, loop.line, loop.high, loop.method)
            for loop in record.loops
        ),
    )
