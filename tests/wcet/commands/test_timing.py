"""``wcet timing``: diagrams of small programs whose cycles can be checked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE
from wcet.cli import main

SOURCE = """
.text
.global main
main:
    push {r4, lr}
    bl leaf
    bl leaf
    pop {r4, pc}
.global leaf
leaf:
    ldr r1, [r2]
    add r6, r5, r1
    mov r7, r5
    bx lr
.global unused
unused:
    bx lr
"""


def elf(cpu: str) -> str:
    types = "".join(f".type {name}, %function\n" for name in ("main", "leaf", "unused"))
    return str(build(types + SOURCE, language="asm", cpu=cpu, link=(CODE,)))


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["timing", *arguments, "--quiet", "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("cpu", "waits", "together"), [("arm1136jf-s", 3, 1), ("cortex-a8", 2, 0)])
def test_the_load_and_its_user(
    cpu: str, waits: int, together: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, elf(cpu), "leaf", "--entry", "main")
    (block,) = found["blocks"]
    load, user, other, _ = block["insns"]
    assert user["waits_for"] == "r1"
    assert user["cycle"] - load["cycle"] == waits
    assert other["cycle"] - user["cycle"] == together
    assert block["cycles"]["stalls"] == sum(insn["stall"] for insn in block["insns"])
    charged = sum(r["cycles"] for insn in block["insns"] for r in insn["references"])
    names = ("I-misses", "D-misses", "stores")
    assert charged == sum(block["cycles"].get(name, 0) for name in names)
    assert [edge["kind"] for edge in block["edges"]] == ["return"]


def test_contexts_are_listed_and_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    path = elf("arm1136jf-s")
    assert main(["timing", path, "leaf", "--entry", "main", "--contexts", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    numbers = [int(line.split()[0]) for line in lines]
    assert len(numbers) == 2
    costs = []
    for number in numbers:
        found = document(capsys, path, "leaf", "--entry", "main", "--context", str(number))
        assert found["context"] == number
        costs.append(sum(found["blocks"][0]["cycles"].values()))
    assert costs == sorted(costs, reverse=True), "the costliest first"
    assert document(capsys, path, "leaf", "--entry", "main")["context"] == numbers[0]


def test_the_diagram(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "timing.json"
    arguments = ["timing", elf("arm1136jf-s"), "leaf", "--entry", "main", "--quiet"]
    assert main([*arguments, "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "core arm1136, wcet" in text
    assert "..#" in text
    assert "2 for r1" in text
    assert "-> return" in text
    assert json.loads(out.read_text())["entry"] == "main"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unused", "--entry", "main"], "unused is never executed by main"),
        (["leaf", "--entry", "main", "--context", "999"], "no context 999"),
        (["nothing"], "nothing"),
    ],
)
def test_what_cannot_be_shown(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["timing", elf("arm1136jf-s"), *arguments, "--quiet"]) == 2
    assert message in capsys.readouterr().err
