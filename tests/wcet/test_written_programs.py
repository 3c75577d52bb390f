"""``--lp`` and ``--mps``: other readers find the same maximum; names identify the counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testing.ilp.reading import maximum
from tests.testing.quoll.building import build
from wcet.cli import main

CODE = "-Wl,-Ttext=0xf0010000"
PROGRAM = """\
unsigned table[8];
unsigned work(unsigned a) {
    unsigned x = a;
    for (unsigned i = 0; i < 8; i++)
        x += table[i];
    return x;
}
unsigned pick(unsigned a, unsigned b) { return (a & 1 ? work(a) : b) + (b & 1 ? work(b) : a); }
unsigned main(unsigned a) { return pick(a, 2); }
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("entries", [["pick"], ["pick", "work"]])
def test_one_file_for_each_entry(tmp_path: Path, entries: list[str]) -> None:
    elf = build(PROGRAM, "-fno-inline", link=(CODE,))
    facts, out = tmp_path / "my.facts", tmp_path / "out.json"
    facts.write_text("count(work) <= 1 in pick\n")
    arguments = ["analyse", str(elf), "--platform", "kzm", "--quiet", "--facts", str(facts)]
    arguments += [f"--entry={name}" for name in entries]
    written = ["--lp", str(tmp_path / "x.lp"), "--mps", str(tmp_path / "x.mps")]
    assert main([*arguments, *written, "--json", str(out)]) == 0
    bounds = {n: e["cycles"] for n, e in json.loads(out.read_text())["entries"].items()}
    names = ["x"] if len(entries) == 1 else [f"x.{name}" for name in entries]
    kept = sorted(p.name for p in tmp_path.glob("x*"))
    assert kept == sorted(f"{name}.{form}" for name in names for form in ("lp", "mps"))
    for entry, name in zip(entries, names, strict=True):
        for form in ("lp", "mps"):
            assert maximum(tmp_path / f"{name}.{form}") == bounds[entry], (entry, form)
    text = (tmp_path / f"{names[0]}.lp").read_text()
    assert ".pick." in text
    assert "work_" in text
    assert "my.facts:1: count(work) <= 1 in pick" in text, "the origin of each row"
