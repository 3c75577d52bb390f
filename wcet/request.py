"""The common options of all analysis commands."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ilp.solvers.solve import solver_named
from ilp.solvers.solver_result import DIRECT
from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import CHECKERS, EITHER
from loopbounds.proof.options import BoundOptions
from quoll.errors import UsageError
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.inlining.vivu import VivuSettings
from quoll.printable import shortened
from quoll.results.results_store import LIMIT_VARIABLE, NOWHERE, ResultsStore
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.raw_memory import add_memory, loaded_memory
from wcet.numbers import LARGEST, seconds, whole
from wcet.reports.prose import HelpText

__all__ = [
    "add_analysis",
    "add_cache",
    "add_color",
    "add_command",
    "add_count",
    "add_entries",
    "add_facts",
    "add_function",
    "add_json",
    "add_kernel",
    "add_set",
    "add_sources",
    "add_vivu",
    "colored",
    "columns_of",
    "parameters",
    "requested",
    "results_store",
    "vivu_of",
]


SUMMARY_SETTINGS = {
    "auto": SummarySettings(),
    "never": NEVER,
    "always": SummarySettings(contexts=0, least=2),
}


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    description: str,
    examples: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command; ``text``: its line in the list of all commands."""
    p = commands.add_parser(
        name, help=text, description=description, epilog=examples, formatter_class=HelpText
    )
    p.set_defaults(run=run)
    p.add_argument(
        "--wide",
        action="store_true",
        help="whole lines (default: on a terminal they are shortened in the middle to fit)",
    )
    return p


def add_analysis(p: argparse.ArgumentParser) -> None:
    """Add the options of an analysis, except for entries; ``requested`` reads them."""
    p.add_argument(
        "--platform",
        metavar="NAME|FILE.toml",
        help="core, caches, latencies, clock, exits (default: chosen from the ELF's build "
        "attributes and printed)",
    )
    p.add_argument(
        "--force-core",
        action="store_true",
        help="bound the binary for the platform's core even if its build attributes name another "
        "processor, architecture or profile; that is then listed as an assumption",
    )
    p.add_argument(
        "--l2",
        choices=["on", "off"],
        help="whether the level-2 cache is enabled (default: as the platform file says)",
    )
    p.add_argument(
        "--tlb",
        choices=["assumed-resident", "last-page"],
        help="whether translations are assumed to be in the TLBs, or every access to another page "
        "than the one before is charged a table walk (default: as the platform file says)",
    )
    p.add_argument(
        "--data-index",
        choices=["virtual"],
        help="bits of the virtual address above a page select the set of the data cache, too, "
        "which is then an assumption (default: as the platform file says; if it says nothing, only "
        "bits within a page are counted on)",
    )
    add_facts(
        p,
        "loop bounds and constraints; repeatable; kernel.facts in the folder of kernel.elf is read "
        "too",
    )
    add_sources(p)
    add_memory(p)
    add_set(p, "without it the bound is a function of NAME")
    p.add_argument(
        "--end",
        action="append",
        default=[],
        metavar="PLACE",
        help="every path ends after the instruction here, as with the fact 'path must end at "
        "PLACE': code behind it is not analysed; repeatable",
    )
    add_vivu(p)
    p.add_argument(
        "--share",
        choices=["auto", "never", "always"],
        default="auto",
        help="function summaries: analyse functions of many contexts once instead of in every "
        "context, which is looser: auto, when full inlining would need more than "
        f"{SummarySettings().contexts:,} contexts (default); never; always",
    )
    p.add_argument(
        "--solver",
        metavar="NAME",
        default="",
        help="integer solver of every program: highs, cbc, or one that PuLP finds, such as "
        "SCIP_CMD or GUROBI (default: highs, unless the longest path over the loop nest is proved "
        "to be the maximum)",
    )
    p.add_argument(
        "--time-limit",
        type=seconds("--time-limit"),
        default=60.0,
        metavar="SECONDS",
        help="for each loop and for each integer program (default: 60)",
    )
    add_proofs(p)
    text = "print the latency of the last of K interrupts that are pending at once (default: 1)"
    add_count(p, "--interrupts", 1, text, default=1, metavar="K")
    add_cache(p)


def add_facts(p: argparse.ArgumentParser, text: str, *, neighbouring: bool = True) -> None:
    """Add ``--facts``, and if ``neighbouring``, ``--no-facts`` for the file beside the ELF."""
    p.add_argument("--facts", action="append", default=[], type=Path, metavar="FILE", help=text)
    if neighbouring:
        p.add_argument(
            "--no-facts",
            action="store_true",
            help="ignore the facts file of the ELF and facts in source comments",
        )


def add_sources(p: argparse.ArgumentParser) -> None:
    """Add ``--source-dir``."""
    p.add_argument(
        "--source-dir",
        type=Path,
        metavar="DIR",
        help="where the compiler ran, to which paths of source files in the ELF are relative: "
        "comments there, '// wcet: loop at most 33', are facts, unless --no-facts is given "
        "(default: as wcet.toml says, or the current folder)",
    )


def add_proofs(p: argparse.ArgumentParser) -> None:
    """Add ``--checker`` and ``--prove-stated``."""
    p.add_argument(
        "--checker",
        choices=CHECKERS,
        default=EITHER,
        help="prover of loop bounds: the model checker NuSMV, or the SMT solver that also searches "
        "for them (default: NuSMV; where it is missing, slow, or fails, the SMT solver)",
    )
    p.add_argument(
        "--prove-stated",
        action="store_true",
        help="also prove bounds of loops with a stated bound: the proof may be smaller (default: "
        "only test the stated bound on executions that are found quickly)",
    )


