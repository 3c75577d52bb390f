"""The pipeline behind ``wcet analyse``, one stage a line: the index of the project.

ELF -> Image -> Program -> Supergraph -> Values -> Classification -> Costs
    -> LoopBounds -> Solution -> WorstPath -> Result
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ilp.constraints.constraint import unused_constraints
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.checkers import substituted
from loopbounds.written_loops import loops_not_found
from quoll.arm.insn import ControlFlow
from quoll.assumptions import HANDED_OVER, OTHERS_FIRST, TAKEN_IMMEDIATELY
from quoll.errors import UnansweredLoop, UnboundedLoop
from quoll.facts.applied import unused_guidance
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.processes.futures import Future, submit
from quoll.processes.parallel_map import parallel_map
from wcet.analysis.analysis_options import AnalysisOptions, configuration
from wcet.analysis.fact_evidence import (
    FactEvidence,
    FactStatus,
    labels,
    proved_counts,
    proved_depths,
    proved_loops,
)
from wcet.analysis.integer_programs import Constraints, constraints_of, entry_result, proved_of
from wcet.analysis.prepared import Prepared
from wcet.analysis.proved_invariants import proved_sources
from wcet.analysis.result import AnalysisResult, EntryResult, InterruptLatency
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog, StageUse
from wcet.platforms.platform_model import INTERRUPT, Platform

if TYPE_CHECKING:
    from wcet.analysis.preparation import ValuedEntry

__all__ = ["analyse", "cached_or_prepared", "cached_or_valued", "interrupt_latency"]


def analyse(kernel: Path, options: AnalysisOptions, stages: StageLog) -> AnalysisResult:
    """Bound every entry that ``options`` requests.

    Raises a WcetError whose class names the kind of missing input; nothing is then written. An
    unbounded loop only excludes the entries that reach it, unless all do.
    """
    run = AnalysisRun.begin(kernel, options, stages)
    with finishing() as later:
        return bounded(run, kernel, all_cached_or_prepared(run, later))


def bounded(run: AnalysisRun, kernel: Path, entries: Sequence[Prepared]) -> AnalysisResult:
    """The bounds of all entries, from the results of the stages before the integer program.

    Raises UnboundedLoop if no entry has a bound.
    """
    options, stages = run.options, run.stages
    results: dict[str, EntryResult] = {}
    unbounded: dict[str, UnboundedLoop] = {}
    constraints: list[Constraints] = []
    for (name, address), found in zip(run.entries.items(), entries, strict=True):
        limits = constraints_of(run, name, found)
        constraints += limits
        try:
            exclusions = proved_of(run, name, address, found)
            entry = entry_result(run, name, address, found, limits, exclusions)
            results[name] = replace(entry, seen=run.seen.of(name, address))
        except UnboundedLoop as error:
            unbounded[name] = error
    if not results:
        raise all_unbounded(unbounded)
    used = [assumption for entry in results.values() for assumption in entry.assumptions]
    for fact in unused_constraints(run.facts, constraints, used):
        stages.warn(f"{fact.source}: no analysed entry is constrained by '{fact.source.text}'")
    bounds = [(paths.graph, paths.bounds) for found in entries for paths in found.paths]
    graphs = [graph for graph, _ in bounds]
    summaries = (one.paths.bounds for found in entries for one in found.summaries)
    each = (b for those in (*(b for _, b in bounds), *summaries) for b in those)
    for text in (
        *substituted(options.bounds.checker, each),
        *unanswered(run.image, bounds),
        *loops_not_found(graphs, run.image, run.facts),
    ):
        stages.warn(text)
    proved = proved_depths(run.facts, graphs)
    for unused in unused_guidance(run.facts, used):
        if str(unused.source) not in proved:
            stages.warn(f"{unused.source}: no analysed entry is changed by '{unused.source.text}'")
    proved |= proved_loops(run.image, run.facts, bounds)
    proved |= proved_counts(run.facts, entries)
    proved |= proved_sources(run)
    known = labels(run.facts, FactEvidence(options.store, run.image), proved)
    for label in known:
        if label.status is FactStatus.VIOLATED:
            stages.warn(f"{label.source}: '{label.text}' is {label.label}")
    return AnalysisResult(
        kernel=kernel,
        image=run.image,
        platform=run.platform,
        platform_reason=run.reason,
        facts_files=tuple(str(f) for f in run.files),
        entries=results,
        latency=interrupt_latency(run.image, run.platform, results, options.interrupts),
        stages=stages.done(),
        unbounded=unbounded,
        facts=known,
        located=run.facts,
        configuration=configuration(options, run.platform),
    )


@contextmanager
def finishing() -> Iterator[list[Future[None]]]:
    """Futures that are awaited on exit, also after an error."""
    waiting: list[Future[None]] = []
    try:
        yield waiting
    finally:
        for future in waiting:
            future.result()


def all_cached_or_prepared(run: AnalysisRun, later: list[Future[None]]) -> list[Prepared]:
    """The results of the stages for all entries; those that are not cached run in parallel.

    This process stores its results in the background; ``later`` gets the futures.
    """
    known = {name: cached_entry(run, name, address) for name, address in run.entries.items()}
    missing = [name for name, found in known.items() if found is None]
    if missing:
        import_module("wcet.analysis.preparation")  # once here instead of in each process

    def one(index: int) -> tuple[Prepared, dict[str, StageUse]]:
        here = os.getpid() == process
        own = run if here else replace(run, stages=StageLog(verbose=False))
        name = missing[index]
        found, _ = computed(own, name, run.entries[name])
        put = partial(run.store.put, name, run.entries[name], found)
        if here:
            later.append(submit(put))
        else:
            put()
        return found, {} if here else own.stages.done()

    process = os.getpid()
    for name, (found, used) in zip(missing, parallel_map(one, [1] * len(missing), 2), strict=True):
        known[name] = found
        run.stages.add(used)
    return [found for found in known.values() if found is not None]


def cached_or_prepared(run: AnalysisRun, name: str, address: int) -> Prepared:
    """The results of the stages before the integer program, computed or cached."""
    return cached_or_valued(run, name, address)[0]


def cached_or_valued(
    run: AnalysisRun, name: str, address: int
) -> tuple[Prepared, ValuedEntry | None]:
    """The same with the values of the entry, if they had to be computed."""
    found = cached_entry(run, name, address)
    if found is not None:
        return found, None
    found, entry = computed(run, name, address)
    run.store.put(name, address, found)
    return found, entry


def cached_entry(run: AnalysisRun, name: str, address: int) -> Prepared | None:
    """The cached results of the stages before the integer program, if any."""
    with run.stages.stage("recall", name):
        return run.store.get(name, address)


def computed(run: AnalysisRun, name: str, address: int) -> tuple[Prepared, ValuedEntry]:
    """The results of the stages before the integer program, and the values among them.

    With provisional bounds of loops they are cut off, so that they are not stored; so are all that
    a survey gets from summaries, whose bounds have no classes of results there.

    The stages are imported here: a cached entry needs none of them, and they are half of a start's
    imports.
    """
    from wcet.analysis.entry_stages import AnalysisTarget
    from wcet.analysis.preparation import prepared, valued

    entry = valued(AnalysisTarget(run, name, address), preemptible=True)
    found = prepared(entry)
    provisional = run.loops is not None and (run.loops.met or found.solved)
    return replace(found, cut_off=found.cut_off or provisional), entry


def all_unbounded(entries: Mapping[str, UnboundedLoop]) -> UnboundedLoop:
    """One error for all entries, equal ones together."""
    names: dict[tuple[str, str | None], list[str]] = {}
    for name, error in entries.items():
        names.setdefault((error.message, error.hint), []).append(name)
    hint = next(iter(entries.values())).hint
    texts = [f"entry {', '.join(who)}: {message}" for (message, _), who in names.items()]
    unanswered = any(isinstance(error, UnansweredLoop) for error in entries.values())
    missing = dict.fromkeys(m for error in entries.values() for m in error.missing)
    kind = UnansweredLoop if unanswered else UnboundedLoop
    messages: dict[str, list[str]] = {}
    for name, error in entries.items():
        for message in error.paragraphs or (error.message,):
            messages.setdefault(message, []).append(name)
    each = [f"entry {', '.join(who)}: {message}" for message, who in messages.items()]
    return kind("; ".join(texts), hint=hint, missing=tuple(missing), paragraphs=each)


def unanswered(
    image: Image, found: Sequence[tuple[Supergraph, Sequence[LoopBound]]]
) -> dict[str, None]:
    """Failures of the solver despite a bound, each place and failure once."""
    return {
        f"{image.place(graph.nodes[graph.loops[b.loop].header].block.addr)}: {b.unanswered}": None
        for graph, bounds in found
        for b in bounds
        if b.unanswered
    }


def interrupt_latency(
    image: Image, platform: Platform, results: Mapping[str, EntryResult], together: int = 1
) -> InterruptLatency | None:
    """The longest masked path plus the interrupt path (rules 21, 32); None if it is unknown.

    An interrupt may arrive on any masked path, also on the interrupt path. In user mode it is taken
    at once: the latency is the interrupt path. On a masked path it waits for the remaining path.
    ``together``: the number of interrupts that may be pending at once; the last one waits for the
    others. The latency is known only if all entries of the platform, including the interrupt, have
    a number as bound and stay masked up to the ends of their paths (rule 33).
    """
    if INTERRUPT not in platform.entries or not platform.entries.keys() <= results.keys():
        return None
    if any(result.parametric or result.unmasking for result in results.values()):
        return None
    longest = max(results, key=lambda name: results[name].cycles)
    handed = sorted({exit for result in results.values() for exit in _handing_over(result)})
    assumptions = (
        OTHERS_FIRST.of(others=together - 1),
        TAKEN_IMMEDIATELY.of(),
        *platform.delay_assumption(),
        *((HANDED_OVER.of(exits=", ".join(map(image.place, handed))),) if handed else ()),
    )
    return InterruptLatency(
        longest=longest,
        longest_cycles=results[longest].cycles,
        interrupt=INTERRUPT,
        interrupt_cycles=results[INTERRUPT].cycles,
        together=together,
        delay=platform.controller_delay or 0,
        assumptions=assumptions,
    )


def _handing_over(result: EntryResult) -> set[int]:
    """Ends of paths without an exception return, where the kernel itself continues."""
    graphs = [paths.graph for paths in result.paths]
    ends = ((graph, graph.nodes[n].block) for graph in graphs for n in graph.exits)
    exits = {
        block.last
        for graph, block in ends
        if (block.exits or block.returns)
        and all(graph.guidance.replaced[callee].returns for callee in block.passes)
    }
    exits |= {end for graph in graphs for r in graph.guidance.replaced.values() for end in r.exits}
    return {last.addr for last in exits if last.flow is not ControlFlow.EXCEPTION_RETURN}
