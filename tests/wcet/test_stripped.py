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
unsigned main(unsigned n) {
    unsigned x = 0;
    for (unsigned i = 0; i < (n & 0xfffff); i++)
        for (unsigned j = 0; j < 16000; j++)
            x += word;
    return x;
}
"""


@pytest.mark.slow
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
