"""Core descriptions: timing figures per instruction class, as rows of a table.

``pipeline/cores/NAME.csv`` has one row per class and condition, with the source and the confidence
of its figures:

    class, condition        key of the row
    issue, memory           cycles in the issue stage; cycles in the load/store unit
    latency                 from the first cycle to a result, one per result, ``;`` between them;
                            a single one holds for all results
                            (stores: until a stored register may be overwritten)
    early, late             operands needed a cycle before, and not before a cycle after, the rest
                            (``Rn:2`` in ``late``: not before two cycles after); ``flags`` may be
                            late too
    wcet_issue, wcet_latency    upper bounds over all sources
    confidence              seen, derived, recall, seed or assumption
    source, note
    pair                    only of cores that issue two instructions in a cycle: ``either`` may
                            issue with an older one; ``older`` only with a younger one (it needs
                            the first pipe), in its last cycle; ``alone`` with none

The latency of BASE_WRITEBACK counts from the issue cycle that computes the address: the last cycle
of single loads, stores and pairs, the first cycle of lists.

``issue`` of a list that loads the pc may be ``N+M``: N more than the same list without the pc.

The documented figures form the *nominal* profile, the bounds the *wcet* profile (rule 17), which
gives no credit for late operands. A missing row is an error, never a default.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from pipeline.timing_model import CoreProfile, TimingModel
from quoll.errors import InputError, TimingError
from quoll.printable import shortened

__all__ = ["CoreRow", "CoreTable", "DualIssuePairing", "issue_width", "load_core"]

DIRECTORY = Path(__file__).parent / "cores"
COLUMNS = (
    "class", "condition", "issue", "memory", "latency", "early", "late",
    "wcet_issue", "wcet_latency", "confidence", "source", "note",
)  # fmt: skip
WITH_LIST = "1+M"  # memory cycles: one more than the same list without the pc
AFTER_LIST = "+M"  # issue cycles: this many more than the same list without the pc
PAIR = "pair"
NUMBER = re.compile(r"[0-9]{1,6}")
ROLES = ("Rn", "Rm", "Rs", "Rd", "Rd2", "RdLo", "RdHi")  # as pipeline/classes.py names operands
FLAGS = "flags"  # late only


class DualIssuePairing(Enum):
    """How an instruction may share a cycle with another one."""

    EITHER = "either"
    OLDER = "older"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class CoreRow:
    """Figures of one class under one condition, in one profile. Cycles; 0: does not apply."""

    issue: int
    memory: int
    with_list: bool  # ``memory`` adds to the figure of the list without the pc
    latency: tuple[int, ...]
    early: tuple[str, ...]
    late: dict[str, int]  # operand -> cycles that it may be late
    after_list: bool = False  # ``issue`` adds to the figure of the list without the pc
    pair: DualIssuePairing = DualIssuePairing.ALONE


@dataclass(frozen=True, slots=True)
class CoreTable:
    """All rows of a core in one profile."""

    name: str
    profile: CoreProfile
    rows: dict[tuple[str, str], CoreRow]
    dual_issue: bool = False

    def row(self, name: str, condition: str = "any") -> CoreRow:
        """The row of a class; raises TimingError if there is none."""
        row = self.rows.get((name, condition))
        if row is None:
            raise TimingError(
                f"core {self.name} has no row {name}, {condition}",
                hint=f"add one to {self.name}.csv",
            )
        return row

    def base_latency(self, row: CoreRow, *, last: bool) -> int:
        """Cycles from the first cycle of ``row`` to the base that is written back.

        ``last``: the last issue cycle computes the address, not the first.
        """
        return self.row("BASE_WRITEBACK").latency[0] + (row.issue - 1 if last else 0)

    @property
    def longest(self) -> int:
        """Cycles after its issue that an instruction occupies a register or unit, at most."""
        return (
            max(max((*row.latency, row.memory + 1)) - row.issue for row in self.rows.values()) + 1
        )


@cache
def load_core(name: str, profile: CoreProfile, own_rows: str | None = None) -> CoreTable:
    """The core called ``name``, or one whose rows are the text ``own_rows``.

    Raises InputError if its file is missing or malformed.
    """
    path = Path(f"{name}.csv") if own_rows is not None else DIRECTORY / f"{name}.csv"
    try:
        text = path.read_text("utf-8") if own_rows is None else own_rows
        table = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except OSError as error:
        raise InputError(f"core description {path}: {error.strerror}") from error
    except csv.Error as error:
        raise InputError(f"core description {path}: not a CSV file: {error}") from error
    if not table:
        raise InputError(f"{path}: has no rows", hint=f"columns: {', '.join(COLUMNS)}")
    rows: dict[tuple[str, str], CoreRow] = {}
    for number, cells in enumerate(table, 2):
        if tuple(cells) not in (COLUMNS, (*COLUMNS, PAIR)) or None in cells.values():
            raise InputError(f"{path}:{number}: must have the columns {', '.join(COLUMNS)}")
        if not cells["source"]:
            raise InputError(f"{path}:{number}: the figures have no source")
        key = (cells["class"], cells["condition"])
        if key in rows:
            raise InputError(f"{path}:{number}: {', '.join(key)} stands here twice")
        try:
            rows[key] = _row(cells, profile)
        except ValueError as error:
            raise InputError(f"{path}:{number}: {', '.join(key)}: {error}") from error
    return CoreTable(name, profile, rows, dual_issue=PAIR in table[0])


def issue_width(timing: TimingModel) -> int:
    """The most instructions that the core issues in one cycle."""
    return 2 if load_core(timing.core, timing.profile, timing.own_rows).dual_issue else 1


def _row(cells: dict[str, str], profile: CoreProfile) -> CoreRow:
    nominal = _figures(cells["issue"]), _figures(cells["latency"])
    bound = _figures(cells["wcet_issue"]), _figures(cells["wcet_latency"])
    for low, high in zip(nominal, bound, strict=True):
        if not _covers(high, low):
            raise ValueError(f"wcet figures {high} do not cover {low}")
    issue, latency = bound if profile is CoreProfile.WCET else nominal
    with_list = cells["memory"] == WITH_LIST
    memory = 1 if with_list else _cycles(cells["memory"] or "0")
    if memory and not with_list and profile is CoreProfile.WCET:
        memory = max(memory, *issue)  # the unit may be busy as long as the bound of ``issue``
    early = tuple(cells["early"].split())
    late = {
        role: _cycles(cycles or "1")
        for role, _, cycles in (operand.partition(":") for operand in cells["late"].split())
    }
    for role in (*early, *(role for role in late if role != FLAGS)):
        if role not in ROLES:
            raise ValueError(f"no operand {shortened(role)!r}: {', '.join(ROLES)}")
    return CoreRow(
        max(issue, default=0),
        memory,
        with_list,
        latency,
        early,
        late if profile is CoreProfile.NOMINAL else {},
        cells["issue"].endswith(AFTER_LIST),
        _pairing(cells.get(PAIR) or DualIssuePairing.ALONE.value),
    )


def _covers(high: tuple[int, ...], low: tuple[int, ...]) -> bool:
    """Whether each bound covers its figure; a single bound stands for all results."""
    if not high or not low:
        return high == low
    results = max(len(high), len(low))
    high, low = (row * results if len(row) == 1 else row for row in (high, low))
    return len(high) == len(low) and all(a >= b for a, b in zip(high, low, strict=True))


def _pairing(cell: str) -> DualIssuePairing:
    if cell not in {known.value for known in DualIssuePairing}:
        known = ", ".join(pairing.value for pairing in DualIssuePairing)
        raise ValueError(f"{PAIR} is {shortened(cell)!r}, not one of {known}")
    return DualIssuePairing(cell)


def _figures(cell: str) -> tuple[int, ...]:
    return tuple(map(_cycles, cell.removesuffix(AFTER_LIST).split(";"))) if cell else ()


def _cycles(text: str) -> int:
    if NUMBER.fullmatch(text) is None:
        raise ValueError(f"{shortened(text)!r} is no number of cycles")
    return int(text)
