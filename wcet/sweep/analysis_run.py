"""One analysis of a sweep, in a worker: a process that runs ``wcet analyse``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from quoll.errors import InputError
from quoll.processes.children import run
from wcet.sweep.matrix import file_digest
from wcet.sweep.task import Json

__all__ = ["Unfinished", "run_analysis"]

PARTLY = 6  # exit status: some entries have no bound
FINAL = range(2, 10)  # exit statuses that the inputs determine
SOLVER = 8  # except for this one: a solver may have been killed


class Unfinished(Exception):
    """The analysis ended for a reason that is not in its inputs, as for lack of memory or time."""


def run_analysis(argument: Mapping[str, Any]) -> Json:
    """Bounds by entry, or the error of the whole run.

    Raises InputError if an input of the task is another file here, and Unfinished.
    """
    for name, digest in argument["inputs"]:
        if file_digest(Path(name)) != digest:
            raise InputError(f"{name} is not the file that the sweep was started with")
    ended = run(_command(argument), seconds=None, most=argument["seconds"])
    if ended.status is None:
        raise Unfinished(f"no result within {argument['seconds']:g} seconds")
    if ended.status not in (0, PARTLY):
        error = " ".join(ended.errors.split())
        if ended.status not in FINAL or ended.status == SOLVER:
            raise Unfinished(error or f"wcet analyse ended with status {ended.status}")
        return {"error": error, "rows": []}
    return _summary(json.loads(ended.output)) if ended.output else _nothing(ended.errors)


def _command(argument: Mapping[str, Any]) -> list[str]:
    command = [sys.executable, "-m", "wcet.cli", "analyse", argument["kernel"], "--no-facts"]
    for entry in argument["entries"]:
        command += ["--entry", entry]
    for file in argument["facts"]:
        command += ["--facts", file]
    if argument["platform"]:
        command += ["--platform", argument["platform"]]
    return [*command, *argument["arguments"], "--json", "-", "--quiet"]


def _nothing(errors: str) -> Json:
    return {"error": " ".join(errors.split()), "rows": []}


def _summary(document: Mapping[str, Any]) -> Json:
    stages = document["stages"].values()
    return {
        "error": None,
        "platform": document["platform"]["name"],
        "sha256": document["kernel"]["sha256"],
        "rows": list(_rows(document)),
        "seconds": round(sum(stage["seconds"] for stage in stages), 3),
        "peak_mib": max((stage["peak_mib"] for stage in stages), default=0.0),
        "assumptions": document["assumptions"],
    }


def _rows(document: Mapping[str, Any]) -> Iterator[Json]:
    for name, entry in document["entries"].items():
        function = entry["parametric"]
        formula = None if function is None or entry["cycles"] is not None else function["text"]
        yield _row(name, entry["cycles"], entry["microseconds"], formula=formula)
    for name, unbounded in document["unbounded"].items():
        yield _row(name, error=unbounded["message"])
    latency = document["interrupt_latency"]
    if latency is not None:
        yield _row("interrupt latency", latency["cycles"], latency["microseconds"])


def _row(
    entry: str,
    cycles: int | None = None,
    microseconds: float | None = None,
    *,
    formula: str | None = None,
    error: str | None = None,
) -> Json:
    return {
        "entry": entry,
        "cycles": cycles,
        "microseconds": microseconds,
        "formula": formula,
        "error": error,
    }
