"""The families of hostile programs, and the program that a seed and an index determine."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from campaigns.adversary import (
    banks,
    based_tables,
    contradictions,
    dirty_lines,
    endianness,
    frames,
    interrupts,
    maintenance,
    mappings,
    modes,
    overlaps,
    returns,
    status_fields,
    stores,
    tables,
    translations,
    unmodelled,
    versions,
)
from campaigns.adversary.program import ARM, BOARDS, THUMB, Program, Writer

__all__ = ["EFFECTS", "FAMILIES", "TURN", "draw", "family_of"]

# Effects of instructions besides computing; drawn for ARM code of both cores.
EFFECTS: dict[str, Callable[[Writer], Program]] = {
    "banks": banks.generate,
    "based_tables": based_tables.generate,
    "contradictions": contradictions.generate,
    "dirty_lines": dirty_lines.generate,
    "endianness": endianness.generate,
    "overlaps": overlaps.generate,
    "returns": returns.generate,
    "status_fields": status_fields.generate,
    "translations": translations.generate,
    "versions": versions.generate,
}
FAMILIES: dict[str, Callable[[Writer], Program]] = {
    "frames": frames.generate,
    "stores": stores.generate,
    "modes": modes.generate,
    "interrupts": interrupts.generate,
    "tables": tables.generate,
    "mappings": mappings.generate,
    "maintenance": maintenance.generate,
    "preempted": interrupts.nested,
    "unmodelled": unmodelled.generate,
    **EFFECTS,
}

SHARES = {
    "frames": 4, "stores": 3, "modes": 3, "interrupts": 2, "tables": 3, "mappings": 2,
    "maintenance": 1, "preempted": 1, "unmodelled": 1,
    "banks": 3, "based_tables": 2, "contradictions": 2, "dirty_lines": 2, "endianness": 2,
    "overlaps": 4, "returns": 3, "status_fields": 2, "translations": 2, "versions": 2,
}  # fmt: skip
TURN = tuple(name for name, share in SHARES.items() for _ in range(share))


def family_of(index: int) -> str:
    """The family of program ``index``; all families alternate."""
    return TURN[index * 7 % len(TURN)]


def draw(family: str, seed: int, index: int) -> Program:
    """Program ``index`` of a family: two thirds are ARM code, the others Thumb code."""
    if family in EFFECTS:
        board = BOARDS[index % 3]
    else:
        board = THUMB if index % 3 == 2 else ARM
    return FAMILIES[family](Writer(Random(f"{family} {seed} {index}"), board))
