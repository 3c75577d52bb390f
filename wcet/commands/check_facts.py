"""``wcet check-facts``: every fact against recorded executions."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.core import issue_width
from quoll.errors import InputError
from quoll.facts.count_facts import LoopParameter
from quoll.facts.memory_facts import UnknownPointsIntoFact
from quoll.recordings.address_trace import read_recording
from quoll.recordings.own_objects import refuse_hits
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.entry_stages import AnalysisTarget, whole_graph
from wcet.analysis.fact_evidence import (
    FactEvidence,
    FactLabel,
    FactOutcome,
    FactStatus,
    labels,
    proved_loops,
)
from wcet.analysis.preparation import valued
from wcet.analysis.prepared import Prepared
from wcet.analysis.proved_invariants import with_proofs
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.executions.fact_check import FactRecord, Walks, check_facts
from wcet.project_options import given_for
from wcet.request import add_analysis, add_command, add_entries, add_json, requested

__all__ = ["add_to"]

SCHEMA_VERSION = 1
VIOLATED = 1  # exit status

DESCRIPTION = """\
Evaluate every fact on recorded executions of a kernel.

TRACE is a recording by kernels/recorder of the same KERNEL.ELF. Each complete execution is
followed through the graph of its entry. Constraints are checked in every invocation, loops are
counted from entry to entry. An execution refutes a fact if it takes an excluded branch, block or
target, accesses memory outside the region of a pointer or of accesses of unknown address, or stores
into a read-only region. A violation is printed with its position, and the exit status is 1. A store
of unknown address that hits an object under assumption S8 is an error. TRACE may also be a text
file of executed addresses ('wcet help hardware-traces'): it tests control, loops and counts, and
says nothing about memory.

A fact is then labelled: proved (a loop's number, by the analysis), survived N executions (that
reached its places), or assumed. 'wcet analyse' prints the labels too.
"""

EXAMPLES = """\
examples:
  kernels/bilby/run kzm-after tests -plugin build/recorder/librecorder.so,out=tests.trace
  wcet check-facts build/bilby/kzm-after/kernel.elf tests.trace
  wcet check-facts kernel.elf monday.trace tuesday.trace --facts my.facts
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "evaluate every fact on recorded executions"
    p = add_command(commands, "check-facts", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument("kernel", type=Path, metavar="KERNEL.ELF", help="the executed kernel")
    p.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="recordings")
    add_entries(p)
    add_json(p)
    add_analysis(p)


@dataclass(frozen=True, slots=True)
class CheckedRecording:
    """One recording."""

    path: Path
    digest: str
    records: tuple[FactRecord, ...]
    executions: int


def run(options: argparse.Namespace) -> int:
    """Check every execution against the facts; returns the exit status."""
    stages = StageLog(verbose=not options.quiet)
    given_for(options)
    wanted = requested(options, options.entry)
    proving = replace(wanted.bounds, prove_stated=True)
    wanted = replace(wanted, vivu=replace(wanted.vivu, unroll=False), bounds=proving)
    image = wanted.loaded_memory.image(options.kernel)
    recordings = [(path, read_recording(path, image)) for path in options.traces]
    analysis = AnalysisRun.begin(options.kernel, wanted, stages)
    starts = {address & ~1 for address in analysis.entries.values()}
    traces = [(path, recording.from_entries(starts)) for path, recording in recordings]
    recorded = {execution.entry for _, trace in traces for execution in trace.executions}
    entries = {name: a for name, a in analysis.entries.items() if a & ~1 in recorded}
    if not entries:
        raise InputError(
            "no execution starts at an entry",
            hint="was this kernel recorded? --entry names its entries",
        )
    prepared = {
        address & ~1: cached_or_prepared(analysis, name, address)
        for name, address in entries.items()
    }
    assumed = with_proofs(analysis, (a for found in prepared.values() for a in found.assumptions))
    for path, trace in traces:
        refuse_hits(analysis.image, assumed, trace, path.name)
    graphs = {address & ~1: whole_graph(analysis, address) for address in entries.values()}
    unknown = unknown_accesses(analysis, entries)
    walks = {address: walks_of(found) for address, found in prepared.items()}
    checked = []
    for path, trace in traces:
        with stages.stage("check", path.name):
            records, count = check_facts(
                analysis.image,
                analysis.facts,
                graphs,
                path.name,
                trace,
                unknown,
                walks,
                issue_width(analysis.platform.timing),
            )
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        checked.append(CheckedRecording(path, digest, tuple(records), count))
    stages.done()
    evidence = FactEvidence(wanted.store, analysis.image)
    for position, fact in enumerate(analysis.facts.facts):
        found = [(c.digest, c.records[position]) for c in checked]
        evidence.add(fact, {d: FactOutcome(r.reached, r.first or None) for d, r in found})
    bounds = [(paths.graph, paths.bounds) for p in prepared.values() for paths in p.paths]
    proved = proved_loops(analysis.image, analysis.facts, bounds)
    known = labelled(checked, labels(analysis.facts, evidence, proved), not wanted.store.enabled)
    publish_document(options, lambda: as_json(checked, known), lambda: as_text(checked, known))
    return VIOLATED if any(r.broken for c in checked for r in c.records) else 0


