"""``wcet init``: the properties it detects in an ELF file, and its files, which are usable."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.gate.project_file import ProjectFile

ENTRY = ("--entry", "irq_handler")
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
    project = ProjectFile.load(Path("wcet.toml"))
    assert (project.kernel, project.platform) == (kernel, "kzm")
    assert len(project.entries) == 5
    assert "region" not in Path("wcet.toml").read_text()
    assert main(["analyse", "--quiet", "--paths", "none"]) == 0


@pytest.mark.slow("several whole analyses")
def test_handlers_and_memory_outside_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Taking the advice changes the bound: the fact that is written there is one."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.elf").write_bytes(build(SOURCE, optimise="-O1").read_bytes())
    assert main(["init", "kernel.elf", "--quiet", *ENTRY]) == 0
    project = ProjectFile.load(Path("wcet.toml"))
    assert (project.entries, project.facts) == (("irq_handler",), (Path("kernel.facts"),))
    lines = Path("kernel.facts").read_text().splitlines()
    (advice,) = (line for line in lines if line.startswith("# region "))
    assert ".text, .bss" in lines[lines.index(advice) - 2]
    bounds = []
    for fact in ("", advice.removeprefix("# ")):
        Path("kernel.facts").write_text(f"{fact}\n")
        capsys.readouterr()
        assert main(["baseline", "--quiet", "--output", "b.json"]) == 0
        bounds.append(int(capsys.readouterr().out.split()[1].replace(",", "")))
    assert bounds[1] < bounds[0]


LOOPING = """
volatile unsigned left;
void irq_handler(void) { while (left) left--; }
int main(void) { return 0; }
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("below", [True, False])
def test_sources_are_where_the_compiler_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, below: bool
) -> None:
    """Above the ELF only: it may name any folder."""
    written = tmp_path / "source"
    ran = written if below else tmp_path / "other"
    (written / "out").mkdir(parents=True)
    ran.mkdir(exist_ok=True)
    (ran / "handler.c").write_text(LOOPING)
    elf = written / "out/kernel.elf"
    command = ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-O1", "-g", "-nostdlib"]
    command += ["-Wl,-e,main,-Ttext=0xf0010000", "handler.c", "-o", str(elf)]
    subprocess.run(command, cwd=ran, check=True)
    monkeypatch.chdir(written / "out")
    assert main(["init", "kernel.elf", "--quiet", *ENTRY]) == 0
    text = Path("wcet.toml").read_text()
    assert ('sources = ".."' in text.splitlines()) is below
    assert ("loop handler.c:3~" in Path("kernel.facts").read_text()) is below


def test_a_file_that_is_there_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wcet.toml").write_text("precious")
    elf = build(SOURCE, optimise="-O1")
    assert main(["init", str(elf), *ENTRY]) == 2
    assert Path("wcet.toml").read_text() == "precious"
    assert main(["init", str(elf), *ENTRY, "--output", "-"]) == 0
    assert "kernel = " in capsys.readouterr().out


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("build", "project"):
        Path(name).mkdir()
    Path("build/kernel.elf").write_bytes(build(SOURCE, optimise="-O1").read_bytes())
    assert (
        main(["init", "build/kernel.elf", *ENTRY, "--output", "project/wcet.toml", "--quiet"]) == 0
    )
    project = ProjectFile.load(Path("project/wcet.toml"))
    assert project.kernel.resolve() == Path("build/kernel.elf").resolve()
    assert project.facts == (Path("project/kernel.facts"),)
    assert project.facts[0].is_file()


