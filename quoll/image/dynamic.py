"""Tables of dynamic relocations, from PT_DYNAMIC: a loader needs no section headers.

Source: System V ABI, chapter 5, "Dynamic Section"; generic ABI, "Relative relocation table" (RELR).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["BadDynamicSection", "RelocationTable", "relocation_tables"]

REL, RELA, RELR = "Elf_Rel", "Elf_Rela", "Elf_Relr"
ROW_BYTES = {REL: 8, RELA: 12, RELR: 4}
# The fields of each kind: address of the table, its size, size of a row.
TABLES = (
    ("DT_REL", "DT_RELSZ", "DT_RELENT", REL),
    ("DT_RELA", "DT_RELASZ", "DT_RELAENT", RELA),
    ("DT_RELR", "DT_RELRSZ", "DT_RELRENT", RELR),
    ("DT_ANDROID_RELR", "DT_ANDROID_RELRSZ", "DT_ANDROID_RELRENT", RELR),
)
CALLS, CALLS_SIZE, CALLS_KIND = "DT_JMPREL", "DT_PLTRELSZ", "DT_PLTREL"
KINDS = {17: REL, 7: RELA}  # possible values of DT_PLTREL: DT_REL, DT_RELA
PACKED = ("DT_ANDROID_REL", "DT_ANDROID_RELA")  # in their own format


class BadDynamicSection(Exception):
    """Entries that contradict the standard, or name relocations in an unsupported form."""


@dataclass(frozen=True, slots=True)
class RelocationTable:
    """``size`` bytes at ``addr``; ``layout`` is the name of a row in pyelftools."""

    layout: str
    addr: int
    size: int


def relocation_tables(entries: Iterable[tuple[str, int]]) -> tuple[RelocationTable, ...]:
    """The tables named by ``entries``, tags and values up to DT_NULL.

    Raises BadDynamicSection. Tags without a name do not concern relocations.
    """
    values: dict[str, int] = {}
    for tag, value in entries:
        if tag == "DT_NULL":
            break
        if values.setdefault(tag, value) != value:
            raise BadDynamicSection(f"{tag} stands there twice")
    packed = next((tag for tag in PACKED if tag in values), None)
    if packed is not None:
        raise BadDynamicSection(f"{packed}: packed relocations are not read")
    found = [
        _table(values, table, size, row, layout)
        for table, size, row, layout in TABLES
        if table in values
    ]
    if CALLS in values:
        kind = KINDS.get(values.get(CALLS_KIND, 0))
        if kind is None:
            raise BadDynamicSection(f"{CALLS} without a {CALLS_KIND} of DT_REL or DT_RELA")
        found.append(_table(values, CALLS, CALLS_SIZE, "", kind))
    return tuple(found)


def _table(values: dict[str, int], table: str, size: str, row: str, layout: str) -> RelocationTable:
    if size not in values:
        raise BadDynamicSection(f"{table} without {size}")
    wanted = ROW_BYTES[layout]
    if values.get(row, wanted) != wanted:
        raise BadDynamicSection(f"{row} is {values[row]}, not {wanted}")
    if values[size] % wanted:
        raise BadDynamicSection(f"{size} is {values[size]}, no multiple of {wanted}")
    return RelocationTable(layout, values[table], values[size])
