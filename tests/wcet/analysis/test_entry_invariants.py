"""Invariants of entries in analyses: where they hold, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quoll.errors import FactsError
from tests.testing.wcet.entry_programs import RETURNS, kernel
from tests.testing.wcet.proved import options_for
from wcet.analysis.analysis import analyse
from wcet.analysis.result import EntryResult
from wcet.analysis.stage_times import SilentStageLog

pytestmark = pytest.mark.slow("analyses a program several times")
DATA = "w: .word 3\nlimit: .word 7\nbytes: .byte 1, 2\n"
LOOP = "ldr r1, =w\n{}ldr r3, [r1]\nand r3, r3, #31\n1: subs r3, r3, #1\nbpl 1b\n" + RETURNS
WITHOUT = 32  # iterations for any word
SMALL = "invariant small: w <= 7"


def result(folder: Path, code: str, facts: str, entry: str = "syscall") -> EntryResult:
    file = folder / "my.facts"
    file.write_text(facts + "\n")
    others = ".global inner\n.type inner, %function\ninner:\n" + code.replace(
        RETURNS, "bx lr\n.size inner, .-inner\n"
    )
    elf = kernel({"svc": code, "others": others}, DATA)
    options = replace(options_for(file), entries=(entry,))
    return analyse(elf, options, SilentStageLog()).entries[entry]


def bound(folder: Path, code: str, facts: str, entry: str = "syscall") -> int | None:
    """The bound of the only loop."""
    [found] = result(folder, code, facts, entry).bounds
    return found.bound


def test_a_range_bounds_a_loop_at_an_entry_only(tmp_path: Path) -> None:
    assert bound(tmp_path, LOOP.format(""), SMALL) == 8
    assert bound(tmp_path, LOOP.format(""), "invariant small: w <= limit and limit < 4") == 4
    assert bound(tmp_path, LOOP.format(""), "invariant small: w <= 7", "inner") == WITHOUT
    assert bound(tmp_path, LOOP.format(""), "invariant small: limit <= 7") == WITHOUT


def test_a_store_ends_it(tmp_path: Path) -> None:
    assert bound(tmp_path, LOOP.format("str r0, [r1]\n"), SMALL) == WITHOUT
    assert bound(tmp_path, LOOP.format("str r0, [r2]\n"), SMALL) == WITHOUT
    assert bound(tmp_path, LOOP.format("strb r0, [r1, #1]\n"), SMALL) == WITHOUT
    assert bound(tmp_path, LOOP.format("str r0, [r1, #4]\n"), SMALL) == 8


def test_a_word_counts_with_its_size(tmp_path: Path) -> None:
    read = LOOP.format("").replace("ldr r3, [r1]", "ldrb r3, [r1, #9]")
    assert bound(tmp_path, read, "invariant small: byte bytes+1 <= 7") == 8
    assert bound(tmp_path, read, "invariant small: bytes <= 7") == WITHOUT


def test_it_is_an_assumption_where_it_is_used(tmp_path: Path) -> None:
    listed = "my.facts:1: invariant small: w <= 7"
    assert any(listed in str(one) for one in result(tmp_path, RETURNS, SMALL).assumptions)
    inner = result(tmp_path, RETURNS, SMALL, "inner")
    assert not any(listed in str(one) for one in inner.assumptions)


def test_impossible_invariants_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="satisfies the invariants"):
        result(tmp_path, RETURNS, f"{SMALL}\ninvariant large: w > 7")
    with pytest.raises(FactsError, match="there is no symbol"):
        result(tmp_path, RETURNS, "invariant small: nowhere <= 7")
    with pytest.raises(FactsError, match="is not in the image"):
        result(tmp_path, RETURNS, "invariant small: bytes+0x10000 <= 7")
    with pytest.raises(FactsError, match="outside inner"):
        result(tmp_path, RETURNS, "invariant small: inner+4 <= 7")
    with pytest.raises(FactsError, match="contradicts"):
        result(tmp_path, RETURNS, f"{SMALL}\ninvariant small: w <= 8")