def add_set(p: argparse.ArgumentParser, without: str) -> None:
    """Add ``--set``; ``parameters`` reads it."""
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=N",
        help=f"a number for the parameter of a loop ('loop PLACE at most NAME'); {without}; "
        "repeatable",
    )


def add_cache(p: argparse.ArgumentParser) -> None:
    """Add ``--cache``, ``--no-cache`` and ``--quiet``."""
    p.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="cache of loop proofs and other results for this input: a folder that only this user "
        "may write to (default: quoll in the user's cache "
        f"folder); {LIMIT_VARIABLE} in the environment limits its size (default: 256)",
    )
    p.add_argument("--no-cache", action="store_true", help="compute and prove everything again")
    p.add_argument("--quiet", action="store_true", help="no progress on standard error")


def add_function(p: argparse.ArgumentParser) -> None:
    """Add the arguments that name a function of the kernel in one of its calling contexts."""
    add_kernel(p)
    p.add_argument("function", metavar="FUNCTION", help="a symbol or an address")
    p.add_argument("--entry", metavar="ENTRY", help="one, as for 'wcet analyse'")
    add_count(p, "--context", 0, "a calling context of the function")
    p.add_argument("--contexts", action="store_true", help="list the contexts and end")
    add_json(p)
    add_analysis(p)


def add_kernel(p: argparse.ArgumentParser) -> None:
    """Add the kernel."""
    p.add_argument("kernel", type=Path, metavar="KERNEL.ELF", help="the kernel, as it is run")


def add_entries(p: argparse.ArgumentParser) -> None:
    """Add ``--entry``, which may be repeated."""
    text = "as for 'wcet analyse'; repeatable (default: all)"
    p.add_argument("--entry", action="append", default=[], metavar="ENTRY", help=text)


def add_json(p: argparse.ArgumentParser, what: str = "the result") -> None:
    """Add ``--json``, which writes ``what``."""
    p.add_argument("--json", metavar="FILE", help=f"write {what} as JSON ('-': standard output)")


def add_count(
    p: argparse.ArgumentParser,
    option: str,
    low: int,
    text: str,
    *,
    high: int = LARGEST,
    default: int | None = None,
    metavar: str = "N",
) -> None:
    """Add an option that is a whole number from ``low`` to ``high``."""
    read = whole(option, low, high)
    p.add_argument(option, type=read, default=default, metavar=metavar, help=text)


def add_vivu(p: argparse.ArgumentParser) -> None:
    """Add ``--unroll``; ``vivu_of`` reads it."""
    p.add_argument(
        "--unroll",
        action="store_true",
        help="analyse the first iteration of each loop apart: its own code and cache misses are "
        "not charged to each iteration (default: all together)",
    )


def vivu_of(options: argparse.Namespace) -> VivuSettings:
    """The context settings."""
    return VivuSettings(options.unroll)


def requested(
    options: argparse.Namespace,
    entries: Sequence[str],
    models: Path | None = None,
    *,
    programs: bool = False,
) -> AnalysisOptions:
    """The analysis that a command line requests.

    ``models``, ``programs``: the models of loops and the integer programs are written. Raises
    UsageError for contradicting options.
    """
    store = results_store(options)
    budget = Budget(seconds=max(1, round(options.time_limit)))
    return AnalysisOptions(
        entries=tuple(entries) or ("all",),
        platform=options.platform,
        l2=None if options.l2 is None else options.l2 == "on",
        facts=tuple(options.facts),
        neighbouring_facts=not options.no_facts,
        exits=tuple(options.end),
        solver=known(options.solver),
        time_limit=options.time_limit,
        bounds=BoundOptions(
            store=store,
            models=models,
            budget=budget,
            checker=options.checker,
            prove_stated=options.prove_stated,
        ),
        parameters=parameters(options.set),
        store=store,
        tlb=options.tlb,
        data_index=options.data_index,
        vivu=vivu_of(options),
        loaded_memory=loaded_memory(options),
        summary_settings=SUMMARY_SETTINGS[options.share],
        interrupts=options.interrupts,
        force_core=options.force_core,
        programs=programs,
        sources=options.source_dir or Path(),
    )


def known(solver: str) -> str:
    """The name of a solver. Raises UsageError or SolverError if PuLP does not find it."""
    if solver not in ("", *DIRECT):
        solver_named(solver)
    return solver


def results_store(options: argparse.Namespace) -> ResultsStore:
    """The results store that the options of ``add_cache`` select."""
    if options.no_cache:
        return NOWHERE
    return ResultsStore.of_user() if options.cache is None else ResultsStore(options.cache)


def parameters(texts: Sequence[str]) -> dict[str, int]:
    """The values in ``NAME=N``. Raises UsageError for other text, and for two values of a name."""
    values: dict[str, int] = {}
    for text in texts:
        match = re.fullmatch(r"([A-Za-z_]\w*)=([0-9]+)", text)
        if match is None:
            raise UsageError(f"--set {shortened(text)} is not NAME=N")
        value = whole(f"--set {match[1]}", 0)(match[2])
        if values.setdefault(match[1], value) != value:
            raise UsageError(f"--set {text} is not the only one for its name")
    return values


def add_color(p: argparse.ArgumentParser) -> None:
    """Add ``--color``."""
    p.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colours in the text report (default: on a terminal, unless NO_COLOR is set)",
    )


def columns_of(options: argparse.Namespace) -> int | None:
    """The width of the terminal; None without one."""
    whole = options.wide or not sys.stdout.isatty()
    return None if whole else shutil.get_terminal_size().columns


def colored(options: argparse.Namespace) -> bool:
    """Whether to write colours."""
    if options.color != "auto":
        return bool(options.color == "always")
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
