"""``wcet path`` in all its forms, on a compiled program and on the kernel."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.testing.harness import build as harness
from tests.testing.quoll.building import build
from wcet.cli import main

CODE = "-Wl,-Ttext=0xf0010000"
PROGRAM = """\
unsigned table[64];
__attribute__((noinline)) unsigned work(unsigned a) {
    unsigned x = a;
    for (unsigned i = 0; i < 8; i++)
        x += table[i];
    return x;
}
__attribute__((noinline)) unsigned heavy(unsigned a) {
    unsigned x = a;
    for (unsigned i = 0; i < 64; i++)
        x ^= table[i] * a;
    return x;
}
unsigned pick(unsigned a, unsigned b) {
    if (a == 7)
        return heavy(b);
    if (a == 8)
        return work(a) + work(b);
    return 1;
}
unsigned main(unsigned a) { return pick(a, 2); }
"""


class RunPath(Protocol):
    """Runs ``wcet path`` on the program and returns its output."""

    def __call__(self, *more: str, status: int = 0) -> str: ...


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(PROGRAM, "-fno-inline", link=(CODE,))


@pytest.fixture
def path(elf: Path, capsys: pytest.CaptureFixture[str]) -> RunPath:
    def run(*more: str, status: int = 0) -> str:
        arguments = ["path", str(elf), "--platform", "kzm", "--quiet"]
        assert (
            main([*arguments, *(more if "--entry" in more else ("--entry", "pick", *more))])
            == status
        )
        captured = capsys.readouterr()
        return captured.err if status else captured.out

    return run


@pytest.mark.slow("several whole analyses")
def test_the_project_names_the_kernel_and_the_worst_entry_is_shown(
    elf: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = f'kernel = "{elf}"\nplatform = "kzm"\nentries = ["work", "pick"]\n'
    (tmp_path / "wcet.toml").write_text(project)
    monkeypatch.chdir(tmp_path)
    assert main(["path", "--quiet"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.startswith("worst path of pick: ")
    assert main(["path", "--entry", "work", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("worst path of work: ")
    assert main(["path", "--doubt", "--quiet"]) == 2
    assert "--doubt is about one entry" in capsys.readouterr().err


@pytest.mark.slow("several whole analyses")
def test_the_tree_shows_calls_and_loops(path: RunPath) -> None:
    text = path("--min", "0")
    rows = [line for line in text.splitlines() if "loop prog.c" in line or " from " in line]
    assert any("heavy  from prog.c:16" in row for row in rows)
    (loop,) = [row for row in rows if "loop prog.c:" in row]
    assert "64  " in loop
    assert "entered once, at most 64 each" in loop
    assert "folded" not in text
    assert "1 folded" in path("--depth", "0")


@pytest.mark.slow("several whole analyses")
def test_collapsed_stacks_add_up_to_the_bound(path: RunPath, tmp_path: Path) -> None:
    document = json.loads(path("--json", "-"))
    lines = path("--flame", "-").splitlines()
    stacks = [line.rpartition(" ") for line in lines]
    assert sum(int(count) for _, _, count in stacks) == document["cycles"]
    assert all(stack.split(";")[0] == "pick" for stack, _, _ in stacks)
    assert any(";heavy;loop prog.c:" in stack for stack, _, _ in stacks)
    assert len({stack for stack, _, _ in stacks}) == len(stacks)
    out = tmp_path / "x.folded"
    path("--flame", str(out))
    assert out.read_text().splitlines() == lines


def cycles(part: dict[str, Any]) -> int:
    """Own cycles of a part and of all inside it."""
    own: int = sum(part["own"].values())
    return own + sum(map(cycles, part["parts"]))


def test_json_adds_up(path: RunPath) -> None:
    document = json.loads(path("--json", "-"))
    assert cycles(document["tree"]) == document["cycles"] == sum(document["causes"].values())


def test_the_source_listing_adds_up(path: RunPath, elf: Path) -> None:
    text = path("--source", "--source-dir", str(elf.parent))
    bound = json.loads(path("--json", "-"))["cycles"]
    rows = [line.split() for line in text.splitlines() if "%" in line[:22] and "prog.c" not in line]
    assert sum(int(row[0].replace(",", "")) for row in rows) == bound
    assert any(row[2] == "64" and "table[i] * a;" in " ".join(row) for row in rows)


def test_the_flat_trace_is_in_order(path: RunPath) -> None:
    text = path("--flat")
    assert text.index("<pick>") < text.index("<heavy>") < text.index("<heavy+")


def test_why_gives_the_bound_without_the_place(path: RunPath) -> None:
    why = json.loads(path("--why", "heavy", "--json", "-"))
    assert (why["executions"], why["bound_without"] < why["bound"]) == (1, True)
    assert any(c["place"].startswith("loop ") and c["after"] == 0 for c in why["changes"])
    assert any("work < pick" in c["place"] and c["before"] == 0 for c in why["changes"])
    text = path("--why", "heavy")
    assert f"without it {why['bound_without']:,}" in text


@pytest.mark.slow("several whole analyses")
def test_why_not_gives_the_bound_through_the_place(path: RunPath) -> None:
    without = json.loads(path("--why", "heavy", "--json", "-"))["bound_without"]
    why = json.loads(path("--why", "work", "--json", "-"))
    assert (why["executions"], why["bound_through"]) == (0, without)
    assert "not on the path" in path("--why", "work")


def test_why_something_that_every_path_executes(path: RunPath) -> None:
    assert "every path" in path("--why", "pick")


def test_why_somewhere_else(path: RunPath) -> None:
    assert "does not reach it" in path("--why", "main", status=2)
    assert "there is no symbol" in path("--why", "nowhere", status=4)


def test_several_entries_are_refused(path: RunPath) -> None:
    assert "vector" in path("--entry", "all", status=2)


def test_a_second_look_at_the_kernel_is_quick(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has imported everything; ``bench/`` times fresh ones."""
    arguments = ["path", str(kernel), "--entry", "interrupt", "--quiet"]
    assert main(arguments) == 0
    start = time.process_time()
    assert main([*arguments, "--source", "--source-dir", str(harness.ROOT)]) == 0
    assert time.process_time() - start < 5
    assert "vector_irq" not in capsys.readouterr().err
