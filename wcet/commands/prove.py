"""``wcet prove``: each fact is proved from the binary, refuted, or assumed with the reason."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quoll.assumptions import table
from quoll.errors import UsageError
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish_document
from wcet.proving.obligations import obligations
from wcet.proving.prove import FactProofs, prove_facts
from wcet.proving.verdict import FactVerdict, JudgedFact
from wcet.request import (
    add_analysis,
    add_command,
    add_entries,
    add_json,
    add_kernel,
    requested,
)

__all__ = ["add_to"]

SCHEMA_VERSION = 1
NOT_ALL_PROVED = 1  # exit status

DESCRIPTION = """\
Judge each fact of the facts files, and of comments in the source: proved, refuted or assumed.

A proved fact holds on all paths of the analysed entries. The proof does not use the fact itself,
and the evidence is printed: a bound of a loop by the model checker, a range of a register by
values, paths of the graph, or conditions that an SMT solver finds to exclude each other. An
execution contradicts a refuted fact: a recording that 'wcet check-facts' has read, or a run of the
analysis. It is wrong, and so is a bound that depends on it. Any other fact is assumed: the reason
is printed, and the proof that is missing.

Facts are analysed without each other first; a proved one may help to prove others. Then facts
about counts and loops are proved from facts that stay assumed, which are named ('given').
A refutation may depend on others, too: then the fact or one of these is wrong.
Facts that define the paths (path must end at PLACE), the board (region ... is cached), or the
targets of calls are never proved: they are premises of all proofs.

The exit status is 0 if all facts are proved, else 1. With --allow-assumed it is 1 only if one is
refuted.
"""
EXAMPLES = """\
examples:
  wcet prove kernel.elf
  wcet prove kernel.elf --facts my.facts --entry syscall
  wcet prove kernel.elf --obligations open/          # 001.txt, 001.1.smt2, ...
  wcet prove kernel.elf --json - | jq '.facts[] | select(.verdict == "refuted")'
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "prove or refute each fact from the binary"
    p = add_command(commands, "prove", text, DESCRIPTION, EXAMPLES, run)
    add_kernel(p)
    add_entries(p)
    p.add_argument(
        "--obligations",
        type=Path,
        metavar="DIR",
        help="write for each assumed fact the proof that it lacks: a statement with source lines "
        "(NNN.txt), and formulas of which one is to be unsatisfiable (NNN.M.smt2); DIR must not "
        "exist, or be empty",
    )
    p.add_argument(
        "--allow-assumed",
        action="store_true",
        help="the exit status is 1 for refuted facts only",
    )
    add_json(p, "the verdicts")
    add_analysis(p)


def run(options: argparse.Namespace) -> int:
    """Judge the facts; returns the exit status."""
    refuse_used(options.obligations)
    stages = StageLog(verbose=not options.quiet)
    found = prove_facts(options.kernel, requested(options, options.entry), stages)
    files = []
    if options.obligations is not None:
        options.obligations.mkdir(parents=True, exist_ok=True)
        files = list(written(found, options.obligations))
    publish_document(options, lambda: to_json(found), lambda: to_text(found), files)
    refuted, assumed = map(found.count, (FactVerdict.REFUTED, FactVerdict.ASSUMED))
    return NOT_ALL_PROVED if refuted or (assumed and not options.allow_assumed) else 0


def refuse_used(folder: Path | None) -> None:
    """Raise UsageError for a folder of obligations with other files in it."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"--obligations {folder} is not an empty folder", hint="name one that does not exist"
        )


def written(found: FactProofs, folder: Path) -> Iterator[tuple[Path, Any]]:
    """The files of all assumed facts, numbered by their place in the list of facts."""
    for number, one in enumerate(found.facts, 1):
        if one.verdict is FactVerdict.ASSUMED:
            for name, text in obligations(one, number, found.located, found.image):
                yield folder / name, (lambda text=text: text)


def to_text(found: FactProofs) -> Iterator[str]:
    """The verdicts, refuted facts first, then the numbers and the assumptions of proofs."""
    for verdict in (FactVerdict.REFUTED, FactVerdict.ASSUMED, FactVerdict.PROVED):
        for one in found.facts:
            if one.verdict is verdict:
                yield from fact_text(one)
    counts = ", ".join(f"{found.count(verdict)} {verdict.value}" for verdict in FactVerdict)
    about = f"on the paths of {', '.join(found.entries)}"
    yield f"{len(found.facts)} facts {about}: {counts}" if found.facts else f"no facts {about}"
    for assumption in found.assumptions:
        yield f"assumed: {assumption}"


def fact_text(one: JudgedFact) -> Iterator[str]:
    """A fact, its evidence or reason, and the missing proof."""
    yield f"{one.verdict.value:<9}{one.fact.source}: {one.fact}"
    yield f"  {one.why}"
    if one.given:
        yield f"  given {', '.join(one.given)}"
    if one.needs:
        yield f"  a proof needs {one.needs}"


def to_json(found: FactProofs) -> dict[str, Any]:
    """The verdicts as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "entries": list(found.entries),
        "proved": found.count(FactVerdict.PROVED),
        "refuted": found.count(FactVerdict.REFUTED),
        "assumed": found.count(FactVerdict.ASSUMED),
        "facts": [
            {
                "source": str(one.fact.source),
                "fact": str(one.fact),
                "verdict": one.verdict.value,
                "why": one.why,
                "needs": one.needs or None,
                "given": list(one.given),
            }
            for one in found.facts
        ],
        "assumptions": list(map(str, found.assumptions)),
        "assumption_kinds": table(found.assumptions),
    }
