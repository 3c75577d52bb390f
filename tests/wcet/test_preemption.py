"""``wcet analyse`` where code tests for interrupts: bounds of segments (rule 21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.quoll.building import build
from wcet.cli import main

CLEARING = """
#define LOW  (*(volatile unsigned *)0xf8000058u)
#define HIGH (*(volatile unsigned *)0xf800005cu)
unsigned done;
__attribute__((noinline)) void chunk(unsigned *at) { for (int i = 0; i < 64; i++) at[i] = 0; }
int main(unsigned *at, unsigned *end) {
    while (at != end) {
        chunk(at);
        at += 64;
        done++;
        if (TEST) return 1;
    }
    return 0;
}
"""
PREEMPTIBLE = CLEARING.replace("TEST", "LOW | HIGH")


def analyse(folder: Path, source: str, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of one run."""
    out = folder / "report.json"
    elf = build(source, link=("-Wl,-Ttext=0xf0010000",))
    options = ["--entry", "main", "--platform", "kzm", "--quiet", "--solver", "highs"]
    status = main(["analyse", str(elf), *options, "--json", str(out), *more])
    return status, json.loads(out.read_text()) if status == 0 else {}


def test_without_a_test_for_interrupts_the_loop_has_no_bound(tmp_path: Path) -> None:
    assert analyse(tmp_path, CLEARING.replace("TEST", "0"))[0] == 6


def test_a_preemptible_loop_costs_one_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = analyse(tmp_path, PREEMPTIBLE)
    assert status == 0
    entry = report["entries"]["main"]
    assert [loop["bound"] for loop in entry["loops"]] == [64]
    assert len(entry["starts"]) >= 2
    assert entry["cycles"] == entry["starts"][0]["cycles"]
    assert sorted(s["cycles"] for s in entry["starts"])[::-1] == [
        s["cycles"] for s in entry["starts"]
    ]
    executed = sum(step["function"] == "chunk" for step in entry["path"])
    assert 0 < executed <= 2 * 64 + 4
    assert any("an interrupt is pending" in a for a in entry["assumptions"])
    if entry["starts"][0]["place"] is None:
        expected = f"{len(entry['starts']) - 1} starts at preemption points take less"
    else:
        expected = "from just after the test for interrupts at"
    assert expected in text(capsys)


def text(capsys: pytest.CaptureFixture[str]) -> str:
    """The text report of the preemptible program."""
    elf = build(PREEMPTIBLE, link=("-Wl,-Ttext=0xf0010000",))
    capsys.readouterr()
    assert main(["analyse", str(elf), "--entry", "main", "--platform", "kzm", "--quiet"]) == 0
    return capsys.readouterr().out
