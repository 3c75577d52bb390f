"""The matrix of a sweep, and one analysis of it in a worker."""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from quoll.errors import InputError
from quoll.processes.children import Ended
from tests.testing.quoll.building import build
from wcet.sweep import analysis_run
from wcet.sweep.analysis_run import Unfinished, run_analysis
from wcet.sweep.matrix import read_matrix

SOURCE = """\
unsigned table[64];
unsigned count;
unsigned main(unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < (n & 7); i++) total += table[i];
    return total;
}
unsigned open_loop(void) {
    unsigned total = 0;
    for (unsigned i = 0; i < count; i++) total += table[i & 63];
    return total;
}
"""
MATRIX = """\
entries = ["main"]
platforms = ["kzm", "board.toml"]
[[kernels]]
files = ["a/*.elf", "b.elf"]
facts = ["common.facts"]
[[kernels]]
files = ["b.elf"]
platforms = ["kzm"]
entries = ["open_loop"]
[options.plain]
arguments = []
[options.l2]
arguments = ["--l2", "on"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    for name in ("a/one.elf", "a/two.elf", "b.elf"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "a/one.facts").write_text("")
    (tmp_path / "common.facts").write_text("")
    (tmp_path / "board.toml").write_text("")
    (tmp_path / "m.toml").write_text(MATRIX)
    return tmp_path


def test_every_combination_in_the_order_of_the_file(folder: Path) -> None:
    found = read_matrix(folder / "m.toml")
    places = [(a.label, Path(a.platform).name, a.options, a.entries) for a in found]
    every = [
        (kernel, platform, options, ("main",))
        for kernel in ("a/one.elf", "a/two.elf", "b.elf")
        for platform in ("kzm", "board.toml")
        for options in ("plain", "l2")
    ]
    last = [("b.elf", "kzm", options, ("open_loop",)) for options in ("plain", "l2")]
    assert places == every + last
    assert [Path(f).name for f in found[0].facts] == ["one.facts", "common.facts"]
    assert [Path(f).name for f in found[4].facts] == ["common.facts"]
    assert [Path(f).name for f, _ in found[2].inputs] == [
        "one.elf", "one.facts", "common.facts", "board.toml"
    ]  # fmt: skip


def test_the_files_of_an_own_core_are_inputs(folder: Path) -> None:
    """Otherwise a result would be found again after an edit of the core's times."""
    (folder / "board.toml").write_text('[core]\nname = "own.csv"\n')
    for name in ("own.csv", "own.toml"):
        (folder / name).write_text("")
    before = read_matrix(folder / "m.toml")[2]
    own = [Path(file).name for file, _ in before.inputs][-3:]
    assert own == ["board.toml", "own.csv", "own.toml"]
    (folder / "own.csv").write_text("edited")
    assert read_matrix(folder / "m.toml")[2] != before


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("b.elf", "c.elf", "no file matches 'c.elf'"),
        ('entries = ["main"]', "entry = 1", "entry: unknown key"),
        ('["--l2", "on"]', '["--json", "x"]', "--json is not an option for a sweep"),
        ('["--l2", "on"]', '["--ht=x"]', "--ht=x is not an option for a sweep"),
        ("[[kernels]]", "[[kernel]]", "kernels: missing"),
        ("[options.l2]", "[options.plain]", "not a TOML file"),
        ("board.toml", "no.toml", "no.toml"),
    ],
)
def test_a_wrong_matrix(folder: Path, before: str, after: str, message: str) -> None:
    (folder / "m.toml").write_text(MATRIX.replace(before, after))
    with pytest.raises(InputError, match=re.escape(message)):
        read_matrix(folder / "m.toml")


@pytest.mark.slow("runs the command in processes")
def test_an_analysis_in_a_worker(tmp_path: Path) -> None:
    kernel = tmp_path / "k.elf"
    shutil.copy(build(SOURCE, optimise="-O1"), kernel)
    text = '[[kernels]]\nfiles = ["k.elf"]\nentries = ["main", "open_loop"]\nplatforms = ["kzm"]\n'
    (tmp_path / "m.toml").write_text(text)
    [one] = read_matrix(tmp_path / "m.toml")
    found = run_analysis({**asdict(one), "seconds": 60})
    assert found["error"] is None
    main, unbounded = found["rows"]
    assert main["entry"] == "main"
    assert main["cycles"] > 0
    assert unbounded["cycles"] is None
    assert "loop" in unbounded["error"]
    wrong = run_analysis({**asdict(one), "entries": ["nowhere"], "seconds": 60})
    assert "nowhere" in wrong["error"]
    with pytest.raises(Unfinished, match=r"no result within 0.01 seconds"):
        run_analysis({**asdict(one), "seconds": 0.01})
    kernel.write_bytes(kernel.read_bytes() + b"\0")
    with pytest.raises(InputError, match="is not the file that the sweep was started with"):
        run_analysis({**asdict(one), "seconds": 60})


def test_an_analysis_that_is_killed_is_no_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_run, "run", lambda *_, **__: Ended(-9, "", ""))
    one = read_matrix(folder / "m.toml")[0]
    with pytest.raises(Unfinished, match="wcet analyse ended with status -9"):
        run_analysis({**asdict(one), "seconds": 60})
