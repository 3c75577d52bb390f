"""``wcet pin``: the lines that locked cache ways should hold for the least bounds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from quoll.assumptions import Assumption, table
from quoll.errors import UsageError
from quoll.image.image import Image
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.numbers import seconds
from wcet.pinning.bounds import EntryWithPins, PinnedBounds, PinnedEntry
from wcet.pinning.choice import Choice, choose, total
from wcet.pinning.first_touched import first_touched
from wcet.pinning.lists import kernel_list, with_pins
from wcet.pinning.pins import NO_PINS, PinnedCache, by_cache
from wcet.platforms.platform_model import Platform
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
SECONDS = 120.0
WORST, FIRST = "worst-paths", "first-touched"

DESCRIPTION = """\
Choose the lines of code and data that locked ways of the first-level caches should hold, so that
the sum of the entries' bounds is least.

Solving and choosing take turns: the lines that cost most on the worst paths are pinned, and the
bounds are solved with them, until no exchange of one line that the worst paths suggest lowers the
sum. 'wcet analyse' prints the same bounds with the platform file that --output writes. --list
writes the lines for the kernel, which has to lock them before its first entry.
"""
EXAMPLES = """\
examples:
  wcet pin kernel.elf --entry interrupt --entry syscall --output pinned.toml
  wcet pin kernel.elf --entry interrupt --ways 2 --list pinned.list
  wcet pin kernel.elf --entry interrupt --rule first-touched
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "the cache lines to lock for the least bounds"
    p = add_command(commands, "pin", text, DESCRIPTION, EXAMPLES, run)
    add_kernel(p)
    add_entries(p)
    add_count(p, "--ways", 1, "locked ways of each first-level cache (default: 1)", default=1)
    p.add_argument(
        "--rule",
        choices=[WORST, FIRST],
        default=WORST,
        help="the lines that cost most on the worst paths (default), or the lines that the worst "
        "paths touch first",
    )
    p.add_argument(
        "--time",
        type=seconds("--time"),
        default=SECONDS,
        metavar="SECONDS",
        help="begin no further attempt after this time on the clock, without the stages before "
        f"(default: {SECONDS:g})",
    )
    p.add_argument(
        "--output", type=Path, metavar="FILE.toml", help="write the platform file with these lines"
    )
    p.add_argument(
        "--list", type=Path, metavar="FILE", help="write the lines by symbols, for the kernel"
    )
    add_json(p, "the lines and the bounds")
    add_analysis(p)
    add_color(p)


@dataclass(frozen=True, slots=True)
class _Found:
    image: Image
    platform: Platform
    ways: int
    before: tuple[EntryWithPins, ...]
    choice: Choice
    assumptions: tuple[Assumption, ...]


def run(options: argparse.Namespace) -> int:
    """Choose, and print."""
    stages = StageLog(verbose=not options.quiet)
    found = _found(options, stages)
    style = TextStyle(color=colored(options), paths="full", stats=False)
    publish_document(
        options,
        lambda: to_json(found),
        lambda: to_text(found, style),
        [
            (options.output, lambda: with_pins(found.platform, found.choice.pins, found.ways)),
            (options.list, lambda: kernel_list(found.image, found.platform, found.choice.pins)),
        ],
    )
    return 0


def _found(options: argparse.Namespace, stages: StageLog) -> _Found:
    """Raises UsageError for a platform without a way to lock, or with locked lines."""
    inputs = AnalysisRun.begin(options.kernel, requested(options, options.entry), stages)
    caches = inputs.platform.hierarchy
    if any(inputs.platform.locked_l1):
        raise UsageError(
            f"platform {inputs.platform.name} locks lines of a first-level cache already",
            hint="name one without caches.l1i.locked and caches.l1d.locked",
        )
    if options.ways >= min(caches.l1i.ways, caches.l1d.ways):
        raise UsageError(f"--ways {options.ways}: one of the ways of each cache stays free")
    entries = tuple(PinnedEntry.of(inputs, name, at) for name, at in inputs.entries.items())
    bounds = PinnedBounds(inputs, entries, options.ways)
    before = bounds.solved(NO_PINS)
    if parametric := [e.result.name for e in before if e.result.parametric is not None]:
        raise UsageError(
            f"the bound of {', '.join(parametric)} is a function",
            hint="give numbers with --set NAME=N",
        )
    if options.rule == FIRST:
        choice = first_touched(bounds, before)
    else:
        choice = choose(bounds, options.time, partial(_say, stages), before)
    stages.done()
    assumed = [a for entry in entries for a in entry.assumptions]
    assumed += [a for entry in choice.entries for a in entry.assumptions]
    return _Found(
        inputs.image, inputs.platform, options.ways, before, choice, tuple(dict.fromkeys(assumed))
    )


def _say(stages: StageLog, lines: int, cycles: int) -> None:
    stages.say(f"pin: {lines} lines, {cycles:,} cycles")


def to_text(found: _Found, style: TextStyle) -> Iterator[str]:
    """The bounds, the lines, and the assumptions."""
    before, after = total(found.before), found.choice.cycles
    for old, new in zip(found.before, found.choice.entries, strict=True):
        yield style.bold(
            f"{new.result.name}: at most {new.result.cycles:,} cycles with the lines below; "
            f"{old.result.cycles:,} without, {_less(old.result.cycles, new.result.cycles)}"
        )
    if len(found.before) > 1:
        yield f"sum: {after:,}; {before:,} without, {_less(before, after)}"
    if not found.choice.complete:
        yield "the time was over: more may be possible (--time)"
    for cache, spans in by_cache(found.platform.hierarchy, found.choice.pins).items():
        size = found.platform.hierarchy.l1i.line_bytes
        lines = sum(after - first for first, after in spans) // size
        yield style.bold(f"{cache.value}: {lines} lines in {found.ways} of its ways")
        for first, after in spans:
            yield f"  {first:#010x} to {after - 1:#010x}  {found.image.place(first)}"
    for assumption in found.assumptions:
        yield f"assumed: {assumption}"


def _less(before: int, after: int) -> str:
    return f"{before - after:,} less ({(before - after) / before:.1%})"


def to_json(found: _Found) -> dict[str, Any]:
    """The document; docs/schemas/pin.schema.json describes it."""
    spans = by_cache(found.platform.hierarchy, found.choice.pins)
    return {
        "schema_version": SCHEMA_VERSION,
        "platform": found.platform.name,
        "ways": found.ways,
        "complete": found.choice.complete,
        "entries": [
            {
                "entry": new.result.name,
                "cycles_before": old.result.cycles,
                "cycles": new.result.cycles,
            }
            for old, new in zip(found.before, found.choice.entries, strict=True)
        ],
        "lines": {
            cache.value: [
                {"first": f"{first:#x}", "after": f"{after:#x}", "place": found.image.place(first)}
                for first, after in spans[cache]
            ]
            for cache in PinnedCache
        },
        "assumptions": [str(assumption) for assumption in found.assumptions],
        "assumption_kinds": table(found.assumptions),
    }
