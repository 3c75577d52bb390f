"""The ``--json`` documents match docs/schemas, and the schemas allow no other keys."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quoll.recordings.trace import End
from tests.testing.wcet.interrupts import kernel as built
from tests.testing.wcet.schemas import NAMES, faults, schema
from wcet.cli import main, parser

LOOP = "    for (unsigned i = 0; i < a; i++) table[i & 63] = n;\n"
SOURCE = f"""\
#line 1 "prog.c"
unsigned table[64];
__attribute__((noinline)) unsigned work(unsigned n) {{
    unsigned found = 0;
    for (unsigned i = 0; i < (n & 7); i++) found += table[i];
    return found;
}}
__attribute__((noinline)) unsigned other(unsigned n) {{ return table[n & 63]; }}
__attribute__((noinline)) unsigned deep(unsigned n) {{ return n ? deep(n - 1) + work(n) : 1; }}
unsigned main(unsigned a, unsigned n) {{
    unsigned found = work(n & 3) + deep(n & 1);
    if (n & 1) found += other(n);
{LOOP}    return found | 2;
}}
void handler(void) {{ table[0]++; }}
"""
FACT = f"loop prog.c:{SOURCE[: SOURCE.index(LOOP)].count(chr(10))} at most n\n"
MATRIX = """\
entries = ["syscall"]
platforms = ["kzm"]
[[kernels]]
files = ["kernel.elf"]
facts = ["n.facts"]
"""
UNDEFINED = 0xFFFF0004  # the vector of the shortest path: one instruction
KERNEL = ("kernel.elf", "--platform", "kzm", "--quiet")
GIVEN = ("--facts", "n.facts", "--set", "n=4")
SYSCALL = (*KERNEL, *GIVEN, "--entry", "syscall")
WORK = ("kernel.elf", "work", *SYSCALL[1:])
# The document, the command line but for --json, and its exit status.
RUNS = [
    ("analyse", ["analyse", *KERNEL, "--facts", "n.facts", "--entry", "syscall"], 0),
    ("analyse", ["analyse", *KERNEL, *GIVEN, "--entry", "all"], 0),
    ("analyse", ["analyse", *KERNEL, "--entry", "all"], 6),
    ("path", ["path", *SYSCALL], 0),
    ("path", ["path", *KERNEL, "--facts", "n.facts", "--entry", "syscall"], 0),
    ("path-why", ["path", *SYSCALL, "--why", "other"], 0),
    ("path-why", ["path", *SYSCALL, "--why", "work"], 0),
    ("path-doubt", ["path", *SYSCALL, "--doubt"], 0),
    ("loops", ["loops", *KERNEL[:-1]], 6),
    ("cfg", ["cfg", "kernel.elf", "--entry", "vector_svc"], 0),
    ("cache", ["cache", *SYSCALL], 0),
    ("cache-function", ["cache", *WORK], 0),
    ("timing", ["timing", *WORK], 0),
    ("values", ["values", *WORK], 0),
    ("advise", ["advise", *SYSCALL], 0),
    ("latency", ["latency", *KERNEL, *GIVEN, "--at-most", "1 s"], 0),
    ("latency", ["latency", *KERNEL, "--facts", "n.facts", "--at-most", "1000"], 1),
    ("latency", ["latency", *KERNEL], 2),
    ("prove", ["prove", *SYSCALL, "--facts", "n.facts"], 1),
    ("refine", ["refine", *SYSCALL], 0),
    ("pin", ["pin", *SYSCALL], 0),
    ("masked", ["masked", *KERNEL, *GIVEN], 0),
    ("masked", ["masked", *KERNEL], 6),
    ("check", ["check", *KERNEL, *GIVEN, "--baseline", "old.json", "--even-if-different"], 1),
    ("diff", ["diff", "old.json", "new.json", "--quiet", "--even-if-different"], 1),
    ("sweep", ["sweep", "m.toml", "--quiet"], 0),
    ("replay", ["replay", "a.trace", "--kernel", *KERNEL, *GIVEN, "--timing", "undefined"], 0),
    ("check-facts", ["check-facts", "kernel.elf", "a.trace", *KERNEL[1:], *GIVEN], 0),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel, a fact, a recording as kernels/recorder writes it, two baselines that differ."""
    found = tmp_path_factory.mktemp("documents")
    (found / "kernel.elf").write_bytes(built(SOURCE, "-O1").read_bytes())
    (found / "n.facts").write_text(FACT)
    (found / "m.toml").write_text(MATRIX)
    header = struct.pack("<8s4I", b"QUOLLTRC", 2, 0xF0000000, 0xFFFFFFFF, 0xFFFF0000)
    executed = struct.pack("<4s4I", b"EXEC", 1, 0, End.OUTSIDE, UNDEFINED)
    trailer = struct.pack("<4sI3Q", b"DONE", 0, 1, 1, 0)
    (found / "a.trace").write_bytes(header + executed + trailer)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        command = ["baseline", *KERNEL, *GIVEN[:3]]
        assert main([*command, "n=3", "--output", "old.json"]) == 0
        assert main([*command, "n=4", "--output", "new.json"]) == 0
    return found


def inside(part: object) -> Iterator[dict[str, Any]]:
    """Every object in a schema, itself too."""
    if isinstance(part, dict):
        yield part
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for inner in parts:
        yield from inside(inner)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(("name", "command", "status"), RUNS)
def test_a_document_is_as_its_schema_says(
    name: str,
    command: list[str],
    status: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert main([*command, "--json", "found.json"]) == status
    document = json.loads((folder / "found.json").read_text())
    assert not faults(name, document)
    for key in document:
        assert faults(name, {k: v for k, v in document.items() if k != key}), key
    assert faults(name, {**document, "more": 1})
    assert faults(name, {**document, "schema_version": document["schema_version"] + 1})


@pytest.mark.parametrize("baseline", ["old.json", "new.json"])
def test_a_baseline_is_as_its_schema_says(baseline: str, folder: Path) -> None:
    document = json.loads((folder / baseline).read_text())
    assert not faults("baseline", document)
    assert faults("baseline", {**document, "more": 1})


def test_the_baseline_of_this_project_is_as_its_schema_says() -> None:
    file = Path(__file__).resolve().parents[1] / "baseline.json"
    assert not faults("baseline", json.loads(file.read_text()))


def test_the_analysed_kernel_is_as_its_schema_says(report: dict[str, Any]) -> None:
    """Two of the entries: the system call has the same parts, a thousand times as many."""
    entries = {name: report["entries"][name] for name in ("interrupt", "prefetch-abort")}
    assert not faults("analyse", {**report, "entries": entries})


def test_every_command_with_documents_is_tried() -> None:
    grammars = parser().get_default("commands")
    commands = {g.prog.split()[-1] for g in grammars if "--json" in g.format_help()}
    assert commands == {command[0] for _, command, _ in RUNS}
    assert {*NAMES} == {name for name, _, _ in RUNS} | {"baseline"}


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_leaves_nothing_open(name: str) -> None:
    document = schema(name)
    assert document["title"].startswith("wcet ")
    assert type(document["properties"]["schema_version"]["const"]) is int
    assert "schema_version" in document["required"]
    described = [part for part in inside(document) if "object" in str(part.get("type"))]
    assert not [part for part in described if part.get("additionalProperties", True) is True]
