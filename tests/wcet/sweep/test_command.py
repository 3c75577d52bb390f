"""``wcet sweep``: one table, whoever computes it, and no analysis twice."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from tests.testing.wcet.schemas import faults
from wcet.cli import main

SOURCE = """\
unsigned table[64];
unsigned main(unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < LIMIT; i++) total += table[i];
    return total;
}
"""
MATRIX = """\
entries = ["main"]
[[kernels]]
files = ["*.elf"]
platforms = ["kzm"]
[options.plain]
arguments = []
[options.wrong]
arguments = ["--l2", "maybe"]
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    for name, limit in (("one", "(n & 7)"), ("two", "n")):
        shutil.copy(build(SOURCE, f"-DLIMIT={limit}", optimise="-O1"), tmp_path / f"{name}.elf")
    path = tmp_path / "m.toml"
    path.write_text(MATRIX)
    return path


def sweep(matrix: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wcet.cli", "sweep", str(matrix), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=matrix.parent, env=dict(os.environ)
    )


@pytest.mark.slow("starts workers of Dask, which run the command")
def test_a_table(matrix: Path) -> None:
    run = sweep(matrix, "--csv", "o.csv", "--markdown", "o.md", "--json", "o.json")
    assert run.returncode == 1, run.stderr  # one of the options is wrong
    assert run.stderr.count(" of at most 4: ") == 4
    document = json.loads((matrix.parent / "o.json").read_text())
    assert not faults("sweep", document)
    one, wrong, two, _ = document["rows"]
    assert (one["kernel"], one["platform"], one["options"]) == ("one.elf", "kzm", "plain")
    assert one["cycles"] > 0
    assert "maybe" in wrong["error"]
    assert "has no bound" in two["error"]
    with (matrix.parent / "o.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["options"] for row in rows] == ["plain", "wrong"] * 2
    assert rows[0]["cycles"] == str(one["cycles"])
    assert (
        f"| one.elf | kzm | plain | main | {one['cycles']:,} |"
        in (matrix.parent / "o.md").read_text()
    )
    again = sweep(matrix)
    assert again.stdout == run.stdout
    assert " of at most " not in again.stderr  # nothing is analysed twice


def test_a_matrix_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(tmp_path / "m.toml")]) == 3
    assert "m.toml" in capsys.readouterr().err
