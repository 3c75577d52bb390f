"""``wcet init``: a first ``wcet.toml``."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.arm.exception_table import microcontroller_tables
from quoll.errors import InputError, UsageError, WcetError
from quoll.image.image import Image
from quoll.processes.children import Died, TimedOut, apart
from quoll.processes.time_limit import PATIENCE
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.fact_survey import survey
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish
from wcet.gate.draft import draft, entries_of, other_board, sources_of
from wcet.gate.project_file import FILE
from wcet.platforms import platform_model as platforms
from wcet.platforms.platform_model import Platform
from wcet.platforms.processor import check_profile
from wcet.reports.missing_facts import suggested_facts, to_lines
from wcet.request import add_cache, add_command, add_kernel, results_store

__all__ = ["add_to"]

SECONDS = 60  # of processor time, to find missing facts
LONGEST = 2 * PATIENCE * SECONDS  # by the clock
Suggested = tuple[str, tuple[str, ...]]  # a facts file, and a line for each fact
DESCRIPTION = f"""\
Write a commented {FILE} for an ELF: the platform of its build attributes, and its entries: the
platform's, else every handler to which a table of exception vectors leads, without stubs that
never end. Then 'wcet analyse', 'wcet advise', 'wcet baseline' and 'wcet check' need no options.

Without a facts file, the entries are analysed, and the missing facts are written to a facts file of
the kernel's name beside {FILE}, to be filled in: targets of calls, counts of loops, and sections
outside of the platform's memory, which would be charged as uncached.
"""
EXAMPLES = """\
examples:
  wcet init build/kernel.elf
  wcet init build/kernel.elf --platform kzm --output -
  wcet init build/service.elf --entry sys_read --entry sys_write
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
        "--entry",
        action="append",
        default=[],
        metavar="ENTRY",
        help="an entry, as for 'wcet analyse'; repeatable (default: found in the ELF)",
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
    board, reason = chosen_board(options, image)
    entries = entries_of(image, board[0] if board else None, options.entry)
    kernel = options.kernel
    folder = Path(options.output).parent
    if options.output != "-" and not kernel.is_absolute():
        kernel = Path(os.path.relpath(kernel, folder))
    sources = sources_of(image, options.kernel)
    suggested: Suggested | None = None
    facts = folder / kernel.with_suffix(".facts").name
    exists = facts.exists() or options.kernel.with_suffix(".facts").exists()
    if options.output != "-" and board and not (exists or options.no_facts):
        suggested = missing_facts(options, entries.names, kernel.name, sources)
        options.suggest_facts = facts
    other = () if board is None else other_board(image, board[0], options.platform)
    where = None if sources is None else Path(os.path.relpath(sources, folder))
    text = draft(kernel, board, reason, facts.name if suggested else None, entries, other, where)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the name of {kernel} cannot stand in a TOML file") from error
    files: list[tuple[str | Path, Callable[[], str]]] = [(options.output, lambda: text)]
    lines = [f"written to {options.output}", *entries.comment[1:], *other]
    if suggested is not None:
        content, missing = suggested
        files.append((facts, lambda: content))
        lines += [f"written to {facts}, to be filled in:", *missing]
    publish(options, files, lambda: lines)
    return 0


def chosen_board(
    options: argparse.Namespace, image: Image
) -> tuple[tuple[Platform, str] | None, str]:
    """The platform and its name in the file, None without one; and the reason.

    Raises InputError for a wrong ``--platform``, and for a binary of the M profile.
    """
    if options.platform is None:
        refuse_microcontroller(image)
        try:
            found, reason = platforms.for_image(image.cpu, image.attributes.arch)
        except InputError as error:
            return None, str(error)
        return (found, found.name), reason
    named = options.platform
    if named.endswith(".toml") and not Path(named).is_absolute() and options.output != "-":
        named = os.path.relpath(named, Path(options.output).parent)
    return (platforms.load(options.platform), named), "asked for"


def refuse_microcontroller(image: Image) -> None:
    """Raise InputError for a binary of the M profile, by its attributes or its vectors."""
    check_profile(image.attributes)
    stated = image.attributes.arch is not None or image.attributes.cpu is not None
    tables = () if stated else microcontroller_tables(image)
    if tables:
        raise InputError(
            "here is a table of exception vectors of the M profile of the architecture, which no "
            "platform describes: its exceptions, returns and status registers are others",
            where=image.place(tables[0]),
            hint="build the kernel for a core of the A profile, or state --platform",
        )


def missing_facts(
    options: argparse.Namespace, entries: tuple[str, ...], name: str, sources: Path | None
) -> Suggested | None:
    """The missing facts; None if the analysis is impossible on this platform, or takes too long."""
    store = results_store(options)
    wanted = AnalysisOptions(
        entries=entries,
        platform=options.platform,
        neighbouring_facts=False,
        sources=sources or Path(),
        time_limit=SECONDS,
        bounds=BoundOptions(store=store, budget=Budget(seconds=SECONDS)),
        store=store,
    )
    stages = StageLog(verbose=not options.quiet)

    def work() -> Suggested:
        found = survey(options.kernel, wanted, stages, SECONDS)
        return suggested_facts(found, name), tuple(to_lines(found))

    try:
        return apart(work, LONGEST)
    except TimedOut:
        stages.warn(
            f"the missing facts were not found within {LONGEST // 60} minutes; 'wcet analyse "
            "--suggest-facts FILE --suggest-within SECONDS' takes longer"
        )
    except (WcetError, Died) as error:
        stages.warn(f"no facts were looked for: {error}")
    finally:
        stages.done()
    return None
