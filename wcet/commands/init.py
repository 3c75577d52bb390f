"""``wcet init``: a first ``wcet.toml``."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.errors import InputError, UsageError, WcetError
from quoll.image.image import Image
from quoll.processes.children import Died, TimedOut, apart
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.fact_survey import survey
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish
from wcet.gate.draft import draft, entries_of
from wcet.gate.project_file import FILE
from wcet.platforms import platform_model as platforms
from wcet.reports.missing_facts import suggested_facts, to_lines
from wcet.request import add_cache, add_command, add_kernel, results_store

__all__ = ["add_to"]

SECONDS = 60  # to find missing facts
Suggested = tuple[str, tuple[str, ...]]  # a facts file, and a line for each fact
DESCRIPTION = f"""\
Write a commented {FILE} for an ELF: the platform of its build attributes, and its entries. Then
'wcet analyse', 'wcet advise', 'wcet baseline' and 'wcet check' need no options.

Without a facts file, the entries are analysed, and the missing facts are written to a facts file of
the kernel's name beside {FILE}, to be filled in: targets of calls, counts of loops, and sections
outside of the platform's memory, which would be charged as uncached.
"""
EXAMPLES = """\
examples:
  wcet init build/kernel.elf
  wcet init build/kernel.elf --platform kzm --output -
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = f"write a first {FILE} for an ELF"
    p = add_command(commands, "init", text, DESCRIPTION, EXAMPLES, run)
    add_kernel(p)
    p.add_argument(
        "--platform",
        metavar="NAME|FILE.toml",
        help="the board (default: chosen from the ELF's build attributes)",
    )
    p.add_argument(
        "--output",
        default=FILE,
        metavar="FILE",
        help=f"a file that is not there yet, or '-': standard output (default: {FILE})",
    )
    p.add_argument("--no-facts", action="store_true", help="analyse nothing, write no facts file")
    add_cache(p)


def run(options: argparse.Namespace) -> int:
    """Inspect the ELF and write the files; returns the exit status."""
    if options.output != "-" and Path(options.output).exists():
        raise UsageError(
            f"{options.output} is there already",
            hint="name another file with --output, or '-' to print it",
        )
    image = Image.load(options.kernel)
    platform = None
    try:
        if options.platform is not None:
            platform, reason = platforms.load(options.platform), "asked for"
        else:
            platform, reason = platforms.for_image(image.cpu, image.attributes.arch)
    except InputError as error:
        if options.platform is not None:
            raise
        reason = str(error)
    kernel = options.kernel
    named = options.platform or (platform.name if platform else "")
    if options.output != "-":
        folder = Path(options.output).parent
        kernel = kernel if kernel.is_absolute() else Path(os.path.relpath(kernel, folder))
        if named.endswith(".toml") and not Path(named).is_absolute():
            named = os.path.relpath(named, folder)
    suggested: Suggested | None = None
    facts = Path(options.output).parent / kernel.with_suffix(".facts").name
    entries = entries_of(image, platform)
    exists = facts.exists() or options.kernel.with_suffix(".facts").exists()
    if options.output != "-" and platform and entries and not (exists or options.no_facts):
        suggested = missing_facts(options, entries, kernel.name)
        options.suggest_facts = facts
    board = (platform, named) if platform else None
    text = draft(image, kernel, board, reason, facts.name if suggested else None)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the name of {kernel} cannot stand in a TOML file") from error
    files: list[tuple[str | Path, Callable[[], str]]] = [(options.output, lambda: text)]
    lines = [f"written to {options.output}"]
    if suggested is not None:
        content, missing = suggested
        files.append((facts, lambda: content))
        lines += [f"written to {facts}, to be filled in:", *missing]
    publish(options, files, lambda: lines)
    return 0


def missing_facts(
    options: argparse.Namespace, entries: tuple[str, ...], name: str
) -> Suggested | None:
    """The missing facts; None if the analysis is impossible on this platform, or takes too long."""
    store = results_store(options)
    wanted = AnalysisOptions(
        entries=entries,
        platform=options.platform,
        neighbouring_facts=False,
        time_limit=SECONDS,
        bounds=BoundOptions(store=store, budget=Budget(seconds=SECONDS)),
        store=store,
    )
    stages = StageLog(verbose=not options.quiet)

    def work() -> Suggested:
        found = survey(options.kernel, wanted, stages, SECONDS)
        return suggested_facts(found, name), tuple(to_lines(found))

    try:
        return apart(work, 2 * SECONDS)
    except TimedOut:
        stages.warn(
            f"the missing facts were not found within {SECONDS} seconds; 'wcet analyse "
            "--suggest-facts FILE --suggest-within SECONDS' takes longer"
        )
    except (WcetError, Died) as error:
        stages.warn(f"no facts were looked for: {error}")
    finally:
        stages.done()
    return None