@pytest.mark.slow("several whole analyses")
def test_a_platform_file_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name meant a platform of the project, and the next command failed."""
    monkeypatch.chdir(tmp_path)
    Path("project").mkdir()
    Path("kernel.elf").write_bytes(build(SOURCE, optimise="-O1").read_bytes())
    assert main(["platform", "new", "mine", "--from", "kzm"]) == 0
    more = ["--platform", "mine.toml", "--quiet", "--output", "project/wcet.toml"]
    assert main(["init", "kernel.elf", *ENTRY, *more]) == 0
    assert ProjectFile.load(Path("project/wcet.toml")).platform == "project/../mine.toml"
    monkeypatch.chdir("project")
    assert main(["analyse", "--quiet", "--paths", "none"]) == 0


UNKNOWN = """
struct item { struct item *next; int due; } *volatile items;
void (*volatile chosen)(void);
void irq_handler(void) {
    for (struct item *at = items; at; at = at->next)
        if (at->due) chosen();
}
"""


@pytest.mark.slow("several whole analyses")
def test_what_has_to_be_stated_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.elf").write_bytes(build(UNKNOWN, optimise="-O1").read_bytes())
    assert main(["init", "kernel.elf", "--quiet", *ENTRY]) == 0
    said = "written to kernel.facts, to be filled in:\nmissing: 2 facts: 1 of targets, 1 of loops\n"
    assert said in capsys.readouterr().out
    text = Path("kernel.facts").read_text()
    for line in ("# targets of irq_handler", "# loop irq_handler", "# region ram8000 "):
        assert text.count(line) == 1
    assert main(["analyse", "--quiet"]) == 5, "comments state nothing"


@pytest.mark.parametrize("way", ["--no-facts", "there", "beside", "-"])
def test_facts_that_are_there_stay(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("build").mkdir()
    Path("build/kernel.elf").write_bytes(build(UNKNOWN, optimise="-O1").read_bytes())
    known = {"there": "kernel.facts", "beside": "build/kernel.facts"}.get(way)
    if known:
        Path(known).write_text("# mine\n")
    more = {"--no-facts": ["--no-facts"], "-": ["--output", "-"]}.get(way, [])
    assert main(["init", "build/kernel.elf", "--quiet", *ENTRY, *more]) == 0
    facts = [str(path) for path in Path().rglob("*.facts")]
    assert facts == ([known] if known else [])
    assert not known or Path(known).read_text() == "# mine\n"
    assert "\nfacts = " not in capsys.readouterr().out


def test_a_binary_that_the_platform_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    elf = build(SOURCE, cpu="cortex-a8")
    assert main(["init", str(elf), "--platform", "kzm", "--quiet", *ENTRY]) == 0
    assert "no facts were looked for: the binary is not built for" in capsys.readouterr().err
    assert ProjectFile.load(Path("wcet.toml")).facts == ()


VECTORS = """
 .syntax unified
 .global _start, main, irq_statistics
_start: b reset
 b stop
 ldr pc, SWI
 b stop
 b stop
 nop
 ldr pc, IRQ
 ldr pc, FIQ
SWI: .word svc_entry
IRQ: .word irq_entry
FIQ: .word stop
 .type main,%function
main: b main
 .type reset,%function
reset: b main
 .type stop,%function
stop: mov r0, #1
 bl panic
 .type panic,%function
panic: mcr p15, 0, r0, c7, c0, 4
 b panic
 .type svc_entry,%function
svc_entry: movs pc, lr
 .type irq_entry,%function
irq_entry: subs pc, lr, #4
 .type irq_statistics,%function
irq_statistics: bx lr
"""


def test_entries_are_the_handlers_of_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No stub, no data, and no other function with the name of a handler; and they have bounds."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.elf").write_bytes(build(VECTORS, language="S").read_bytes())
    assert main(["init", "kernel.elf", "--quiet"]) == 0
    assert ProjectFile.load(Path("wcet.toml")).entries == ("svc_entry", "irq_entry")
    said = capsys.readouterr().out
    stubs = "undefined instruction, prefetch abort, data abort, fast interrupt"
    assert f"  {stubs}: stop; left out: it never ends\n" in said
    assert "  reset: _start; left out" not in said
    assert "  reset: reset; left out: the kernel starts there\n" in said
    assert "nothing is missing\n" in said
    assert main(["analyse", "--quiet", "--paths", "none"]) == 0


def test_names_are_no_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", str(build(SOURCE)), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "has no table of exception vectors" in error
    assert "--entry NAME; functions with names of handlers: irq_handler" in error
    assert not list(tmp_path.iterdir())


def test_a_kernel_of_the_m_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    elf = build(SOURCE, "-mthumb", cpu="cortex-m3")
    assert main(["init", str(elf)]) == 3
    assert "is for the M profile" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_another_board_with_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    elf = str(build(SOURCE, cpu="cortex-a8"))
    assert main(["init", elf, "--no-facts", *ENTRY]) == 0
    remark = "this is not the board cubieboard"
    assert remark in capsys.readouterr().out
    text = Path("wcet.toml").read_text()
    assert remark in text
    assert "50 us" not in text
    more = ["--platform", "cubieboard", "--output", "other.toml"]
    assert main(["init", elf, "--no-facts", *ENTRY, *more]) == 0
    assert remark not in capsys.readouterr().out