def walks_of(prepared: Prepared) -> Walks:
    """The most iterations of loops, by length of the list that a fact states."""
    found: dict[int, int] = {}
    for paths in (*prepared.paths, *(one.paths for one in prepared.summaries)):
        for bound in paths.bounds:
            if bound.assumes and bound.bound is not None:
                header = paths.graph.nodes[paths.graph.loops[bound.loop].header].block.addr
                found[header] = max(bound.bound, found.get(header, 0))
    return found


def unknown_accesses(analysis: AnalysisRun, entries: Mapping[str, int]) -> frozenset[int]:
    """The instructions that a fact about accesses of unknown address concerns."""
    if not analysis.facts.of(UnknownPointsIntoFact):
        return frozenset()
    coded = (AnalysisTarget(analysis, name, address) for name, address in entries.items())
    return frozenset().union(*(valued(code).values.unknown for code in coded))


def labelled(
    checked: Sequence[CheckedRecording], known: Sequence[FactLabel], unrecorded: bool
) -> list[FactLabel]:
    """The labels of all runs; without a store, the labels of this one."""
    found = []
    for position, label in enumerate(known):
        records = [c.records[position] for c in checked]
        reached = sum(r.reached for r in records)
        broken = next((r.first for r in records if r.first), "")
        if unrecorded and label.status is FactStatus.ASSUMED and reached:
            label = FactLabel(label.fact, FactStatus.SURVIVED, reached)
        if broken:
            label = FactLabel(label.fact, FactStatus.VIOLATED, broken=broken)
        found.append(label)
    return found


def as_text(checked: Sequence[CheckedRecording], known: Sequence[FactLabel]) -> list[str]:
    """The recordings, then a row per fact, then violations."""
    rows = [f"{c.path}: {c.executions:,} executions ran to their end" for c in checked]
    rows += ["", f"{'reached':>9}{'most':>7}  fact"]
    for position, label in enumerate(known):
        records = [c.records[position] for c in checked]
        seen = [r.most for r in records if r.most is not None]
        most = "" if not seen else f"{max(seen):,}"
        rows.append(
            f"{sum(r.reached for r in records):>9,}{most:>7}  "
            f"{label.source}: {label.text}: {label.brief}"
        )
        fact = records[0].fact
        if isinstance(fact, LoopParameter) and seen:
            rows.append(f"{'':>18}{fact.name} is at least {max(seen) - fact.plus}")
    for c in checked:
        rows += [
            f"VIOLATED  {r.fact.source}: {r.fact}: by {r.broken:,} executions; first {r.first}"
            for r in c.records
            if r.broken
        ]
    return rows


def as_json(checked: Sequence[CheckedRecording], known: Sequence[FactLabel]) -> dict[str, object]:
    """The recordings and labels as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "recordings": [
            {"path": str(c.path), "sha256": c.digest, "executions": c.executions} for c in checked
        ],
        "facts": [
            {
                "source": label.source,
                "fact": label.text,
                "label": label.brief,
                "reached": sum(c.records[i].reached for c in checked),
                "most": max((c.records[i].most or 0 for c in checked), default=0) or None,
                "violations": sum(c.records[i].broken for c in checked),
                "first_violation": next((f for c in checked if (f := c.records[i].first)), None),
            }
            for i, label in enumerate(known)
        ],
    }
