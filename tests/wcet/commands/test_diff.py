"""``wcet diff``: of kernels, of baselines, of reports, and of one with another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """\
volatile unsigned left;
__attribute__((noinline)) unsigned part(unsigned a) {
    /* here */
    left = a;
    return a + left;
}
unsigned main(unsigned a) { return part(a) + 1; }
"""
SLOWER = SOURCE.replace("/* here */", "for (unsigned i = 0; i < 32; i++) left = i;")
ASKED = ("--entry", "main", "--platform", "kzm", "--quiet")
FORMS = ("elf", "baseline", "report")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each kernel as an ELF, as a baseline, and as a report."""
    there = tmp_path_factory.mktemp("diff")
    for name, source in (("old", SOURCE), ("new", SLOWER)):
        elf = shutil.copy(build(source, optimise="-O1"), there / f"{name}.elf")
        assert (
            main(["baseline", str(elf), *ASKED, "--output", str(there / f"{name}.baseline")]) == 0
        )
        assert main(["analyse", str(elf), *ASKED, "--json", str(there / f"{name}.report")]) == 0
    return there


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("old", FORMS)
@pytest.mark.parametrize("new", FORMS)
def test_every_pair(folder: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = folder / f"old.{old}", folder / f"new.{new}"
    assert main(["diff", str(before), str(after), *ASKED]) == 1
    text = capsys.readouterr().out
    assert "worse than the baseline" in text
    assert ("new loop in part" in text) == ("report" not in (old, new))
    assert main(["diff", str(after), str(before), *ASKED]) == 0
    same = folder / f"old.{new}"
    assert main(["diff", str(before), str(same), *ASKED]) == 0
    assert "same" in capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_for_other_programs(folder: Path, tmp_path: Path) -> None:
    files = {form: tmp_path / form for form in ("json", "junit", "sarif", "markdown")}
    options = [f"--{form}={file}" for form, file in files.items()]
    pair = [str(folder / "old.baseline"), str(folder / "new.baseline")]
    assert main(["diff", *pair, *ASKED, *options]) == 1
    found = json.loads(files["json"].read_text())
    assert not found["passed"]
    assert ElementTree.parse(files["junit"]).getroot().attrib["failures"] == "1"
    assert json.loads(files["sarif"].read_text())["version"] == "2.1.0"
    assert "grew" in files["markdown"].read_text()
    assert main(["diff", *pair, *ASKED, "--tolerance", "much"]) == 3


@pytest.mark.slow("several whole analyses")
def test_what_is_in_neither_does_not_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [str(folder / "old.baseline"), str(folder / "new.baseline")]
    assert main(["diff", *pair, "--entry", "mian", "--quiet"]) == 3
    assert "no entry 'mian' in either" in capsys.readouterr().err
    (folder / "broken.json").write_text("{")
    assert main(["diff", pair[0], str(folder / "broken.json"), "--quiet"]) == 3


@pytest.mark.slow("several whole analyses")
def test_a_kernel_is_compared_as_its_baseline_was_made(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Entries of the baseline, and platform and facts of the folder's wcet.toml."""
    monkeypatch.chdir(tmp_path)
    Path("more.facts").write_text("function part takes at most 777 cycles\n")
    lines = ("kernel = 'k.elf'", "platform = 'kzm'", "entries = ['main']", "facts = ['more.facts']")
    Path("wcet.toml").write_text("\n".join(lines))
    shutil.copy(folder / "old.elf", "k.elf")
    assert main(["baseline", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["diff", "wcet-baseline.json", "k.elf", "--quiet"]) == 0
    assert "same" in capsys.readouterr().out
    Path("wcet.toml").unlink()
    old = str(folder / "old.baseline")
    assert main(["diff", old, str(folder / "new.elf"), "--platform", "kzm", "--quiet"]) == 1
    assert "main" in capsys.readouterr().out
