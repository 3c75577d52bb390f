"""The interrupt controller of a platform file: its predicate while an interrupt is pending.

    [controller]
    source = "..."
    stores = [0xE0001010]

    [[controller.field]]
    registers = [0xE0001018]
    mask = 0x000003FF
    values = [0, 1019]

``pending = [...]`` at the top of a file is a field whose words are not 0. Every row is checked
here; an InputError names the key.
"""

from __future__ import annotations

from dataclasses import replace

from quoll.preemption.predicate import (
    ALL_BITS,
    WORD_BITS,
    PendingField,
    PendingPredicate,
    field_of,
    line_number,
    non_zero,
    raw_lines,
)
from wcet.platforms.toml_table import TomlTable

__all__ = ["read_controller"]


def read_controller(top: TomlTable) -> tuple[PendingPredicate, int | None]:
    """The predicate of the controller while an interrupt is pending, and its delay in cycles."""
    fields: list[PendingField] = []
    if top.present("pending") and (registers := top.addresses("pending")):
        fields.append(replace(non_zero(registers), key="pending"))
    if not top.present("controller"):
        return PendingPredicate(tuple(fields)), None
    table = top.table("controller")
    top.sources[table.name] = table.text("source")
    delay = table.figure("delay") if table.present("delay") else None
    effects = {
        key: frozenset(table.addresses(key))
        for key in ("stores", "disables", "loads")
        if table.present(key)
    }
    for key, read in (("field", _field), ("raw", _raw)):
        for row in table.tables(key) if table.present(key) else ():
            fields.append(replace(read(row, _registers(row)), key=row.name))
            row.close()
    table.close()
    return PendingPredicate(tuple(fields), **effects), delay


def _registers(row: TomlTable) -> tuple[int, ...]:
    registers = row.addresses("registers")
    if not registers:
        raise row.error("registers", "names no word")
    return registers


def _raw(row: TomlTable, registers: tuple[int, ...]) -> PendingField:
    parallel = []
    for key in ("enabled_by", "disabled_by"):
        words = row.addresses(key) if row.present(key) else ()
        if words and len(words) != len(registers):
            raise row.error(
                key, f"must have {len(registers)} words, as registers has, not {len(words)}"
            )
        parallel.append(words)
    return raw_lines(registers, *parallel)


def _field(row: TomlTable, registers: tuple[int, ...]) -> PendingField:
    mask = row.number("mask", 1, ALL_BITS) if row.present("mask") else ALL_BITS
    values = _values(row, mask // (mask & -mask))
    if not row.present("selects"):
        return field_of(registers, mask, values)
    selects = row.addresses("selects")
    if values[1] >= WORD_BITS * len(selects):
        raise row.error(
            "selects", f"{len(selects)} words have no bit of number {values[1]}, 32 lines each"
        )
    return line_number(registers, mask, values, selects)


def _values(row: TomlTable, most: int) -> tuple[int, int]:
    """The first and last value of a field of which ``most`` is the largest."""
    given = row.numbers("values") if row.present("values") else (0, most)
    if len(given) != 2 or given[0] > given[1]:
        raise row.error("values", "must be [first, last], in ascending order")
    if given[1] > most:
        raise row.error("values", f"{given[1]} is no value of the mask, {most} is its largest")
    default = () if given != (0, most) else (0,)
    excluded = row.numbers("without") if row.present("without") else default
    found = _but(row, given, excluded)
    if found == (0, most):
        raise row.error("registers", "any word is pending: no value is left that means none")
    return found


def _but(row: TomlTable, values: tuple[int, int], excluded: tuple[int, ...]) -> tuple[int, int]:
    """``values`` less those at the ends that are ``excluded``."""
    low, high = values
    while low in excluded and low <= high:
        low += 1
    while high in excluded and low < high:
        high -= 1
    if low > high:
        raise row.error("without", "no value is left")
    inside = [value for value in excluded if low <= value <= high]
    if inside:
        raise row.error(
            "without", f"there are values below and above {inside[0]}: give values = [first, last]"
        )
    return low, high
