"""Levers: with the suggested line, the bound falls by at least the promised cycles."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quoll.recordings.trace import Trace
from tests.testing.harness import qemu
from tests.testing.quoll.building import build
from tests.testing.quoll.recordings import written
from wcet.advice.recorded import RecordedCounts
from wcet.advice.search import AdviceSearch
from wcet.advice.suggestion import Suggestion
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import SilentStageLog
from wcet.cli import main
from wcet.platforms.platform_model import load
from wcet.reports.result_text import TextStyle
from wcet.reports.screen import Screen, to_screen

SOURCE = """\
unsigned table[16], other;
__attribute__((noinline)) unsigned part(unsigned *where, unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < (n & 15); i++)
        total += table[i];
    *where = total;
    return total;
}
unsigned main(unsigned *where, unsigned n) {
    unsigned found = part(where, n);
    if (n & 16)
        found += part(&other, n + 1);
    if (n & 32)
        found += part(where + 1, 3);
    return found;
}
"""
QUIET = ("--platform", "kzm", "--quiet")


def advised(elf: Path, entry: str, *options: str) -> dict[str, Any]:
    """The JSON document of ``wcet advise``."""
    file = elf.parent / "advice.json"
    assert main(["advise", str(elf), "--entry", entry, "--json", str(file), *options]) == 0
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def bound(elf: Path, entry: str, *options: str) -> int:
    """The cycles of an analysis."""
    file = elf.parent / "bound.json"
    assert main(["analyse", str(elf), "--entry", entry, "--json", str(file), *options]) == 0
    found = json.loads(file.read_text())["entries"][entry]["cycles"]
    assert isinstance(found, int)
    return found


def check_each(elf: Path, entry: str, folder: Path, *options: str, levers: int = 10) -> list[str]:
    """Follow each lever; returns their lines."""
    document = advised(elf, entry, *options, "--levers", str(levers))
    before = bound(elf, entry, *options)
    assert document["cycles"] == before
    found = document["levers"]
    won = [lever["saves"] / len(lever["line"].split("\n")) for lever in found]
    assert won == sorted(won, reverse=True)
    for lever in found:
        assert lever["saves"] > 0
        assert lever["condition"]
        more = lever["line"].split()
        if not lever["is_option"]:
            facts = folder / "advised.facts"
            facts.write_text(lever["line"] + "\n")
            more = ["--facts", str(facts)]
        assert bound(elf, entry, *options, *more) <= before - lever["saves"], lever["line"]
    return [lever["line"] for lever in found]


@pytest.mark.slow("analyses the program again for each suggestion")
def test_every_line_saves_what_it_promises(tmp_path: Path) -> None:
    elf = build(SOURCE, optimise="-O1")
    lines = check_each(elf, "main", tmp_path, *QUIET)
    assert any(re.match(r"part\+0x\w+~\w+ executes", line) for line in lines)
    assert "part executes at most 1 times in main" in lines
    assert any("accesses of unknown address" in line for line in lines)


MACHINE = """\
unsigned table[16];
unsigned char buffer[64];
__asm__(".bss\\n.balign 8\\n.space 256\\n.global irq_stack_top\\nirq_stack_top:\\n.text");
__attribute__((noinline)) unsigned part(unsigned n) {
    volatile unsigned kept = n, total = 0;
    for (unsigned i = 0; i < 8; i++) {
        table[kept & 15] += *(volatile unsigned *)0x49020000;
        buffer[(kept + i) & 63] = total += kept;
    }
    return total;
}
unsigned main(unsigned n) { return part(n) + 1; }
"""


@pytest.mark.slow("analyses the program again for each suggestion")
def test_memory_that_nobody_described(tmp_path: Path) -> None:
    """Each line of memory, devices and the stack, before and after the one that saves most."""
    elf = tmp_path / "kernel.elf"
    elf.write_bytes(build(MACHINE, optimise="-O1").read_bytes())
    lines = check_each(elf, "main", tmp_path, *QUIET)
    (ram,) = (line for line in lines if line.startswith("region ram8000 from 0x8000 to "))
    assert ram.endswith(" is cached and fixed")
    (tmp_path / "kernel.facts").write_text(f"{ram}\n")
    found = check_each(elf, "main", tmp_path, *QUIET)
    assert "region device49020000 from 0x49020000 to 0x49020fff is device" in found
    (stack,) = (line for line in found if "r13" in line)
    assert "register r13 at main points into advised_stack" in stack
    assert stack.endswith("accesses of unknown address point into advised_data")
    (tmp_path / "kernel.facts").write_text(f"{ram}\n{stack}\n")
    assert not [line for line in check_each(elf, "main", tmp_path, *QUIET) if "r13" in line]


@pytest.mark.slow("analyses the program again for each suggestion")
def test_a_stack_that_no_symbol_names(tmp_path: Path) -> None:
    """The end of RAM is an example, and the condition says so."""
    elf = build(SOURCE, optimise="-O0", link=("-Wl,-Ttext=0xf0010000",))
    levers = advised(elf, "main", *QUIET)["levers"]
    (stack,) = (lever for lever in levers if "r13" in lever["line"])
    assert "register r13 at main points into advised_stackf7fffff8" in stack["line"]
    assert "this is an example, the end of RAM in the kernel window" in stack["condition"]
    assert stack["saves"] > bound(elf, "main", *QUIET) / 2
    options = AnalysisOptions(entries=("main",), platform="kzm", neighbouring_facts=False)
    style = TextStyle(color=False, paths="brief", stats=False, columns=80)
    shown = to_screen(analyse(elf, options, SilentStageLog()), style, Screen(80, 24))
    assert "where the stack is: register r13 at main points into a region" in shown
    check_each(elf, "main", tmp_path, *QUIET)


@pytest.mark.slow("analyses the program again for each suggestion")
def test_one_execution_less(tmp_path: Path) -> None:
    """A fact with one execution less saves at least ``each`` cycles."""
    elf = build(SOURCE, optimise="-O1")
    levers = advised(elf, "main", *QUIET)["levers"]
    (loop,) = (lever for lever in levers if "~" in lever["line"].split()[0])
    assert "at most 15 (nusmv) or 3 (nusmv) an entry, 33 times on the worst path" in loop["now"]
    facts = tmp_path / "less.facts"
    facts.write_text(f"{loop['line'].split()[0]} executes at most 32 times\n")
    less = bound(elf, "main", *QUIET, "--facts", str(facts))
    assert bound(elf, "main", *QUIET) - less >= loop["each"] > 0


@pytest.mark.slow("analyses a program")
def test_an_interrupted_search_has_what_it_found() -> None:
    """The first suggestion is about the costliest loop: one entry of it may need 15 iterations."""
    elf = build(SOURCE, optimise="-O1")
    options = AnalysisOptions(entries=("main",), platform="kzm", neighbouring_facts=False)
    result = analyse(elf, options, SilentStageLog())

    def stop(suggestion: Suggestion) -> None:
        raise KeyboardInterrupt

    search = AdviceSearch(10, None, lambda line: None, stop)
    found = search(result, result.entries["main"], options, RecordedCounts())
    assert not found.complete
    assert [one.line.partition(" ")[2] for one in found.suggestions] == [
        "executes at most 15 times in main"
    ]


def test_nothing_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    link = ("-Wl,-Ttext=0xf0010000",)
    elf = build("unsigned main(unsigned a) { return a + 1; }", optimise="-O1", link=link)
    assert main(["advise", str(elf), "--entry", "main", *QUIET]) == 0
    assert "nothing that is tried here lowers it" in capsys.readouterr().out


PAIR = """
volatile unsigned sink;
void shorter(void) { sink = 1; }
void longer(void) { for (unsigned i = 0; i < 20; i++) sink = i; }
int main(void) { return 0; }
"""


@pytest.mark.slow("several whole analyses")
def test_a_project_of_several_entries_is_about_the_worst_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the examples of the help say."""
    elf = build(PAIR, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))
    project = f'kernel = "{elf}"\nplatform = "kzm"\nentries = ["shorter", "longer"]\n'
    (tmp_path / "wcet.toml").write_text(project)
    monkeypatch.chdir(tmp_path)
    assert main(["advise", "--quiet"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.startswith("longer: ")
    several = ["advise", "--entry", "shorter", "--entry", "longer", "--quiet"]
    assert main(several) == 2
    assert "about one entry" in capsys.readouterr().err


PARAMETRIC = """\
volatile unsigned left;
void main(unsigned n) { for (unsigned i = 0; i < n; i++) left = i; }
"""


@pytest.mark.slow("several whole analyses")
def test_a_function_of_a_parameter_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "n.facts"
    facts.write_text("loop prog.c:2 at most n\n")
    elf = build(PARAMETRIC, optimise="-O1")
    status = main(["advise", str(elf), "--entry", "main", *QUIET, "--facts", str(facts)])
    assert status == 2
    assert "--set NAME=N" in capsys.readouterr().err


@pytest.mark.slow("analyses the program again for each suggestion")
def test_counts_are_what_recorded_executions_show(
    kernel: Path, trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line saves its promised cycles; the recording obeys it, but not a count of one less."""
    vector, recording = load("kzm").entries["prefetch-abort"].vector, tmp_path / "aborts.trace"
    recording.write_bytes(written([e for e in trace.executions if e.entry == vector]))
    found = advised(kernel, "prefetch-abort", "--quiet", "--recording", str(recording))
    levers = [lever for lever in found["levers"] if " executes at most " in lever["line"]]
    counts = [lever["line"] for lever in levers]
    shown = [lever["line"] for lever in levers if "no recorded execution" not in lever["now"]]
    assert shown
    facts = tmp_path / "counts.facts"
    checked = ["check-facts", str(kernel), str(recording), "--facts", str(facts), "--quiet"]
    facts.write_text("".join(f"{line}\n" for line in counts))
    saved = max(lever["saves"] for lever in found["levers"] if lever["line"] in counts)
    less = bound(kernel, "prefetch-abort", "--quiet", "--facts", str(facts))
    assert less <= found["cycles"] - saved
    assert main(checked) == 0
    out, lines = tmp_path / "checked.json", []
    for line in shown:
        place, count = line.split(" executes at most ")
        most, scope = count.split(" ", 1)
        lines.append(f"{place} executes at most {int(most) - 1} {scope}\n")
    facts.write_text("".join(lines))
    assert main([*checked, "--json", str(out)]) == 1
    records = json.loads(out.read_text())["facts"]
    judged = [f for f in records if f["source"].startswith(str(facts))]
    assert len(judged) == len(shown)
    assert all(f["violations"] for f in judged)


@pytest.mark.slow("analyses the program again for each suggestion")
def test_a_recording_without_the_entry_is_refused(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "hello.trace"
    qemu.record(trace, "kzm-after", "hello")
    asked = ["advise", str(kernel), "--entry", "prefetch-abort", "--quiet"]
    assert main([*asked, "--recording", str(trace)]) == 3
    assert "no recorded execution of prefetch-abort ran to its end" in capsys.readouterr().err


PAGES = """\
unsigned pages[2048] __attribute__((aligned(8192)));
unsigned main(unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < 16; i++) {
        total += *(volatile unsigned *)&pages[0];
        total += *(volatile unsigned *)&pages[1024];
    }
    return total + n;
}
"""


@pytest.mark.slow("analyses the program again for each suggestion")
def test_a_page_colour_that_is_lost(tmp_path: Path) -> None:
    """Two words that only a bit above the page tells apart; not on a core without such bits."""
    link = ("-Wl,-Ttext=0xf0010000",)
    elf = build(PAGES, cpu="cortex-a8", optimise="-O1", link=link)
    asked = ("--platform", "cubieboard", "--quiet")
    assert "--data-index virtual" in check_each(elf, "main", tmp_path, *asked)
    assert "--data-index virtual" not in check_each(
        elf, "main", tmp_path, *asked, "--data-index", "virtual"
    )
    result = json.loads((elf.parent / "bound.json").read_text())
    assert any("data-index" in text for text in result["assumptions"])


ONE_ACCESS = """\
unsigned table[8];
unsigned main(unsigned *where, unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < 8; i++) {
        total += ((volatile unsigned *)where)[n += total & 15];
        total += *(volatile unsigned *)table;
    }
    return total;
}
"""


@pytest.mark.slow("analyses the program again for each suggestion")
def test_an_access_of_unknown_address_is_named(tmp_path: Path) -> None:
    """The lines that it evicts are charged to accesses of known addresses."""
    link = ("-Wl,-Ttext=0xf0010000",)
    elf = build(ONE_ACCESS, optimise="-O1", link=link)
    lines = check_each(elf, "main", tmp_path, *QUIET, levers=20)
    named = [line for line in lines if "access at " in line]
    assert named
    assert all(line.startswith("region advised_data from ") for line in named)


SHARED = """\
unsigned table[64];
__attribute__((noinline)) unsigned a(unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < n; i++) total += table[i & 63];
    return total;
}
__attribute__((noinline)) unsigned b(unsigned n) { return a(n & 15) + a(n & 7); }
unsigned main(unsigned n) { return b(1) + b(2) + b(n & 1); }
"""


@pytest.mark.slow("analyses the program again for each suggestion")
def test_calls_that_are_charged_what_no_caller_asks_for(tmp_path: Path) -> None:
    elf = build(SHARED, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))
    lines = check_each(elf, "main", tmp_path, *QUIET, "--share", "always")
    assert "--share never" in lines
