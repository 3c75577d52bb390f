"""A core that its user describes: two files beside the platform file."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pipeline import core as core_module
from quoll.errors import InputError
from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.platforms.platform_model import DIRECTORY, load

SOURCE = """
unsigned table[16];
unsigned vector_svc(void) { unsigned s = 0; for (int i = 0; i < 16; i++) s += table[i]; return s; }
"""


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """The KZM with a copy of its core."""
    for suffix in ("csv", "toml"):
        shutil.copy(core_module.DIRECTORY / f"arm1136.{suffix}", tmp_path / f"mine.{suffix}")
    text = (DIRECTORY / "kzm.toml").read_text()
    (tmp_path / "board.toml").write_text(text.replace('name = "arm1136"', 'name = "mine.csv"'))
    return tmp_path / "board.toml"


def cycles(elf: Path, platform: Path | str, folder: Path) -> int:
    out = folder / "out.json"
    asked = ["--entry", "syscall", "--quiet", "--platform", str(platform), "--json", str(out)]
    assert main(["analyse", str(elf), *asked]) == 0
    return int(json.loads(out.read_text())["entries"]["syscall"]["cycles"])


@pytest.mark.slow("several whole analyses")
def test_its_rows_are_used_and_a_change_is_seen(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are kept by the content of the file: its name stays the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    elf = build(SOURCE, link=("-Wl,-Ttext=0xf0010000",))
    assert cycles(elf, board, tmp_path) == (before := cycles(elf, "kzm", tmp_path))
    rows = (tmp_path / "mine.csv").read_text()
    (tmp_path / "mine.csv").write_text(rows, "utf-8-sig")  # as spreadsheets write it
    assert cycles(elf, board, tmp_path) == before
    slower = rows.replace("EXCEPTION_ENTRY,any,8,,,,,10,", "EXCEPTION_ENTRY,any,8,,,,,97,")
    assert slower != rows
    (tmp_path / "mine.csv").write_text(slower)
    assert cycles(elf, board, tmp_path) == before + 97 - 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("missing", "mine.csv cannot be read: No such file"),
        ("pipe", "mine.csv is a pipe"),
        ("bytes", "mine.csv: not UTF-8"),
        ("folder", "core.name: a file beside the platform file"),
        ("unknown", "core.name: no core 'arm1137'"),
    ],
)
def test_a_fault_is_named(board: Path, tmp_path: Path, change: str, said: str) -> None:
    own = tmp_path / "mine.csv"
    if change in ("missing", "pipe"):
        own.unlink()
    if change == "pipe":
        os.mkfifo(own)
    if change == "bytes":
        own.write_bytes(b"class,\xff\xfe")
    for name, other in (("folder", "../mine.csv"), ("unknown", "arm1137")):
        if change == name:
            board.write_text(board.read_text().replace("mine.csv", other))
    with pytest.raises(InputError, match=said):
        load(str(board))


@pytest.mark.parametrize(
    "text", ["", "\n", "class\nLDR", "a,b,c\n1,2,3\n", 'class,"\n', "class\0,\n", "{short}"]
)
def test_rows_that_are_none_are_refused(
    board: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    header = (tmp_path / "mine.csv").read_text().splitlines()[0]
    (tmp_path / "mine.csv").write_text(text.replace("{short}", f"{header}\nLDR,any,1\n"))
    elf = build(SOURCE, link=("-Wl,-Ttext=0xf0010000",))
    asked = ["analyse", str(elf), "--entry", "syscall", "--quiet", "--no-cache"]
    assert main([*asked, "--platform", str(board)]) in (3, 7)
    assert "mine.csv" in capsys.readouterr().err


def test_a_row_that_no_instruction_has_is_said(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (tmp_path / "mine.csv").read_text()
    (tmp_path / "mine.csv").write_text(rows.replace("CLZ,any", "CLZ,anny"))
    assert main(["platform", "check", str(board)]) == 1
    said = capsys.readouterr().out
    assert "the row CLZ, anny is in no core of the project: did you mean CLZ, any?" in said


def test_its_attributes_stand_beside_it(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = build(SOURCE, link=("-Wl,-Ttext=0xf0010000",))
    attributes = (tmp_path / "mine.toml").read_text()
    (tmp_path / "mine.toml").write_text(attributes.replace('"v6"', '"v7"'))
    asked = ["analyse", str(elf), "--entry", "syscall", "--quiet", "--platform", str(board)]
    assert main(asked) == 3
    assert "not built for" in capsys.readouterr().err
