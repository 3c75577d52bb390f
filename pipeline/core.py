"""Core descriptions: timing figures per instruction class, as rows of a table.

``pipeline/cores/NAME.csv`` has one row per class and condition, with the source of its figures
and how far it is to be trusted:

    class, condition        what the row is about
    issue, memory           cycles in the issue stage; cycles in the load/store unit
    latency                 from the first cycle to a result, one per result, ``;`` between them;
                            a single one holds for all results
                            (of stores: until a stored register may be overwritten)
    early, late             operands needed a cycle before, and not before a cycle after, the rest
                            (``Rn:2`` in ``late``: not before two cycles after); ``flags`` may be
                            late too
    wcet_issue, wcet_latency    upper bounds over all sources
    confidence              seen, derived, recall, seed or assumption
    source, note
    pair                    only of cores that issue two instructions in a cycle: ``either`` may
                            issue with an older one; ``older`` only with a younger one (it needs
                            the first pipe), in its last cycle; ``alone`` with none

``issue`` of a list that loads the pc may be ``N+M``: N more than the same list without the pc.

The documented figures are the *nominal* profile, the bounds the *wcet* profile (rule 17), which
gives no credit for late operands. A row that is not there is an error, never a default.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from pipeline.timing import Profile
from quoll.errors import InputError, TimingError

__all__ = ["Core", "CoreRow", "Pairing", "load_core"]

DIRECTORY = Path(__file__).parent / "cores"
COLUMNS = (
    "class", "condition", "issue", "memory", "latency", "early", "late",
    "wcet_issue", "wcet_latency", "confidence", "source", "note",
)  # fmt: skip
WITH_LIST = "1+M"  # memory cycles: one more than the same list without the pc
AFTER_LIST = "+M"  # issue cycles: so many more than the same list without the pc
PAIR = "pair"


class Pairing(Enum):
    """How an instruction may share a cycle with another one."""

    EITHER = "either"
    OLDER = "older"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class CoreRow:
    """Figures of one class under one condition, in one profile. Cycles; 0: does not apply."""

    issue: int
    memory: int
    with_list: bool  # ``memory`` is to be added to that of the list without the pc
    latency: tuple[int, ...]
    early: tuple[str, ...]
    late: dict[str, int]  # by how many cycles
    after_list: bool = False  # ``issue`` is to be added to that of the list without the pc
    pair: Pairing = Pairing.ALONE


@dataclass(frozen=True, slots=True)
class Core:
    """All rows of a core in one profile."""

    name: str
    profile: Profile
    rows: dict[tuple[str, str], CoreRow]
    dual_issue: bool = False

    def row(self, name: str, condition: str = "any") -> CoreRow:
        """The row of a class. Raises TimingError if there is none."""
        row = self.rows.get((name, condition))
        if row is None:
            raise TimingError(
                f"core {self.name} has no row {name}, {condition}",
                hint=f"add one to {self.name}.csv",
            )
        return row

    @property
    def longest(self) -> int:
        """Cycles after its issue that an instruction occupies a register or unit, at most."""
        return (
            max(max((*row.latency, row.memory + 1)) - row.issue for row in self.rows.values()) + 1
        )


@cache
def load_core(name: str, profile: Profile, own_rows: str | None = None) -> Core:
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
            raise InputError(f"{path}:{number}: not a number of cycles: {error}") from error
    return Core(name, profile, rows, dual_issue=bool(table) and PAIR in table[0])


def _row(cells: dict[str, str], profile: Profile) -> CoreRow:
    nominal = _figures(cells["issue"]), _figures(cells["latency"])
    bound = _figures(cells["wcet_issue"]), _figures(cells["wcet_latency"])
    for low, high in zip(nominal, bound, strict=True):
        if bool(low) != bool(high) or (low and max(low) > max(high)):
            raise ValueError(f"wcet figures {high} do not cover {low}")
    issue, latency = bound if profile is Profile.WCET else nominal
    with_list = cells["memory"] == WITH_LIST
    memory = 1 if with_list else int(cells["memory"] or 0)
    late = cells["late"] if profile is Profile.NOMINAL else ""
    offsets = (operand.partition(":")[::2] for operand in late.split())
    return CoreRow(
        max(issue, default=0),
        memory,
        with_list,
        latency,
        tuple(cells["early"].split()),
        {role: int(cycles or 1) for role, cycles in offsets},
        cells["issue"].endswith(AFTER_LIST),
        Pairing(cells.get(PAIR) or Pairing.ALONE.value),
    )


def _figures(cell: str) -> tuple[int, ...]:
    return tuple(int(f) for f in cell.removesuffix(AFTER_LIST).split(";")) if cell else ()
