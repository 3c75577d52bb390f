"""The nest of a worst path in ``analyse --json`` against the steps of ``path --full``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """\
unsigned table[64];
__attribute__((noinline)) void work(unsigned n) {{
    for (unsigned i = 0; i < n; i++)
        if (i & 1) table[i & 63] = n;
}}
void start(void) {{
    for (unsigned j = 0; j < {times}; j++) work(5);
    work(7);
}}
"""
CODE = "-Wl,-Ttext=0xf0010000"


def entry_and_steps(
    capsys: pytest.CaptureFixture[str], folder: Path, times: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The entry's part of the document; the lines of ``path --full``, the first line first."""
    elf = build(SOURCE.format(times=times), link=(CODE,))
    options = (str(elf), "--platform", "kzm", "--entry", "start", "--quiet", "--cache", str(folder))
    assert main(["analyse", *options, "--json", "-"]) == 0
    entry = json.loads(capsys.readouterr().out)["entries"]["start"]
    assert main(["path", *options, "--full"]) == 0
    return entry, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow("two commands on one program")
def test_the_nest_has_the_counts_and_cycles_of_the_steps(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    entry, (first, *steps) = entry_and_steps(capsys, tmp_path, 9)
    check_sections(entry)
    assert first["steps"] == len(steps)
    assert first["cycles"] == entry["cycles"] == sum(step["cycles"] for step in steps)
    runs, cycles, entered = Counter[Any](), Counter[Any](), Counter[Any]()
    for section in entry["path"]:
        for block in section["blocks"]:
            at = section["context"], block["address"]
            runs[at] += block["executions"]
            cycles[at] += block["cycles"]
            assert sum(edge["traversals"] for edge in block["edges"]) in (runs[at], runs[at] - 1)
            entered.update({(e["context"], e["to"]): e["traversals"] for e in block["edges"]})
    assert runs == Counter((step["context"], step["address"]) for step in steps)
    assert runs - entered == Counter([(steps[0]["context"], steps[0]["address"])])
    for step in steps:
        cycles[step["context"], step["address"]] -= step["cycles"]
    assert not any(cycles.values())


def check_sections(entry: dict[str, Any]) -> None:
    """Each section stands after the one around it, which includes its cycles."""
    path = entry["path"]
    inside = [0] * len(path)
    for number, section in reversed(list(enumerate(path))):
        own = sum(block["cycles"] for block in section["blocks"])
        assert section["cycles"] == own + inside[number]
        if number:
            assert section["inside"] < number
            inside[section["inside"]] += section["cycles"]
    assert path[0]["inside"] is None
    assert path[0]["cycles"] == entry["cycles"]
    bounds = [entry["loops"][s["loop"]]["bound"] for s in path if s["loop"] is not None]
    assert {s["iterations"] // s["entries"] for s in path if s["loop"] is not None} == {*bounds}


@pytest.mark.slow("four commands on two programs")
def test_the_nest_does_not_grow_with_the_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    short, few = entry_and_steps(capsys, tmp_path, 30)
    long, many = entry_and_steps(capsys, tmp_path, 3000)
    assert len(many) > 50 * len(few)
    assert [len(s["blocks"]) for s in long["path"]] == [len(s["blocks"]) for s in short["path"]]


def test_steps_and_another_output_do_not_share_standard_output() -> None:
    command = ["path", "a.elf", "--entry", "start", "--full"]
    assert main([*command, "--json", "-"]) == 2
