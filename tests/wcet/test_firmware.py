"""A firmware that is new to the tool: two commands and one edit from the ELF to a first bound."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.testing.harness.cases import spread
from wcet.cli import main
from wcet.gate.project_file import ProjectFile

SOURCES = Path(__file__).resolve().parents[1] / "testing/wcet/firmware"
GCC = ("arm-none-eabi-gcc", "-g", "-ffreestanding", "-fno-exceptions", "-fno-rtti")
BUILDS = (
    ("-mcpu=cortex-a8", "-mfloat-abi=soft", "-Os", "-mthumb"),
    ("-mcpu=arm1136jf-s", "-O2"),
)
CALLED = {"advance_timers": "blink, measure", "sensors_poll": "any vtable"}
FACTS = re.compile(r"^# (?=(region|path must|calls at|loop|switch_to) .*$)", re.MULTILINE)
FACT = re.compile(r"^(?:region|path must|calls at|loop|switch_to) ", re.MULTILINE)


def build_firmware(flags: tuple[str, ...], folder: Path) -> None:
    """``firmware.elf`` in the folder."""
    objects = []
    for source in ("vectors.S", "firmware.c", "sensors.cpp"):
        objects.append(f"{source}.o")
        command = [*GCC, *flags, "-w", "-c", str(SOURCES / source), "-o", objects[-1]]
        subprocess.run(command, cwd=folder, check=True)
    link = ["-nostdlib", "-Wl,--no-warn-rwx-segments", "-T", str(SOURCES / "firmware.ld")]
    command = [*GCC, *flags, *link, *objects, "-lgcc", "-o", "firmware.elf"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("flags", spread(BUILDS, 1))
def test_two_commands_and_one_edit(
    flags: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every question is one that only the user can answer, and the answers are enough."""
    monkeypatch.chdir(tmp_path)
    build_firmware(flags, tmp_path)
    assert main(["init", "firmware.elf", "--quiet"]) == 0
    said = capsys.readouterr().out
    project = ProjectFile.load(Path("wcet.toml"))
    assert project.entries == ("service_entry", "interrupt_entry")
    assert "  fast interrupt: fast; left out: it never ends\n" in said
    text = Path("firmware.facts").read_text()
    filled = FACTS.sub("", text).replace("at most N", "at most 16")
    facts = [line for line in filled.splitlines() if FACT.match(line)]
    calls = {fact.split()[2].split("+")[0]: fact for fact in facts if fact.startswith("calls")}
    assert calls.keys() == CALLED.keys()
    assert all(calls[name].endswith(to) for name, to in CALLED.items())
    ends = [fact for fact in facts if fact.startswith(("path", "switch"))]
    assert ends == ["switch_to switches context"], "panic only halts, which needs no statement"
    assert sum(fact.startswith("loop") for fact in facts) <= 6
    assert "the loop waits for bit 5 of the device register at 0x44e09014" in text
    Path("firmware.facts").write_text(filled)
    assert main(["analyse", "--quiet", "--paths", "none"]) == 0
    bounds = capsys.readouterr().out
    assert re.search(r"^service_entry +[\d,]+", bounds, re.MULTILINE)
    assert re.search(r"^interrupt_entry +[\d,]+", bounds, re.MULTILINE)
