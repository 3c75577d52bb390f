"""``wcet cache``: cache hits, competing lines, and the most expensive references."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from cache.reference import CacheClassification, HitClass, Reference, ReferenceKind
from quoll.errors import UsageError
from quoll.facts.regions import MemoryRegions
from wcet.analysis.analysis import analyse
from wcet.analysis.entries import find_entry
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.reports.references import (
    ClassifiedEntry,
    WeighedReference,
    known_line,
    on_all_paths,
    on_worst_path,
    weighed,
)
from wcet.request import (
    add_analysis,
    add_command,
    add_count,
    add_entries,
    add_json,
    add_kernel,
    requested,
)

__all__ = ["add_to"]

SCHEMA_VERSION = 1
DATA = (ReferenceKind.LOAD, ReferenceKind.STORE)
CODE = (ReferenceKind.FETCH, ReferenceKind.PREFETCH)

DESCRIPTION = """\
Print how the caches are used on the worst path of each ENTRY: references by class, lines
that compete in a set, knowledge of data addresses, and the costliest references.

With FUNCTION, print its instructions with the class of each reference in every calling context:
  AH  always hits                   FM  each line misses at most once per entry of a loop
  AM  always goes past the caches   NC  not classified: charged as a miss
  PL  misses once per line that a loop's pointer passes
    paid  credited miss: charged before as a possible miss that did not happen
"""

EXAMPLES = """\
examples:
  wcet cache kernel.elf --entry syscall
  wcet cache kernel.elf cspace_lookup --entry syscall
  wcet cache kernel.elf --platform board.toml --json - | jq '.entries.interrupt.data_shares'
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "cache hits, set pressure, and the most expensive references"
    p = add_command(commands, "cache", text, DESCRIPTION, EXAMPLES, run)
    add_kernel(p)
    p.add_argument(
        "function", nargs="?", metavar="FUNCTION", help="print its instructions with their classes"
    )
    add_entries(p)
    add_count(p, "--most", 1, "references that are listed (default: 12)", default=12)
    add_json(p)
    add_analysis(p)


def run(options: argparse.Namespace) -> int:
    """Classify, and print."""
    wanted = requested(options, options.entry)
    stages = StageLog(verbose=not options.quiet)
    analysis = AnalysisRun.begin(options.kernel, wanted, stages)
    if options.function:
        found = {
            name: on_all_paths(analysis, name, addr) for name, addr in analysis.entries.items()
        }
        addr = find_entry(analysis.image, analysis.platform, options.function) & ~1
        stages.done()
        listing = {name: instructions(analysis, entry, addr) for name, entry in found.items()}
        if not any(listing.values()):
            raise UsageError(
                f"{options.function} is never executed by {', '.join(found)}",
                hint="'wcet callgraph' shows who calls it",
            )
        document = {"schema_version": SCHEMA_VERSION, "entries": listing}
        publish_document(options, lambda: document, lambda: function_text(listing))
        return 0
    results = analyse(options.kernel, wanted, stages)
    reports = {
        name: report(analysis, on_worst_path(analysis, name, result), options.most)
        for name, result in results.entries.items()
    }
    stages.done()
    summary = {"schema_version": SCHEMA_VERSION, "entries": reports}
    publish_document(options, lambda: summary, lambda: summary_text(analysis, reports))
    return 0


def report(analysis: AnalysisRun, entry: ClassifiedEntry, most: int) -> dict[str, Any]:
    """The printed data of an entry, as JSON."""
    hierarchy = analysis.platform.hierarchy
    references = list(weighed(entry))
    by_class: dict[str, Counter[str]] = {}
    shares: Counter[str] = Counter()
    for w in references:
        by_class.setdefault(w.reference.kind.value, Counter())[class_of(w.reference)] += (
            w.executions
        )
        if w.reference.kind in DATA:
            kind = address_kind(w.reference, analysis.facts.regions, hierarchy.l1d.line_bytes)
            shares[kind] += w.executions
    total = sum(shares.values()) or 1
    return {
        "references": {kind: dict(classes) for kind, classes in by_class.items()},
        "data_shares": {kind: shares[kind] / total for kind in SHARES},
        "pressure": {
            level: {str(n): sets for n, sets in sorted(found.items()) if sets}
            for level, kinds, side in (("l1i", CODE, hierarchy.l1i), ("l1d", DATA, hierarchy.l1d))
            for found in [pressure(entry.classes, kinds, side.sets, side.line_bytes)]
        },
        "costliest": [costly(analysis, found) for found in costliest(references, most)],
    }


def costly(analysis: AnalysisRun, found: list[WeighedReference]) -> dict[str, Any]:
    """One of the costliest instructions, as JSON values."""
    first = found[0]
    return {
        "place": analysis.image.place(first.insn.addr),
        "text": first.insn.text,
        "kind": first.reference.kind.value,
        "address": address_text(first.reference) if len(found) == 1 else None,
        "contexts": len({w.node for w in found}),
        "executions": sum(w.executions for w in found),
        "cycles": sum(w.cycles for w in found),
    }


