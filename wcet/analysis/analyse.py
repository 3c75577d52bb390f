"""The pipeline behind ``wcet analyse``, one stage a line: the index of the project.

ELF -> Image -> Program -> Supergraph -> Values -> Classification -> Costs
    -> LoopBounds -> Solution -> WorstPath -> Result
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ilp.constraints.constraint import (
    Constraint,
    unused_constraints,
)
from loopbounds.proof.bound import LoopBound
from quoll.errors import UnansweredLoop, UnboundedLoop
from quoll.facts.applied import unused_guidance
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.latency import interrupt_latency
from wcet.analysis.options import Options
from wcet.analysis.prepared import Prepared
from wcet.analysis.result import EntryResult, Result
from wcet.analysis.run import Run
from wcet.analysis.stages import Stages
from wcet.analysis.survival import Survival, labels, proved_counts, proved_depths, proved_loops

__all__ = ["analyse", "recalled_or_prepared"]


def analyse(kernel: Path, options: Options, stages: Stages) -> Result:
    """Bound every entry that ``options`` asks for.

    Raises a WcetError of the class that says what is missing; nothing is then written. A loop
    without a bound leaves out only the entries that reach it, unless these are all.
    """
    run = Run.begin(kernel, options, stages)
    results: dict[str, EntryResult] = {}
    unbounded: dict[str, UnboundedLoop] = {}
    constraints: list[tuple[Constraint, ...]] = []
    prepared: list[Prepared] = []
    for name, address in run.entries.items():
        prepared.append(recalled_or_prepared(run, name, address))
        try:
            results[name] = run.entry(name, address, prepared[-1], constraints)
        except UnboundedLoop as error:
            unbounded[name] = error
    if not results:
        raise all_unbounded(unbounded)
    used = [text for entry in results.values() for text in entry.assumptions]
    for fact in unused_constraints(run.facts, constraints, used):
        stages.warn(f"{fact.source}: no analysed entry is constrained by '{fact.source.text}'")
    bounds = [(paths.graph, paths.bounds) for found in prepared for paths in found.paths]
    for text in unanswered(run.image, bounds):
        stages.warn(text)
    proved = proved_depths(run.image, run.facts, [graph for graph, _ in bounds])
    for unused in unused_guidance(run.facts, used):
        if str(unused.source) not in proved:
            stages.warn(f"{unused.source}: no analysed entry is changed by '{unused.source.text}'")
    proved |= proved_loops(run.image, run.facts, bounds)
    proved |= proved_counts(run.image, run.facts, prepared)
    known = labels(run.facts, Survival(options.store, run.image), proved)
    for label in known:
        if label.violated:
            stages.warn(f"{label.source}: '{label.text}' is {label.label}")
    return Result(
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
    )


def recalled_or_prepared(run: Run, name: str, address: int) -> Prepared:
    """What the stages before the integer program find, or found in an earlier run.

    They are imported here: an entry that is recalled needs none of them, and they are half of what
    a start imports.
    """
    with run.stages.stage("recall", name):
        known = run.store.get(name, address)
    if known is not None:
        return known
    from wcet.analysis.preparation import Preparation

    found = Preparation(run).prepare(name, address)
    with run.stages.stage("keep", name):
        run.store.put(name, address, found)
    return found


def all_unbounded(entries: Mapping[str, UnboundedLoop]) -> UnboundedLoop:
    """One error for all entries, equal ones together."""
    names: dict[tuple[str, str | None], list[str]] = {}
    for name, error in entries.items():
        names.setdefault((error.message, error.hint), []).append(name)
    hint = next(iter(entries.values())).hint
    texts = [f"entry {', '.join(who)}: {message}" for (message, _), who in names.items()]
    unanswered = any(isinstance(error, UnansweredLoop) for error in entries.values())
    return (UnansweredLoop if unanswered else UnboundedLoop)("; ".join(texts), hint=hint)


def unanswered(
    image: Image, found: Sequence[tuple[Supergraph, Sequence[LoopBound]]]
) -> dict[str, None]:
    """What the solver failed at though there is a bound: once for each place and failure."""
    return {
        f"{image.place(graph.nodes[graph.loops[b.loop].header].block.addr)}: {b.unanswered}": None
        for graph, bounds in found
        for b in bounds
        if b.unanswered
    }
