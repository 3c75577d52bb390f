"""A report names the evidence for "never returns"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """
.text
.global main, halt
.type main, %function
.type halt, %function
halt:   b halt
main:   push {r4, lr}
        cmp r0, #0
        blne halt
        pop {r4, pc}
"""


def test_the_evidence_is_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(SOURCE, "-Wl,-Ttext=0xf0010000", language="S")
    (facts := tmp_path / "k.facts").write_text("path must end at halt\n")
    document = tmp_path / "k.json"
    arguments = ["analyse", str(elf), "--entry", "main", "--platform", "kzm", "--no-cache"]
    assert main([*arguments, "--facts", str(facts), "--json", str(document)]) == 0
    said = "0xf0010000 <halt> prog.S:6: its path ends at 0xf0010000 <halt> prog.S:6"
    assert f"functions that never return\n  {said}\n" in capsys.readouterr().out
    assert json.loads(document.read_text())["entries"]["main"]["never_returning"] == [said]