def class_of(reference: Reference) -> str:
    """The class at L1, with L2 where it always hits."""
    name = "paid" if reference.credited else reference.l1.name
    beyond = reference.due and reference.l2 is HitClass.AH
    return f"{name} L2" if beyond else name


def address_text(reference: Reference) -> str:
    """The known part of the address."""
    if reference.low is None:
        return "unknown + constant" if reference.symbolic else "unknown"
    if reference.low == reference.high:
        return f"{reference.low:#x}"
    return f"{reference.low:#x}..{reference.high:#x}"


def instructions(analysis: AnalysisRun, entry: ClassifiedEntry, addr: int) -> list[dict[str, Any]]:
    """The instructions of a function, each with classes and addresses over all contexts."""
    seen: dict[int, dict[str, Any]] = {}
    for index, node in enumerate(entry.graph.nodes):
        if entry.graph.contexts[node.context].function & ~1 != addr:
            continue
        for position, insn in enumerate(node.block.insns):
            row = seen.setdefault(
                insn.addr,
                {"place": analysis.image.place(insn.addr), "text": insn.text, "references": {}},
            )
            for reference in entry.classes.references[index]:
                if reference.insn == position:
                    key = f"{reference.kind.value} {address_text(reference)}"
                    classes = row["references"].setdefault(key, {})
                    name = class_of(reference)
                    classes[name] = classes.get(name, 0) + 1
    return [seen[at] for at in sorted(seen)]


def function_text(listing: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """The text of the instructions, entry by entry."""
    for name, rows in listing.items():
        if not rows:
            continue
        yield f"entry {name}"
        for row in rows:
            notes = "; ".join(
                f"{what} {' '.join(f'{n}x{c}' for c, n in sorted(classes.items()))}"
                for what, classes in row["references"].items()
            )
            yield f"  {row['place'].split()[0]}  {row['text']:<34.34}  {notes}".rstrip()


def summary_text(analysis: AnalysisRun, reports: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The text of the tables of all entries."""
    hierarchy = analysis.platform.hierarchy
    yield f"platform  {analysis.platform.name}, caches {hierarchy.policy.value}"
    for name, found in reports.items():
        yield ""
        yield f"entry {name}: references on the worst path"
        for kind, classes in found["references"].items():
            counts = ", ".join(f"{n:,} {c}" for c, n in sorted(classes.items()))
            yield f"  {kind:<11} {counts}"
        shares = ", ".join(f"{k} {100 * s:.1f} %" for k, s in found["data_shares"].items() if s)
        yield f"  data addresses: {shares or 'none'}"
        for level, sets in found["pressure"].items():
            counts = ", ".join(f"{n} lines in {count} sets" for n, count in sets.items())
            yield f"  {level} competition: {counts}"
        yield "      cycles       runs  contexts  costliest"
        for row in found["costliest"]:
            yield (
                f"  {row['cycles']:>10,} {row['executions']:>10,} {row['contexts']:>9}  "
                f"{row['place']}: {row['text']} ({row['kind']})"
            )


PAGE = 4096
SHARES = ("exact line", "within 4 KiB", "named region", "symbolic hit", "unknown")


def address_kind(reference: Reference, regions: MemoryRegions, line_bytes: int) -> str:
    """The kind of a data reference, one of ``SHARES``."""
    low, high = reference.low, reference.high
    if low is not None and high is not None:
        if low // line_bytes == high // line_bytes:
            return "exact line"
        if high - low < PAGE:
            return "within 4 KiB"
    if reference.symbolic and reference.l1 is HitClass.AH:
        return "symbolic hit"
    if low is not None and high is not None and regions.named(low, high):
        return "named region"
    return "unknown"


def costliest(
    references: Iterator[WeighedReference] | Sequence[WeighedReference], most: int
) -> list[list[WeighedReference]]:
    """The instructions with the costliest references, each with its references in all contexts."""
    by_insn: dict[tuple[int, ReferenceKind], list[WeighedReference]] = {}
    for found in references:
        by_insn.setdefault((found.insn.addr, found.reference.kind), []).append(found)
    ranked = sorted(by_insn.values(), key=lambda found: -sum(w.cycles for w in found))
    return [found for found in ranked[:most] if sum(w.cycles for w in found)]


def competing(
    classes: CacheClassification, kinds: Sequence[ReferenceKind], sets: int, line_bytes: int
) -> dict[int, set[int]]:
    """The distinct referenced lines of known address, by set."""
    lines: dict[int, set[int]] = {}
    every = (*classes.references, *classes.prefetches, *classes.leaving.values())
    for reference in (r for references in every for r in references if r.kind in kinds):
        line = known_line(reference, line_bytes)
        if line is not None:
            lines.setdefault(line % sets, set()).add(line)
    return lines


def pressure(
    classes: CacheClassification, kinds: Sequence[ReferenceKind], sets: int, line_bytes: int
) -> Counter[int]:
    """The number of sets, by number of distinct lines of known address that compete in them."""
    lines = competing(classes, kinds, sets, line_bytes)
    found = Counter(map(len, lines.values()))
    found[0] = sets - len(lines)
    return found
