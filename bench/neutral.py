"""What is known of a kernel, as tables that other analysers can read: tab-separated, one header.

The facts are those of ``kernels/bilby/tools/facts.py``, which collects the comments beside the
loops; addresses come from the line table of the ELF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quoll.errors import InputError
from quoll.image import Image

__all__ = ["facts_table", "lines_table", "loops_table", "parameters_of"]

STATED = re.compile(r"loop (\S+) at most (.+?)(?:\s+# (.*))?")
PREEMPTED = re.compile(r"# loop (\S+) is preempted at point (\d+)")
COUNTED = re.compile(r"# loop (\S+) is counted at (\S+)")
TOTAL = re.compile(r"(\S+) executes at most (.+?) times(?:\s+# (.*))?")
NAME = re.compile(r"([a-z_]+)(?: \+ \d+)?")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Tab-separated, with the names of the columns first."""
    lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def lines_table(image: Image) -> bytes:
    """Where each source line's code begins; it ends where the next row begins."""
    lines = image.lines
    rows = []
    for start in lines.starts:
        found = lines.line(start)
        rows.append((hex(start), *((found.path, found.line) if found else ("-", 0))))
    return table(("address", "file", "line"), rows)


def facts_table(facts: str, image: Image) -> bytes:
    """One row per line of ``kernel.facts``. Raises InputError for a line of a form unknown here."""
    rows = [(*row, _addresses(image, row[1])) for row in _rows(facts)]
    return table(("kind", "place", "bound", "argument", "addresses"), rows)


def parameters_of(facts: str) -> list[str]:
    """The names that stand for numbers in ``kernel.facts``, sorted."""
    limits = [bound for kind, _, bound, _ in _rows(facts) if kind in ("loop", "total")]
    return sorted({found[1] for bound in limits if (found := NAME.fullmatch(bound))})


def _rows(facts: str) -> list[tuple[str, str, str, str]]:
    """Kind, place, bound and argument of each line."""
    heading = ("# Generated", "# loop PLACE")
    return [_fact(line) for line in facts.splitlines() if line and not line.startswith(heading)]


def _fact(line: str) -> tuple[str, str, str, str]:
    if found := STATED.fullmatch(line):
        return "loop", found[1], found[2], found[3] or "-"
    if found := PREEMPTED.fullmatch(line):
        return "preempted", found[1], f"point {found[2]}", "an interrupt that is pending ends it"
    if found := COUNTED.fullmatch(line):
        return "counted", found[1], found[2], "each turn passes a place that another row limits"
    if found := TOTAL.fullmatch(line):
        return "total", found[1], found[2], found[3] or "-"
    raise InputError(f"kernel.facts has a line that the benchmark cannot express: '{line}'")


def _addresses(image: Image, place: str) -> str:
    """Of a line where its code begins, of a symbol its address; in this order, with commas."""
    file, _, line = place.rpartition(":")
    if file and line.isdecimal():
        found = image.addresses_of_line(file, int(line))
    else:
        symbol = image.symbol(place)
        found = () if symbol is None else (symbol.addr,)
    return ",".join(map(hex, found)) or "-"


def loops_table(report: Mapping[str, Any]) -> bytes:
    """The loops of an analysis (``wcet analyse --json``), each with its largest bound anywhere."""
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
