"""``wcet loops``: every loop of a binary in every calling context, with its bound or why not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from loopbounds.bounds import bound_loops, bounds_by_counting
from loopbounds.budgets.budget import Budget
from loopbounds.execution.concrete import concrete_execution
from loopbounds.proof.bound import LoopBound, NotWhilePending, substituted
from loopbounds.proof.options import BoundOptions
from loopbounds.recursion import find_depths, with_depths
from loopbounds.written_loops import loops_not_found
from quoll.assumptions import MEMORY_MAP, Assumption, table
from quoll.cfg.cfg import Program
from quoll.errors import InputError, SolverError, UnboundedLoop, UsageError, WcetError
from quoll.exchange.otawa_xml import write_ffx
from quoll.extraction.extract import extract
from quoll.facts import Facts, load
from quoll.facts.annotations import read_annotations
from quoll.facts.read import uncontradicted
from quoll.facts.regions import Regions
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.listing.listing import loops_text
from quoll.preemption.pending import find_pending_tests
from quoll.preemption.segments import segments
from quoll.spelling import did_you_mean
from quoll.values.exception_returns import refuse_returns_to_code
from quoll.values.inlined import inlined
from quoll.values.status_words import check_status_words
from quoll.values.values import Values
from wcet.analysis.entries import ALL, find_entries, path_ends
from wcet.analysis.interrupts import serves_interrupts
from wcet.analysis.preparation import refuse_unmodelled
from wcet.analysis.raw_memory import add_memory, extra, refuse_several, starting
from wcet.analysis.stages import Stages
from wcet.atomic import publish
from wcet.numbers import seconds
from wcet.platforms import platform as platforms
from wcet.platforms.platform import Platform
from wcet.platforms.processor import check_processor
from wcet.request import (
    add_cache,
    add_command,
    add_facts,
    add_force_core,
    add_proofs,
    add_sources,
    kept,
)

__all__ = ["add_to"]

SCHEMA_VERSION = 1

DESCRIPTION = """\
List every loop that is reached from the entries, in each calling context, with its bound: the
most executions of its header each time it is entered from outside. Each bound comes with its
method and evidence:

  nusmv    proved by the model checker; "exact" when an execution of the model reaches it for the
           stated initial ranges, else "not known to be tight"
  smt      the same, proved by the SMT solver: NuSMV is missing, or --checker smt
  fact     stated in a facts file, and assumed; with --prove-stated only where less is proved
  pending  it does not go round while an interrupt is pending: code in it tests for one, and each
           path from the arrival of an interrupt on is bounded by itself, as 'wcet analyse' does it
  -        none: the reason names the values that nothing bounds, and the fact that would help
