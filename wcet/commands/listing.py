"""``wcet cfg``, ``disasm``, ``callgraph``: the contents of a binary, without a platform."""

from __future__ import annotations

import argparse
import atexit
import gc
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.recursion import find_depths
from quoll.assumptions import Assumption
from quoll.cfg.cfg import Cfg, Program
from quoll.errors import FactsError, SolverError, UsageError
from quoll.extraction.extract import extract
from quoll.facts.applied import RecursionDepth
from quoll.facts.fact_places import find_place
from quoll.facts.line_anchors import LineAnchors
from quoll.facts.located import LocatedFacts, locate
from quoll.facts.read import Facts, load
from quoll.image.image import Image
from quoll.listing.export import call_graph_dot, cfg_dot, control_flow, program_json, to_graphml
from quoll.listing.program_text import call_graph_text, disassembly, summary
from quoll.results.results_store import ResultsStore
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.raw_memory import add_memory, loaded_memory
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish, publish_document
from wcet.reports.loads import FunctionLoad, counted_paths
from wcet.reports.painted import LEGEND, painted
from wcet.request import add_facts, add_vivu, vivu_of

__all__ = ["add_to", "listed_program"]

ENTRIES = "a symbol or an address; repeatable (default: every function symbol)"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands."""
    cfg = _command(commands, "cfg", cfg_command, "summary of the control flow of a binary")
    cfg.add_argument("--function", metavar="NAME", help="only this function; needed for drawings")
    cfg.add_argument("--dot", metavar="FILE", help="write the function's graph for Graphviz")
    cfg.add_argument("--graphml", metavar="FILE", help="write the function's graph as GraphML")
    cfg.add_argument("--svg", metavar="FILE", help="draw the function's graph (needs graphviz)")
    cfg.add_argument("--json", metavar="FILE", help="write everything as JSON ('-': stdout)")
    cfg.add_argument(
        "--cycles",
        metavar="ENTRY",
        help="of --function: analyse ENTRY as 'wcet analyse' does, and draw its worst path with "
        "cycles",
    )
    cfg.add_argument(
        "--platform", metavar="NAME|FILE.toml", help="of --cycles, as for 'wcet analyse'"
    )
    add_vivu(cfg)
    disasm = _command(
        commands, "disasm", disasm_command, "a function with its source, blocks, edges and loops"
    )
    disasm.add_argument("function", metavar="FUNCTION", help="a symbol or an address")
    calls = _command(
        commands, "callgraph", callgraph_command, "callers and callees, with their call sites"
    )
    calls.add_argument("--dot", metavar="FILE", help="write the call graph for Graphviz")
    calls.add_argument("--graphml", metavar="FILE", help="write the call graph as GraphML")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"Print {text}.")
    parser.add_argument("binary", type=Path, metavar="FILE.ELF", help="any little-endian ARM ELF")
    parser.add_argument("--entry", action="append", default=[], metavar="ENTRY", help=ENTRIES)
    facts = "branch targets, functions that never return, code to leave out; repeatable"
    add_facts(parser, facts, neighbouring=False)
    add_memory(parser)
    parser.set_defaults(run=run)
    return parser


def cfg_command(options: argparse.Namespace) -> int:
    """``wcet cfg``."""
    vivu = vivu_of(options)
    if (options.dot or options.graphml or options.svg) and not options.function:
        raise UsageError(
            "--dot, --graphml and --svg draw one function", hint="name it with --function"
        )
    if options.platform and not options.cycles:
        raise UsageError("--platform is of --cycles", hint="control flow alone needs none")
    if options.cycles and not options.function:
        raise UsageError("--cycles is of a drawing", hint="name its function with --function")
    image, program = listed_program(options, [options.function] if options.function else [])
    if options.entry:
        program = _with_depths(program, image, locate(_facts(options, image), image))
    if options.function:
        function = _function(image, program, options.function)
        graph, legend = control_flow(function, image), LEGEND if options.cycles else ()
        if options.cycles:
            graph = painted(graph, _load(options, function))
        drawings = [
            (options.dot, lambda: cfg_dot(graph, legend)),
            (options.graphml, lambda: to_graphml(graph)),
            (options.svg, lambda: _drawn(cfg_dot(graph, legend))),
        ]
    else:
        drawings = []
    publish_document(
        options,
        lambda: program_json(program, image, vivu),
        lambda: summary(program, image, vivu),
        drawings,
    )
    return 0


def disasm_command(options: argparse.Namespace) -> int:
    """``wcet disasm``."""
    image, program = listed_program(options, [options.function])
    function = _function(image, program, options.function)
    publish(options, [], lambda: disassembly(function, image))
    return 0


def callgraph_command(options: argparse.Namespace) -> int:
    """``wcet callgraph``."""
    image, program = listed_program(options, [])
    publish(
        options,
        [
            (options.dot, lambda: call_graph_dot(program.call_graph())),
            (options.graphml, lambda: to_graphml(program.call_graph())),
        ],
        lambda: call_graph_text(program, image),
    )
    return 0


def listed_program(options: argparse.Namespace, more: Sequence[str]) -> tuple[Image, Program]:
    """The functions of ``--entry`` and ``more``, else of the file, with reachable functions."""
    image = loaded_memory(options).image(options.binary)
    named = [_address(image, name) for name in (*options.entry, *more)]
    entries = named or [
        symbol.addr | symbol.thumb
        for symbol in image.symbols.symbols
        if symbol.kind == "func" and image.is_executable(symbol.addr)
    ]
    facts = locate(_facts(options, image), image)
    program = extract(image, entries or [image.entry], facts)
    gc.freeze()  # all objects live until the exit: collections need not visit them
    atexit.register(gc.unfreeze)  # libraries check for leaks
    return image, program


def _facts(options: argparse.Namespace, image: Image) -> Facts:
    """The facts in the files of ``--facts``; sources are relative to the current folder."""
    return load(tuple(options.facts), LineAnchors(image, options.binary, Path()))


def _with_depths(program: Program, image: Image, facts: LocatedFacts) -> Program:
    """``program`` with the proved or stated depths of recursion of all its entries."""
    depths: dict[int, RecursionDepth] = {}
    unknown: set[int] = set()
    assumptions: dict[Assumption, None] = {}
    for entry in program.entries:
        found = find_depths(program, entry, image, facts)
        unknown |= found.reasons.keys() - found.depths.keys()
        assumptions |= dict.fromkeys(found.assumed)
        for function, depth in found.depths.items():
            known = depths.setdefault(function, depth)
            depths[function] = max(known, depth, key=lambda d: (bool(d.facts), d.activations))
    depths = {f: depth for f, depth in depths.items() if f not in unknown}
    known_too = {**program.guidance.depths, **depths}
    return replace(
        program,
        guidance=replace(program.guidance, depths=known_too),
        assumptions=tuple(dict.fromkeys((*program.assumptions, *assumptions))),
    )


def _address(image: Image, name: str) -> int:
    try:
        return find_place(image, name).words[0]
    except FactsError as fault:
        raise UsageError(f"no entry {name!r}: {fault}") from fault


def _function(image: Image, program: Program, name: str) -> Cfg:
    return program.functions[_address(image, name) & ~1]


def _load(options: argparse.Namespace, function: Cfg) -> FunctionLoad:
    """The executions and cycles of ``--cycles``'s worst path in a function.

    Raises UsageError if the path does not reach the function.
    """
    store = ResultsStore.of_user()
    wanted = AnalysisOptions(
        entries=(options.cycles,),
        platform=options.platform,
        facts=tuple(options.facts),
        bounds=BoundOptions(store=store, budget=Budget()),
        store=store,
        vivu=vivu_of(options),
        loaded_memory=loaded_memory(options),
    )
    result = analyse(options.binary, wanted, StageLog(verbose=False))
    for entry in result.entries.values():
        for path in counted_paths(entry):
            load = path.loads(path.outline()).get(function.entry)
            if load is not None and load.blocks:
                return load
    raise UsageError(
        f"{function.name} is not on the worst path of {', '.join(result.entries)}",
        hint="'wcet path' prints the blocks on it",
    )


def _drawn(dot: str) -> str:
    """The graph as SVG, by Graphviz."""
    program = shutil.which("dot")
    if program is None:
        raise SolverError("graphviz is not installed", hint="install graphviz, or use --dot")
    done = subprocess.run(
        [program, "-Tsvg"], input=dot, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SolverError(f"graphviz failed: {done.stderr.strip()}")
    return done.stdout
