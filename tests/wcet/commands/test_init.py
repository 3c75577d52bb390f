"""``wcet init``: what it sees of an ELF, and that what it writes can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.gate.project import Project

SOURCE = """
unsigned table[2000];
unsigned irq_handler(unsigned a) { return table[a & 63]; }
unsigned main(unsigned a) { return irq_handler(a); }
"""


def test_the_shipped_kernel_needs_nothing_more(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", str(kernel)]) == 0
    project = Project.load(Path("wcet.toml"))
    assert (project.kernel, project.platform) == (kernel, "kzm")
    assert len(project.entries) == 5
    assert "region" not in Path("wcet.toml").read_text()
    assert main(["analyse", "--quiet", "--paths", "none"]) == 0


def test_handlers_and_memory_outside_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Taking the advice changes the bound: the fact that is written there is one."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.elf").write_bytes(build(SOURCE, optimise="-O1").read_bytes())
    assert main(["init", "kernel.elf"]) == 0
    text = Path("wcet.toml").read_text()
    assert Project.load(Path("wcet.toml")).entries == ("irq_handler",)
    (advice,) = (line for line in text.splitlines() if line.startswith("#   region "))
    assert advice.endswith("(.text, .bss)")
    bounds = []
    for fact in ("", advice.removeprefix("#").partition("(")[0]):
        Path("kernel.facts").write_text(f"{fact}\n")
        capsys.readouterr()
        assert main(["baseline", "--quiet", "--output", "b.json"]) == 0
        bounds.append(int(capsys.readouterr().out.split()[1].replace(",", "")))
    assert bounds[1] < bounds[0]


def test_a_file_that_is_there_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wcet.toml").write_text("precious")
    elf = build(SOURCE, optimise="-O1")
    assert main(["init", str(elf)]) == 2
    assert Path("wcet.toml").read_text() == "precious"
    assert main(["init", str(elf), "--output", "-"]) == 0
    assert "kernel = " in capsys.readouterr().out


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("build", "project"):
        Path(name).mkdir()
    Path("build/kernel.elf").write_bytes(build(SOURCE, optimise="-O1").read_bytes())
    assert main(["init", "build/kernel.elf", "--output", "project/wcet.toml"]) == 0
    found = Project.load(Path("project/wcet.toml")).kernel
    assert found.resolve() == Path("build/kernel.elf").resolve()
