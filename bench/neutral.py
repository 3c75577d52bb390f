"""Facts about a kernel as tables for other analysers: tab-separated, with one header row.

Loops and facts come from ``kernels/bilby/tools/facts.py``, which collects the comments beside the
loops; addresses come from the line table of the ELF.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quoll.errors import InputError
from quoll.image.image import Image

__all__ = ["facts_table", "lines_table", "loops_table", "parameters_of"]

STATED = re.compile(r"loop (\S+) at most (.+?)")
TOTAL = re.compile(r"(\S+) executes at most (.+?) times")
WITHOUT = re.compile(r"(preempted|counted) at (?:point )?(\S+)")  # a loop that has no number
NAME = re.compile(r"([a-z_]+)(?: \+ \d+)?")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Tab-separated, with the names of the columns first."""
    lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def lines_table(image: Image) -> bytes:
    """The first address of each source line's code, up to the address of the next row."""
    lines = image.lines
    rows = []
    for start in lines.starts:
        found = lines.line(start)
        rows.append((hex(start), *((found.path, found.line) if found else ("-", 0))))
    return table(("address", "file", "line"), rows)


def facts_table(loops: str, facts: str, image: Image) -> bytes:
    """One row per loop of ``kernel.loops.csv`` and per count of ``kernel.facts``.

    Raises InputError for a row or line of a form unknown here.
    """
    rows = [_loop(row) for row in csv.DictReader(io.StringIO(loops))]
    rows += [("total", f[1], f[2], "by the system's use") for f in _stated(facts) if f.re is TOTAL]
    return table(
        ("kind", "place", "bound", "argument", "addresses"),
        [(*row, _addresses(image, row[1])) for row in rows],
    )


def parameters_of(facts: str) -> list[str]:
    """The names that stand for numbers in ``kernel.facts``, sorted."""
    return sorted({name[1] for f in _stated(facts) if (name := NAME.fullmatch(f[2]))})


def _stated(facts: str) -> list[re.Match[str]]:
    """The statements in the lines of ``kernel.facts``."""
    found = []
    for line in facts.splitlines():
        text = line.partition("#")[0].strip()
        if text:
            match = TOTAL.fullmatch(text) or STATED.fullmatch(text)
            if match is None:
                raise InputError(f"the benchmark cannot express this fact: '{text}'")
            found.append(match)
    return found


def _loop(row: Mapping[str, str]) -> tuple[str, str, str, str]:
    """The kind, place, bound and argument of a loop."""
    if row["bound"]:
        return "loop", row["place"], row["bound"], row["why"]
    if found := WITHOUT.fullmatch(row["why"]):
        return found[1], row["place"], found[2], row["why"]
    raise InputError(f"the benchmark cannot express the bound of {row['place']}: '{row['why']}'")


def _addresses(image: Image, place: str) -> str:
    """The addresses of a line's code, or of a symbol, ascending, separated by commas."""
    file, _, line = place.rpartition(":")
    if file and line.isdecimal():
        found = image.addresses_of_line(file, int(line))
    else:
        symbol = image.symbol(place)
        found = () if symbol is None else (symbol.addr,)
    return ",".join(map(hex, found)) or "-"


def loops_table(report: Mapping[str, Any]) -> bytes:
    """The loops of an analysis (``wcet analyse --json``), each with its largest bound."""
    found: dict[str, dict[str, Any]] = {}
    for entry in report["entries"].values():
        for loop in entry["loops"]:
            known = found.get(loop["place"])
            if known is None or known["bound"] < loop["bound"]:
                found[loop["place"]] = loop
    rows = [
        (place.split()[0], place.split()[-1], loop["bound"], loop["method"], loop["evidence"])
        for place, loop in sorted(found.items())
    ]
    return table(("header", "line", "bound", "method", "evidence"), rows)
