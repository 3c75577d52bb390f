"""Entries in Thumb code: bit 0 of an address says so, and is no part of where code is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quoll.facts.fact_places import find_place
from quoll.facts.located import NO_FACTS
from quoll.image.image import Image
from quoll.recordings.trace import End
from tests.testing.quoll.building import build
from tests.testing.quoll.recordings import Run as Ran
from tests.testing.quoll.recordings import recording
from wcet.analysis.interrupts import InterruptCode, serves_interrupts
from wcet.cli import main
from wcet.platforms.platform_model import load

CODE = 0xF0010000
SOURCE = """\
    .syntax unified
    .cpu cortex-a8
    .thumb
    .global main
    .type vector_irq, %function
    .thumb_func
main:
vector_irq:
    movs r0, #0
again:
    adds r0, #1
    cmp r0, #3
    bne again
    bx lr
    .irp name, svc, undefined, prefetch_abort, data_abort
    .type vector_\\name, %function
    .thumb_func
vector_\\name:
    bx lr
    .endr
"""
HEAD, ROUND, LAST = CODE, [CODE + 2, CODE + 4, CODE + 6], CODE + 8
EXECUTION = [HEAD, *ROUND, *ROUND, *ROUND, LAST]
FACTS = ("loop 0x{:x} at most 3", "0x{:x} executes at most 3 times", "count(0x{:x}) <= 2 in main")


@pytest.fixture(scope="module")
def elf() -> Path:
    """A handler at a symbol of the Cubieboard's interrupt entry."""
    return build(SOURCE, language="S", cpu="cortex-a8", thumb=True, link=(f"-Wl,-Ttext={CODE:#x}",))


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("bit", [0, 1])
def test_executions_judge_facts(elf: Path, tmp_path: Path, bit: int) -> None:
    """An odd address in a fact is the instruction at the even one."""
    trace, facts, out = tmp_path / "irq.trace", tmp_path / "my.facts", tmp_path / "out.json"
    trace.write_bytes(recording([Ran(EXECUTION, [], End.OUTSIDE, [])]))
    facts.write_text("\n".join(text.format(ROUND[0] | bit) for text in FACTS))
    asked = [str(elf), str(trace), "--facts", str(facts), "--quiet", "--json", str(out)]
    assert main(["check-facts", *asked]) == 1
    document = json.loads(out.read_text())
    assert [r["executions"] for r in document["recordings"]] == [1]
    assert [f["reached"] for f in document["facts"]] == [1, 1, 1]
    assert [f["violations"] for f in document["facts"]] == [0, 0, 1]


def test_replay_knows_the_entry(elf: Path, tmp_path: Path) -> None:
    trace, out = tmp_path / "irq.trace", tmp_path / "out.json"
    trace.write_bytes(recording([Ran(EXECUTION, [], End.OUTSIDE, [])]))
    asked = [str(trace), "--kernel", str(elf), "--quiet", "--json", str(out)]
    assert main(["replay", *asked]) == 0
    assert list(json.loads(out.read_text())["entries"]) == ["interrupt"]


def test_documents_name_the_first_instruction(elf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main(["analyse", str(elf), "--entry", "interrupt", "--quiet", "--json", str(out)]) == 0
    entry = json.loads(out.read_text())["entries"]["interrupt"]
    assert entry["address"] == hex(CODE)
    assert f"{CODE:#x} <" in entry["symbol"]


@pytest.mark.parametrize("bit", [0, 1])
def test_the_interrupt_path_is_known_by_either_address(elf: Path, bit: int) -> None:
    image, board = Image.load(elf), load("cubieboard")
    assert serves_interrupts(image, board, NO_FACTS, frozenset(), CODE | bit, InterruptCode())
    assert serves_interrupts(image, board, NO_FACTS, frozenset(), ROUND[0] | bit, InterruptCode())


def test_the_bit_is_kept_for_what_is_called(elf: Path) -> None:
    image = Image.load(elf)
    for text in (f"{CODE:#x}", f"{CODE | 1:#x}", "vector_irq"):
        place = find_place(image, text)
        assert (place.addresses, place.words) == ((CODE,), (CODE | 1,))
    assert find_place(image, "vector_irq+3").addresses == (CODE + 2,)
