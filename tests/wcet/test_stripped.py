"""Entries of binaries without symbols, and bounds of more digits than usual."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from quoll.image.image import Image
from tests.testing.quoll.building import build
from wcet.cli import main

CODE = "-Wl,-Ttext=0xf0010000"
PROGRAM = """\
volatile unsigned word;
unsigned main(unsigned n, unsigned *p) {
    unsigned x = 0;
    *p = n; /* executions are not followed behind it */
    for (unsigned i = 0; i < (n & 0xfffff); i++)
        for (unsigned j = 0; j < 16000; j++)
            x += word;
    return x;
}
"""


@pytest.mark.slow("every command analyses the program twice")
@pytest.mark.parametrize("thumb", [False, True])
def test_an_address_of_a_stripped_binary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], thumb: bool
) -> None:
    elf = build(PROGRAM, thumb=thumb, cpu="cortex-a8", link=(CODE,))
    symbol = Image.load(elf).symbol("main")
    assert symbol is not None
    bounds = []
    for entry in ("main", f"{symbol.addr | symbol.thumb:#x}"):
        out = tmp_path / "out.json"
        arguments = ["analyse", str(elf), "--entry", entry, "--platform", "cubieboard", "--quiet"]
        assert main([*arguments, "--json", str(out)]) == 0
        bounds.append([e["cycles"] for e in json.loads(out.read_text())["entries"].values()])
        subprocess.run(["arm-none-eabi-strip", elf], check=True)
    assert bounds[0] == bounds[1]
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("0x"))
    assert f" {bounds[1][0]:,} " in row, "columns of large numbers stay apart"
    assert main(["loops", str(elf), "--entry", f"{symbol.addr | symbol.thumb:#x}", "--quiet"]) == 0


SMALL = """\
volatile unsigned word;
__attribute__((noinline)) unsigned part(unsigned n) { return word + n; }
unsigned main(unsigned n) {
    for (unsigned i = 0; i < 5; i++)
        n += part(i);
    return n;
}
"""
COMMANDS = {
    "analyse": ("analyse", "ELF", "--entry", "MAIN", "--html", "a.html", "--json", "a.json"),
    "advise": ("advise", "ELF", "--entry", "MAIN"),
    "cache": ("cache", "ELF", "--entry", "MAIN"),
    "cache of a function": ("cache", "ELF", "PART", "--entry", "MAIN"),
    "callgraph": ("callgraph", "ELF", "--entry", "MAIN"),
    "cfg": (
        "cfg",
        "ELF",
        "--entry",
        "MAIN",
        "--function",
        "PART",
        "--cycles",
        "MAIN",
        "--dot",
        "a",
    ),
    "check": ("check", "ELF", "--entry", "MAIN", "--budget", "MAIN=1s"),
    "diff": ("diff", "ELF", "ELF", "--entry", "MAIN"),
    "disasm": ("disasm", "ELF", "PART"),
    "latency": ("latency", "ELF", "--entry", "MAIN"),
    "loops": ("loops", "ELF", "--entry", "MAIN", "--ffx", "a.ffx"),
    "masked": ("masked", "ELF", "--entry", "MAIN"),
    "path": ("path", "ELF", "--entry", "MAIN", "--why", "PART"),
    "timing": ("timing", "ELF", "PART", "--entry", "MAIN"),
    "values": ("values", "ELF", "PART", "--entry", "MAIN"),
}
PLAIN = ("callgraph", "disasm")  # they need no platform


@pytest.fixture(scope="module")
def stripped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A binary without symbols, and the addresses of its functions."""
    elf = build(SMALL, optimise="-O1", thumb=True, cpu="cortex-a8", link=(CODE,))
    image = Image.load(elf)
    found = {name: image.symbol(name.lower()) for name in ("MAIN", "PART")}
    bare = tmp_path_factory.mktemp("stripped") / "bare.elf"
    subprocess.run(["arm-none-eabi-strip", elf, "-o", bare], check=True)
    return bare, {name: f"{s.addr | 1:#x}" for name, s in found.items() if s is not None}


@pytest.mark.slow("every command analyses the program twice")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_does_without_symbols(
    name: str,
    stripped: tuple[Path, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    elf, functions = stripped
    words = {"ELF": str(elf), "MAIN=1s": f"{functions['MAIN']}=1s", **functions}
    asked = [words.get(word, word) for word in COMMANDS[name]]
    asked += () if name in PLAIN else ("--platform", "cubieboard")
    assert main(asked) == 0
