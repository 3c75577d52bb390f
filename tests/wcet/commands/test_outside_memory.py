"""Code and data outside of the platform's memory: a warning that names the cost and the cure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.platforms.platform_model import DIRECTORY

SOURCE = """
unsigned table[64];
unsigned main(unsigned a) { unsigned s = 0; for (int i = 0; i < 64; i++) s += table[i]; return s; }
"""


def analysed(
    elf: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, int, list[str]]:
    """The bound and its share of instruction misses, in cycles, and the warnings."""
    capsys.readouterr()
    asked = ["--entry", "main", "--quiet", "--platform", "kzm", "--json", "-", *more]
    assert main(["analyse", str(elf), *asked]) == 0
    captured = capsys.readouterr()
    entry = json.loads(captured.out)["entries"]["main"]
    warned = [line for line in captured.err.splitlines() if "lies outside" in line]
    return entry["cycles"], entry["causes"]["fetch_miss"], warned


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_taking_the_cure_ends_the_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], optimise: str
) -> None:
    elf = tmp_path / "kernel.elf"
    elf.write_bytes(build(SOURCE, optimise=optimise).read_bytes())
    cycles, misses, (warning,) = analysed(elf, capsys)
    assert f": {misses:,} of the {cycles:,} cycles of main are instruction misses" in warning
    assert ".text" in warning
    assert ".bss" in warning
    cure = re.search(r"write into (\S+): (region .*)$", warning)
    assert cure is not None
    (tmp_path / cure[1]).write_text(f"{cure[2]}\n")
    better, fewer, warned = analysed(elf, capsys)
    assert warned == []
    assert cycles - better >= misses - fewer > misses / 3


@pytest.mark.slow("several whole analyses")
def test_the_cure_is_as_good_as_memory_of_the_platform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lacked the fixed translation, without which no access ever hits."""
    elf = tmp_path / "kernel.elf"
    elf.write_bytes(build(SOURCE).read_bytes())
    warning = analysed(elf, capsys)[2][0]
    fact = warning.partition(".facts: ")[2]
    (tmp_path / "kernel.facts").write_text(f"{fact}\n")
    stated = analysed(elf, capsys)[0]
    low, high = re.findall("0x[0-9a-f]+", fact)
    ram = f'[[memory]]\nname = "more"\nvirtual = [{low}, {high}]\nkind = "cached"\nfixed = true\n'
    board = tmp_path / "board.toml"
    board.write_text(f"{(DIRECTORY / 'kzm.toml').read_text()}\n{ram}")
    assert analysed(elf, capsys, "--platform", str(board), "--no-facts")[0] == stated
    moving = tmp_path / "moving.facts"
    moving.write_text(f"{fact.removesuffix(' and fixed')}\n")
    assert analysed(elf, capsys, "--no-facts", "--facts", str(moving))[0] > 2 * stated


@pytest.mark.slow("several whole analyses")
def test_data_alone_may_lie_outside(capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(SOURCE, link=("-Wl,-Ttext=0xf0010000", "-Wl,-Tbss=0x90000"))
    (warning,) = analysed(elf, capsys)[2]
    assert ".bss at 0x90000 lies outside" in warning
    assert "instruction misses" not in warning


@pytest.mark.slow("several whole analyses")
def test_memory_of_the_platform_needs_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(SOURCE, link=("-Wl,-Ttext=0xf0010000", "-Wl,-Tbss=0xf0020000"))
    assert analysed(elf, capsys)[2] == []
