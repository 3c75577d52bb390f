"""``wcet masked``: bounds of the regions with masked interrupts, and the latency."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from quoll.assumptions import table
from quoll.errors import UnboundedLoop
from wcet import numbers
from wcet.analysis.entries import ALL
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.masked.masked_entries import MaskedRegions, masked
from wcet.masked.masked_functions import SearchExtent
from wcet.masked.masked_region import MaskedRegion, UnboundedRegion
from wcet.reports.result_text import TextStyle
from wcet.request import (
    add_analysis,
    add_color,
    add_command,
    add_count,
    add_entries,
    add_json,
    add_kernel,
    colored,
    requested,
)

__all__ = ["add_to"]

SCHEMA_VERSION = 1
SHOWN = 10
BUDGET = 2000
WITHIN = 480.0
NAMED = 4  # functions that were not examined

DESCRIPTION = """\
Print the longest regions in which interrupts are masked, over all paths and call chains, and the
latency of an interrupt that follows.

A region starts where an exception is taken, or at a cps or msr that may mask; it ends where
interrupts are surely unmasked (cps, msr of a word that says so or that was read before they were
masked), or with the path. The blocks in which it starts and ends count whole. Latency is the
longest region and then the interrupt path: from taking the exception to the end of the path, or
with --handler to the handler's first instruction.

Places without a bound are listed, the result is then partial, and the exit status gives the reason.
By default all entries of the platform are analysed; in a preemptible kernel, the kernel's own
threads are entries, too: name them with --entry.
"""
EXAMPLES = """\
examples:
  wcet masked kernel.elf
  wcet masked kernel.elf --handler timer_tick
  wcet masked kernel.elf --entry all --entry idle_thread --end switch_to --paths 1
  wcet masked vmlinux --everywhere --handler handle_irq
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "the longest regions with interrupts masked"
    p = add_command(commands, "masked", text, DESCRIPTION, EXAMPLES, run)
    add_kernel(p)
    add_entries(p)
    p.add_argument("--handler", metavar="PLACE", help="the interrupt path ends here")
    p.add_argument(
        "--everywhere",
        action="store_true",
        help="start paths at each function that masks interrupts, too: for kernels that cannot be "
        "followed from their entries",
    )
    add_count(
        p,
        "--budget",
        1,
        "with --everywhere: instructions to follow from each function and in its regions; "
        f"functions that need more are listed (default: {BUDGET:,})",
        default=BUDGET,
    )
    p.add_argument(
        "--within",
        type=numbers.seconds("--within"),
        default=WITHIN,
        metavar="SECONDS",
        help="with --everywhere: time on the clock; functions not analysed by then are listed, and "
        f"no loop may take more than a hundredth of it (default: {WITHIN:g})",
    )
    text = f"how many to print, the longest first (default: {SHOWN})"
    add_count(p, "--regions", 1, text, default=SHOWN)
    add_count(p, "--paths", 0, "of how many to print the worst path, too (default: 0)", default=0)
    add_json(p, "all")
    add_analysis(p)
    add_color(p)


def run(options: argparse.Namespace) -> int:
    """Bound every region, and print; returns the exit status."""
    wanted = requested(options, options.entry or [ALL])
    stages = StageLog(verbose=not options.quiet)
    extent = SearchExtent(options.budget, options.within) if options.everywhere else None
    found = masked(options.kernel, wanted, stages, options.handler, extent)
    style = TextStyle(color=colored(options), paths="full", stats=False)
    publish_document(options, lambda: to_json(found), lambda: to_text(found, style, options))
    return found.status


def to_text(found: MaskedRegions, style: TextStyle, options: argparse.Namespace) -> Iterator[str]:
    """A line per region, then regions without a bound, the latency, and the assumptions."""
    platform = found.platform
    many = len(found.regions)
    starts = (
        f"{many} places where a region starts" if many != 1 else "1 place where a region starts"
    )
    yield style.bold(f"{starts}, the longest first:")
    yield style.dim(f"{'cycles':>13}{'µs':>11}  entry, start, calls")
    for number, region in enumerate(found.regions[: options.regions]):
        took = region.cycles * 1e6 / platform.clock_hz
        yield f"{region.cycles:>13,}{took:>11,.1f}  {region.entry}: {region.place}"
        yield f"{'':>26}{' > '.join(region.calls)}; in {region.contexts} contexts"
        if number < options.paths:
            yield from _path(found, region)
    late = [one.entry for one in found.missing if one.late]
    yield from _not_bounded(found)
    if late:
        more = f" and {len(late) - NAMED} more" if len(late) > NAMED else ""
        yield f"not analysed within {options.within:g} s: {', '.join(late[:NAMED])}{more}"
    to = f"to {found.handler}" if found.handler else "to the end of its path"
    if found.interrupt is not None:
        yield f"interrupt path, {to}: {found.interrupt:,} cycles"
    if found.latency is not None:
        took = found.latency * 1e6 / platform.clock_hz
        text = f"latency: {found.latency:,} cycles, {took:,.1f} µs"
        yield style.bold(f"{text}{', bounded regions only' if found.partial else ''}")
    if found.no_latency:
        yield f"no latency: {found.no_latency}"
    if found.partial:
        named = f"{len(found.missing):,} regions have no bound"
        yield f"this result is partial: {named}; regions without a bound may take longer"
    for assumption in found.assumptions:
        yield f"assumed: {assumption}"


def _not_bounded(found: MaskedRegions) -> Iterator[str]:
    """A line per region and reason; a loop without a bound once, with the first of its regions."""
    regions: dict[tuple[str, UnboundedRegion | None], list[UnboundedRegion]] = {}
    for one in found.missing:
        of_loop = one.status == UnboundedLoop.exit_status
        for reason in () if one.late else one.reasons:
            regions.setdefault((reason, None if of_loop else one), []).append(one)
    for (reason, _), (first, *others) in regions.items():
        more = f" and {len(others)} more" if others else ""
        yield f"not bounded: {first.entry}: {first.place}{more}: {reason}"


def _path(found: MaskedRegions, region: MaskedRegion) -> Iterator[str]:
    """The blocks of the worst path with their cycles, repetitions in one row."""
    result = region.result
    for (node, cycles), same in groupby(
        (step.node, sum(causes)) for step, causes in result.charged_steps()
    ):
        count = sum(1 for _ in same)
        place = found.image.place(result.graph.nodes[node].block.addr)
        yield f"{count * cycles:>13,}{f'{count}x':>11}    {place}"


def to_json(found: MaskedRegions) -> dict[str, Any]:
    """All regions, with their call chains."""
    return {
        "schema_version": SCHEMA_VERSION,
        "platform": found.platform.name,
        "clock_hz": found.platform.clock_hz,
        "partial": found.partial,
        "latency_cycles": found.latency,
        "interrupt": {"cycles": found.interrupt, "handler": found.handler},
        "regions": [
            {
                "entry": region.entry,
                "start": region.place,
                "calls": list(region.calls),
                "contexts": region.contexts,
                "cycles": region.cycles,
            }
            for region in found.regions
        ],
        "not_bounded": [
            {"entry": one.entry, "start": one.place, "reason": "; ".join(one.reasons)}
            for one in found.missing
        ],
        "assumptions": list(map(str, found.assumptions)),
        "assumption_kinds": table(found.assumptions),
    }