"""

EXAMPLES = """\
examples:
  wcet loops build/bilby/kzm-after/kernel.elf
  wcet loops program.elf --entry main --json - | jq '.loops[] | select(.bound == null)'
  wcet loops program.elf --smv models/     then check any of them: NuSMV -source ... models/*.smv
  wcet loops program.elf --nest            only the nesting, without bounds: fast

exit status: 0, or 6 when a loop has no bound, 8 if because the solver is missing or failed (the
listing is complete all the same). An entry that 'wcet analyse' refuses is left out, and its error
gives the status
"""

WIDTH = 24  # of the progress bar


@dataclass(frozen=True, slots=True)
class Listed:
    """A loop in one context."""

    entry: str
    graph: Supergraph
    loop: SuperLoop
    bound: LoopBound

    @property
    def header(self) -> int:
        """Address."""
        return self.graph.nodes[self.loop.header].block.addr


@dataclass(frozen=True, slots=True)
class AnalysedEntry:
    """An entry in all its contexts, and the bounds of its loops."""

    name: str
    graph: Supergraph
    bounds: tuple[LoopBound, ...]
    assumptions: tuple[Assumption, ...] = ()

    def listed(self) -> list[Listed]:
        """Its loops, one by one."""
        pairs = zip(self.graph.loops, self.bounds, strict=True)
        return [Listed(self.name, self.graph, loop, bound) for loop, bound in pairs]

    def depths(self, image: Image) -> list[dict[str, Any]]:
        """How deep the recursion goes that it reaches."""
        reached = {self.graph.contexts[node.context].function for node in self.graph.nodes}
        return [
            {
                "entry": self.name,
                "function": _function(image, function),
                "activations": depth.activations,
                "evidence": "; ".join(map(str, depth.facts)) or depth.evidence,
            }
            for function, depth in sorted(self.graph.guidance.depths.items())
            if function in reached
        ]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    p = add_command(
        commands,
        "loops",
        "the loops of a binary in every context, with bounds, methods and evidence",
        DESCRIPTION,
        EXAMPLES,
    )
    p.add_argument("binary", type=Path, metavar="FILE.ELF", help="any little-endian ARM ELF")
    p.add_argument(
        "--entry",
        action="append",
        default=[],
        metavar="ENTRY",
        help="an entry of the platform, a symbol, an address, or 'all'; repeatable (default: the "
        "entries of the platform if the ELF has them, else every function symbol, each by itself)",
    )
    p.add_argument(
        "--platform",
        metavar="NAME|FILE.toml",
        help="names the entries and where paths end (default: by the ELF's build attributes)",
    )
    add_force_core(p)
    add_memory(p)
    add_sources(p)
    add_facts(p, "bounds that are known; repeatable; program.facts beside program.elf is read too")
    p.add_argument("--nest", action="store_true", help="only the loops of each function, nested")
    p.add_argument("--json", metavar="FILE", help="write loops[] as JSON ('-': standard output)")
    p.add_argument("--ffx", metavar="FILE", help="write the bounds as flow facts for OTAWA, too")
    p.add_argument("--smv", type=Path, metavar="DIR", help="keep the proved models here")
    p.add_argument(
        "--time-limit",
        type=seconds("--time-limit"),
        default=60.0,
        metavar="SECONDS",
        help="processor time for each loop; a loop that needs more is not bounded (default: 60)",
    )
    add_proofs(p)
    add_cache(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List, then say by the exit status whether all are bounded."""
    image = extra(options).image(options.binary)
    beside = options.binary.with_suffix(".facts")
    automatic = not options.no_facts and beside.is_file() and beside not in options.facts
    facts = loaded = load((*([beside] if automatic else []), *options.facts))
    stages = Stages(verbose=not options.quiet)
    if not options.no_facts:
        written = read_annotations(image, options.binary, options.source_dir or Path())
        facts = uncontradicted((*facts.facts, *written.facts))
        for text in (*loaded.remarks, *written.warnings):
            stages.warn(text)
    platform, entries = chosen_entries(image, options)
    forced: tuple[Assumption, ...] = ()
    if platform is not None:
        if options.platform:
            force = options.force_core
            assumed = check_processor(
                image.attributes, platform.name, platform.processor, force=force
            )
            forced = assumed if force else ()
        mapped = platform.with_regions(Regions.of(facts, image))
        image = image.mapped(mapped.hierarchy.memory, platform.processor.version)
    ends = None if platform is None else path_ends(image, platform)
    program = extract(image, sorted(set(entries.values())), facts, ends)
    if options.nest:
        publish(options, [], lambda: loops_text(program, image))
        return 0
    bounds = BoundOptions(
        store=kept(options),
        models=options.smv,
        budget=Budget(seconds=max(1, round(options.time_limit))),
        checker=options.checker,
        prove_stated=options.prove_stated,
    )
    called = platform is None and not options.entry
    if options.from_reset:
        refuse_several(entries)
    listing = _Listing(
        image,
        program,
        ends,
        facts,
        platform,
        bounds,
        stages,
        called,
        options.from_reset,
        bool(options.force_core),
    )
    analysed = list(listing.entries(entries))
    stages.done()
    found = [item for entry in analysed for item in entry.listed()]
    removed = (r.fact for entry in analysed for r in entry.graph.guidance.removed)
    given = (a for entry in analysed for a in entry.assumptions)
    proofs = (a for item in found for a in item.bound.assumptions)
    regions = Regions.of(facts, image)
    told = platform is not None and any(r.fixed and r.physical for r in image.memory.regions)
    board = (MEMORY_MAP.of(name=platform.name),) if platform and told else ()
    known = (*board, *forced, *regions.assumptions, *program.assumptions, *removed, *given, *proofs)
    assumptions = tuple(dict.fromkeys(known))
    depths = [depth for entry in analysed for depth in entry.depths(image)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "loops": [as_json(image, item) for item in found],
        "recursion": depths,
        "assumptions": list(map(str, assumptions)),
        "assumption_kinds": table(assumptions),
    }
    lines = [
        f"recursion: {d['entry']}: at most {d['activations']} activations of {d['function']} "
        f"at a time: {d['evidence']}"
        for d in depths
    ]
    lines += [f"assumed: {a}" for a in assumptions]
    publish(
        options,
        [
            (options.json, lambda: json.dumps(document, indent=1) + "\n"),
            (options.ffx, lambda: to_ffx(image, found, options.binary.name)),
        ],
        lambda: "".join(f"{line}\n" for line in (*as_text(image, found), *lines)),
    )
    unanswered = dict.fromkeys(
        f"{image.place(item.header)}: {item.bound.unanswered}"
        for item in found
        if item.bound.unanswered
    )
    graphs = [entry.graph for entry in analysed]
    marked = substituted(options.checker, (item.bound for item in found))
    for text in (*marked, *unanswered, *loops_not_found(graphs, image, facts)):
        stages.warn(text)
    if listing.refused:
        return listing.refused[0].exit_status
    if any(item.bound.failed for item in found):
        return SolverError.exit_status
    return UnboundedLoop.exit_status if any(item.bound.bound is None for item in found) else 0


def chosen_entries(
    image: Image, options: argparse.Namespace
) -> tuple[Platform | None, dict[str, int]]:
    """The platform, if one fits, and the addresses of the entries."""
    try:
        platform = (
            platforms.load(options.platform)
            if options.platform
            else platforms.for_image(image.cpu, image.attributes.arch)[0]
        )
    except InputError:
        if options.platform:
            raise
        platform = None
    if platform is not None:
        try:
            return platform, find_entries(image, platform, tuple(options.entry) or (ALL,))
        except UsageError:
            if options.entry:
                raise
    names = options.entry or [
        s.name if alone else hex(s.addr | s.thumb)
        for s in image.symbols.symbols
        if s.kind == "func" and image.is_executable(s.addr)
        # of several functions of one name, all are there, by their addresses
        if (alone := image.only_symbol(s.name) == s) or image.only_symbol(s.name) is None
    ]
    return None, {name: address(image, name) for name in names or [hex(image.entry)]}


def address(image: Image, name: str) -> int:
    """Of a symbol or a number."""
    symbol = image.symbol(name)
    if symbol is not None:
        return symbol.addr | symbol.thumb
    try:
        return int(name, 0)
    except ValueError:
        raise UsageError(
            f"no entry {name!r}: not a symbol of {image.sha256[:8]}",
            hint=did_you_mean(name, image.symbols.names()) or None,
        ) from None


@dataclass(frozen=True, slots=True)
class _Listing:
    """What the analyses of all entries share.

    ``called``: entries are functions that others call, for which a fact may be true.
    """

    image: Image
    program: Program
    ends: frozenset[int] | None
    facts: Facts
    platform: Platform | None
    options: BoundOptions
    stages: Stages
    called: bool
    from_reset: bool
    force_core: bool
    refused: list[WcetError] = field(default_factory=list)  # of entries that are left out

    def entries(self, entries: Mapping[str, int]) -> Iterator[AnalysedEntry]:
        """The loops of each entry, as the analysis of that entry sees them."""
        for name, address in entries.items():
            self.stages.say(f"loops of {name}")
            try:
                yield self._entry(name, address)
            except WcetError as error:
                if len(entries) == 1:
                    raise
                self.refused.append(error)
                self.stages.warn(f"{name}: {error}")

    def _entry(self, name: str, address: int) -> AnalysedEntry:
        facts, regions = self.facts, Regions.of(self.facts, self.image)
        image, as_loaded = starting(self.image, name, address, regions, from_reset=self.from_reset)
        if image.as_loaded != self.image.as_loaded:
            return self._with(image, address)._entry(name, address)
        program, options, called = self.program, self.options, self.called
        depths = find_depths(program, address, image, facts, options, called=called)
        deep = with_depths(program, address, image, depths)
        valued = inlined(
            deep,
            address,
            image,
            facts,
            regions,
            accept=partial(
                refuse_unmodelled,
                image=image,
                processor=None if self.platform is None else self.platform.processor,
                force=self.force_core,
                stops=not called,
            ),
            starts=not called,
        )
        changed = valued.read_again(image)
        if changed is not image:
            return self._with(changed, address)._entry(name, address)
        graph, values = valued.graph, valued.values
        values.environment.used.update(check_status_words(values, image))
        refuse_returns_to_code(graph, image, values, facts, self.ends or frozenset())
        if not graph.loops:
            return AnalysedEntry(
                name, graph, (), (*deep.assumptions, *values.assumptions, *as_loaded)
            )
        cut = self._cut(graph, values)
        only = None if cut is None else frozenset(range(len(graph.loops))) - cut.keys()

        def progress(answered: int, asked: int, place: str) -> None:
            done = WIDTH * answered // max(asked, 1)
            bar = "#" * done + "." * (WIDTH - done)
            self.stages.say(f"loops of {name} [{bar}] {answered}/{asked} {place}")

        execution = None
        if only is None and not called:
            execution = concrete_execution(graph, image, values, facts)
        if execution is not None:
            found = bounds_by_counting(graph, image, facts, execution)
        else:
            found = bound_loops(
                graph, image, values, facts, self.options, progress, only, called=called
            )
        proofs = (text for bound in found for text in bound.rests)
        assumptions = (*deep.assumptions, *values.assumptions, *as_loaded, *proofs)
        if self.platform is None or not cut:
            return AnalysedEntry(name, graph, found, assumptions)
        bounds = tuple(cut.get(bound.loop, bound) for bound in found)
        pending = self.platform.pending_assumption()
        return AnalysedEntry(name, graph, bounds, (*assumptions, *pending))

    def _with(self, image: Image, address: int) -> _Listing:
        """The same for one entry, where constants are what ``image`` says."""
        program = extract(image, [address], self.facts, self.ends)
        return replace(self, image=image, program=program)

    def _cut(self, graph: Supergraph, values: Values) -> dict[int, LoopBound] | None:
        """The loops that do not go round while an interrupt is pending (rule 21), by index.

        None if nothing tests for interrupts, and on the interrupt path (rule 32).
        """
        platform = self.platform
        tests = find_pending_tests(values, platform.pending) if platform else None
        if tests is None or platform is None:
            return None
        ends = path_ends(self.image, platform)
        address = graph.nodes[graph.entry].block.addr
        if serves_interrupts(self.image, platform, self.facts, ends, address):
            return None
        parts = list(segments(values, tests, self.image))
        turning = {loop for part in parts for loop in part.loops}
        reached = {node for part in parts for node in part.nodes}
        found = {}
        for loop in graph.loops:
            if loop.index not in turning:
                places = dict.fromkeys(
                    self.image.place(graph.nodes[n].block.addr)
                    for n in tests.reads
                    if n in loop.nodes
                )
                evidence = NotWhilePending(tuple(places))
                times = int(loop.header in reached)
                found[loop.index] = LoopBound(
                    loop.index, times, None, "pending", evidence, None, 0.0
                )
        return found


def as_json(image: Image, item: Listed) -> dict[str, Any]:
    """One loop in one context; ``context`` lists the calls that lead there, outermost first."""
    graph, bound = item.graph, item.bound
    node = graph.nodes[item.loop.header]
    line = image.line(item.header)
    calls = [c for c in graph.call_string(node.context) if c.call_site is not None]
    return {
        "entry": item.entry,
        "place": image.place(item.header),
        "address": hex(item.header),
        "line": f"{line.file}:{line.line}" if line else None,
        "function": _function(image, graph.contexts[node.context].function),
        "context": [image.place(c.call_site) for c in calls if c.call_site is not None],
        "bound": bound.bound,
        "exact": bound.exact,
        "method": bound.method,
        "evidence": bound.explained,
        "seconds": round(bound.seconds, 4),
        "reason": "" if bound.reason is None else str(bound.reason),
    }


def _function(image: Image, entry: int) -> str:
    found = image.symbol_at(entry)
    return found[0].name if found else hex(entry)


def to_ffx(image: Image, found: list[Listed], name: str) -> str:
    """The loops that have a bound in every context, as flow facts for OTAWA.

    What holds only while an interrupt is pending is no bound of the loop.
    """
    most: dict[int, int] = {}
    open_loops = {i.header for i in found if i.bound.bound is None or i.bound.method == "pending"}
    for item in found:
        if item.header not in open_loops and item.bound.bound:
            most[item.header] = max(item.bound.bound, most.get(item.header, 0))
    loops = [(header, bound, image.place(header)) for header, bound in sorted(most.items())]
    return write_ffx(loops, f"loops of {name}, sha256 {image.sha256}: back edges for each entry")


def as_text(image: Image, found: list[Listed]) -> list[str]:
    """A line per place and answer, with the number of contexts that have it."""
    if not found:
        return ["no loops"]
    groups: dict[tuple[int, int | None, str, str, str], list[Listed]] = {}
    for item in found:
        b = item.bound
        groups.setdefault(
            (item.header, b.bound, b.method, b.explained, str(b.reason or "")), []
        ).append(item)
    lines = [f"{'bound':>10}  {'method':<8}{'contexts':>8}{'seconds':>9}  place"]
    for (header, bound, method, evidence, reason), items in sorted(
        groups.items(), key=lambda g: (g[0][0], str(g[0][1:]))
    ):
        seconds = max(item.bound.seconds for item in items)
        number = "-" if bound is None else f"{bound:,}"
        lines.append(
            f"{number:>10}  {method or '-':<8}{len(items):>8}{seconds:>9.2f}  {image.place(header)}"
        )
        lines.append(f"{'':>12}{reason or evidence}")
    bounded = sum(item.bound.bound is not None for item in found)
    exact = sum(bool(item.bound.exact) for item in found)
    lines.append(f"{len(found)} loops in their contexts: {bounded} bounded, {exact} of them exact")
    return lines
