"""``wcet loops``: every loop of a binary in every calling context, with its bound or why not."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopbounds.bound import LoopBound
from loopbounds.bounds import bound_loops
from loopbounds.options import BoundOptions, Budget
from loopbounds.recursion import with_depths
from quoll.cfg import Program
from quoll.errors import InputError, UsageError, WcetError
from quoll.expand import expand, without_edges
from quoll.extract import extract
from quoll.facts import Facts, load
from quoll.image import Image
from quoll.listing import loops_text
from quoll.prune import guided_in_contexts
from quoll.regions import Regions
from quoll.supergraph import Supergraph, SuperLoop
from quoll.values import analyse as analyse_values
from wcet import platform as platforms
from wcet.atomic import write_atomically
from wcet.entries import ALL, find_entries, path_ends
from wcet.memory import add_memory, extra
from wcet.platform import Platform
from wcet.request import add_cache, add_facts, default_cache
from wcet.stages import Stages

__all__ = ["add_to"]

DESCRIPTION = """\
List every loop that is reached from the entries, in each calling context, with its bound: the
most executions of its header each time it is entered from outside. Each bound comes with its
method and evidence:

  nusmv   proved by model checking; "exact" when an execution of the model reaches it for the
          stated initial ranges, else "not known to be tight"
  fact    stated in a facts file; assumed, and tighter than what is proved
  -       none: the reason names the values that nothing bounds, and the fact that would help
"""

EXAMPLES = """\
examples:
  wcet loops build/bilby/kzm-after/kernel.elf
  wcet loops program.elf --entry main --json - | jq '.loops[] | select(.bound == null)'
  wcet loops program.elf --smv models/     then check any of them: NuSMV -source ... models/*.smv
  wcet loops program.elf --nest            only the nesting, without bounds: fast

exit status: 0, or 6 when a loop has no bound (the listing is complete all the same)
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

    def listed(self) -> list[Listed]:
        """Its loops, one by one."""
        pairs = zip(self.graph.loops, self.bounds, strict=True)
        return [Listed(self.name, self.graph, loop, bound) for loop, bound in pairs]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    p = commands.add_parser(
        "loops",
        help="the loops of a binary in every context, with bounds, methods and evidence",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    add_memory(p)
    add_facts(p, "bounds to check; repeatable; program.facts beside program.elf is read too")
    p.add_argument("--nest", action="store_true", help="only the loops of each function, nested")
    p.add_argument("--json", metavar="FILE", help="write loops[] as JSON ('-': standard output)")
    p.add_argument("--smv", type=Path, metavar="DIR", help="keep the proved models here")
    p.add_argument(
        "--time-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="processor time for each loop; a loop that needs more is not bounded (default: 60)",
    )
    add_cache(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List, then say by the exit status whether all are bounded."""
    if options.time_limit <= 0:
        raise UsageError("--time-limit must be more than 0 seconds")
    image = extra(options).image(options.binary)
    beside = options.binary.with_suffix(".facts")
    automatic = not options.no_facts and beside.is_file() and beside not in options.facts
    facts = load((*([beside] if automatic else []), *options.facts))
    platform, entries = chosen_entries(image, options)
    ends = path_ends(image, platform, ()) if platform is not None else frozenset[int]()
    program = extract(image, sorted(set(entries.values())), facts, ends)
    if options.nest:
        sys.stdout.write(loops_text(program, image))
        return 0
    stages = Stages(verbose=not options.quiet)
    bounds = BoundOptions(
        cache=None if options.no_cache else options.cache or default_cache(),
        models=options.smv,
        budget=Budget(seconds=max(1, round(options.time_limit))),
    )
    called = platform is None and not options.entry
    analysed = list(analysed_entries(image, program, entries, facts, bounds, stages, called))
    stages.done()
    found = [item for entry in analysed for item in entry.listed()]
    removed = (r.fact for entry in analysed for r in entry.graph.guidance.removed)
    known = (*Regions.of(facts, image).assumptions, *program.assumptions, *removed)
    assumptions = list(dict.fromkeys(known))
    if options.json:
        text = (
            json.dumps(
                {"loops": [as_json(image, item) for item in found], "assumptions": assumptions},
                indent=1,
            )
            + "\n"
        )
        if options.json == "-":
            sys.stdout.write(text)
        else:
            write_atomically(Path(options.json), text)
    if options.json != "-":
        sys.stdout.write(as_text(image, found) + "".join(f"assumed: {a}\n" for a in assumptions))
    return 6 if any(item.bound.bound is None for item in found) else 0


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
        s.name
        for s in image.symbols.symbols
        if s.kind == "func" and image.is_executable(s.addr) and image.symbol(s.name) == s
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
        raise UsageError(f"no entry {name!r}: not a symbol of {image.sha256[:8]}") from None


def analysed_entries(
    image: Image,
    program: Program,
    entries: dict[str, int],
    facts: Facts,
    options: BoundOptions,
    stages: Stages,
    called: bool,
) -> Iterator[AnalysedEntry]:
    """The loops of each entry, as the analysis of that entry sees them.

    ``called``: entries are functions that others call, for which a fact may be true.
    """
    regions = Regions.of(facts, image)
    for entry, at in entries.items():

        def progress(answered: int, asked: int, place: str, entry: str = entry) -> None:
            done = WIDTH * answered // max(asked, 1)
            bar = "#" * done + "." * (WIDTH - done)
            stages.say(f"loops of {entry} [{bar}] {answered}/{asked} {place}")

        stages.say(f"loops of {entry}")
        try:
            deep = with_depths(program, at, image, facts, options, called=called)
            plain = guided_in_contexts(expand(deep, at, image), image, facts)
            dead = analyse_values(plain, image, regions=regions).dead_edges
            graph = without_edges(plain, dead, image)
            bounds: tuple[LoopBound, ...] = ()
            if graph.loops:
                values = analyse_values(graph, image, regions=regions)
                bounds = bound_loops(graph, image, values, facts, options, progress, called=called)
        except WcetError as error:
            if len(entries) == 1:
                raise
            stages.warn(f"{entry}: {error}")
            continue
        yield AnalysedEntry(entry, graph, bounds)


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
        "evidence": bound.evidence,
        "seconds": round(bound.seconds, 4),
        "reason": bound.reason,
    }


def _function(image: Image, entry: int) -> str:
    found = image.symbol_at(entry)
    return found[0].name if found else hex(entry)


def as_text(image: Image, found: list[Listed]) -> str:
    """A line per place and answer, with the number of contexts that have it."""
    if not found:
        return "no loops\n"
    groups: dict[tuple[int, int | None, str, str, str], list[Listed]] = {}
    for item in found:
        b = item.bound
        groups.setdefault((item.header, b.bound, b.method, b.evidence, b.reason), []).append(item)
    lines = [f"{'bound':>10}  {'method':<7}{'contexts':>9}{'seconds':>9}  place"]
    for (header, bound, method, evidence, reason), items in sorted(
        groups.items(), key=lambda g: (g[0][0], str(g[0][1:]))
    ):
        seconds = max(item.bound.seconds for item in items)
        number = "-" if bound is None else f"{bound:,}"
        lines.append(
            f"{number:>10}  {method or '-':<7}{len(items):>9}{seconds:>9.2f}  {image.place(header)}"
        )
        lines.append(f"{'':>12}{reason or evidence}")
    bounded = sum(item.bound.bound is not None for item in found)
    exact = sum(bool(item.bound.exact) for item in found)
    lines.append(f"{len(found)} loops in their contexts: {bounded} bounded, {exact} of them exact")
    return "\n".join(lines) + "\n"
