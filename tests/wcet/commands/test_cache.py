"""``wcet cache`` and ``wcet values`` on the shipped kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wcet.cli import main
from wcet.commands.cache import SHARES


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--quiet", "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_summary(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "cache", str(kernel), "--entry", "interrupt")
    entry = found["entries"]["interrupt"]
    assert set(entry["data_shares"]) == set(SHARES)
    assert sum(entry["data_shares"].values()) == pytest.approx(1)
    assert {sum(sets.values()) for sets in entry["pressure"].values()} == {128}
    cycles = [row["cycles"] for row in entry["costliest"]]
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[0] > 0
    assert main(["cache", str(kernel), "--entry", "interrupt", "--quiet"]) == 0
    text = capsys.readouterr().out
    assert f"{cycles[0]:,}" in text
    assert "symbolic hit" in text


def test_a_function_with_its_classes(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["cache", str(kernel), "sched_run", "--entry", "interrupt"]
    rows = document(capsys, *arguments)["entries"]["interrupt"]
    assert [int(row["place"].split()[0], 16) for row in rows] == sorted(
        int(row["place"].split()[0], 16) for row in rows
    )
    assert all(
        count > 0
        for row in rows
        for found in row["references"].values()
        for count in found.values()
    )
    assert any(".." in reference for row in rows for reference in row["references"])
    assert main([*arguments, "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


def test_values_of_a_function(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["values", str(kernel), "sched_run", "--entry", "interrupt"]
    found = document(capsys, *arguments)
    first, *_ = found["blocks"]
    assert first["registers"]["sp"] == "0xf0021000"
    assert any(block["stack"] for block in found["blocks"])
    addresses = {a["address"] for block in found["blocks"] for a in block["accesses"]}
    assert any(" step 0x100" in address for address in addresses), "a thread"
    assert main([*arguments, "--quiet"]) == 0
    assert "sp = 0xf0021000" in capsys.readouterr().out
    assert main([*arguments, "--quiet", "--contexts"]) == 0
    assert str(found["context"]) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["values", "sched_run", "--entry", "interrupt", "--context", "99999"], "no context"),
        (["values", "decode_tcb", "--entry", "interrupt"], "never executed"),
        (["cache", "decode_tcb", "--entry", "interrupt"], "never executed"),
        (["values", "sched_run", "--entry", "all"], "one entry"),
    ],
)
def test_what_is_not_there(
    kernel: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    command, *rest = arguments
    assert main([command, str(kernel), *rest, "--quiet"]) == 2
    assert said in capsys.readouterr().err
