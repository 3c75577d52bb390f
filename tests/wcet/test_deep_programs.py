"""Calls that nest deeper than Python's frames: every command has an answer, or says its limit.

Python has fewer frames here than usual, so that half as many calls are too deep.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wcet.cli import main

FRAMES = 400
DEEP = FRAMES + 100  # functions


def function(name: str, body: str) -> str:
    return f".global {name}\n.type {name}, %function\n{name}: {body}\n.size {name}, .-{name}\n"


def chain(first: str, link: str, last: str) -> str:
    """``f`` begins with ``first``; each of ``DEEP`` functions is ``link`` to the next one."""
    links = [function(f"g{i}", link.replace("NEXT", f"g{i + 1}")) for i in range(DEEP)]
    return ".syntax unified\n.arm\n" + "".join(
        (function("f", first), *links, function(f"g{DEEP}", last))
    )


TAILS = chain("b g0", "add r0, r0, #1\nb NEXT", "bx lr")
COUNTED = chain(
    "push {r4, lr}\nmov r4, #10\n1: bl g0\ncmp r4, #0\nbne 1b\npop {r4, pc}",
    "add r0, r0, #1\nb NEXT",
    "sub r4, r4, #1\nbx lr",
)
CALLS = chain(
    "push {r4, lr}\nbl g0\npop {r4, pc}",
    "push {r4, lr}\nadd r0, r0, #1\nbl NEXT\npop {r4, pc}",
    "bx lr",
)


@pytest.fixture(autouse=True)
def few_frames() -> Iterator[None]:
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(FRAMES)
    yield
    sys.setrecursionlimit(most)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of all commands: they ask for the same stages."""
    return tmp_path_factory.mktemp("kept")


def linked(folder: Path, text: str) -> Path:
    (folder / "program.S").write_text(text)
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-g", "-nostdlib", "-Wl,-Ttext=0xf0010000",
         "-Wl,-e,0xf0010000", "-o", folder / "program.elf", folder / "program.S"],
        check=True,
    )  # fmt: skip
    return folder / "program.elf"


def run(*words: object) -> int:
    return main([*map(str, words), "--entry", "f", "--platform", "kzm", "--quiet"])


@pytest.mark.slow("programs of hundreds of nested calls")
@pytest.mark.parametrize(
    ("text", "least"), [(TAILS, 2 * DEEP), (COUNTED, 20 * DEEP), (CALLS, 4 * DEEP)],
    ids=["tail calls", "a counter below", "calls"],
)  # fmt: skip
def test_each_has_a_bound_and_a_path(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], text: str, least: int
) -> None:
    """A chain of tail calls ended in the walk that folds the path into a tree of calls."""
    elf = linked(tmp_path, text)
    written = ["--details", "--json", tmp_path / "a.json"]
    assert run("analyse", elf, *written, "--cache", kept) == 0  # later commands recall it
    (entry,) = json.loads((tmp_path / "a.json").read_text())["entries"].values()
    assert entry["cycles"] >= least
    capsys.readouterr()
    assert run("path", elf, "--cache", kept, "--flame", tmp_path / "a.flame") == 0
    assert f"g{DEEP}" in (tmp_path / "a.flame").read_text()
    if text == TAILS:
        assert run("advise", elf, "--cache", kept) == 0
        capsys.readouterr()
    assert run("path", elf, "--cache", kept, "--json", tmp_path / "b.json") == 2
    said = capsys.readouterr()
    assert "in more than 400 calls and loops at once" in said.err
    assert not (tmp_path / "b.json").exists()


@pytest.mark.slow("programs of hundreds of nested calls")
@pytest.mark.parametrize(
    "words",
    [
        ("cache",), ("latency", "--stretches", "1"), ("masked",), ("loops",), ("loops", "--nest"),
        ("callgraph",),
        ("values", f"g{DEEP}"), ("timing", f"g{DEEP}"), ("diff",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_command_has_an_answer(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    elf = linked(tmp_path, COUNTED)
    command, *others = words
    inputs = [elf, elf] if command == "diff" else [elf]
    common = ["--entry", "f"]
    if command != "callgraph":
        common += ["--platform", "kzm", "--quiet", "--cache", str(kept)]
    status = main([command, *map(str, inputs), *others, *common])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert said.out


def test_what_is_too_deep_is_one_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object, **__: object) -> None:
        endless()

    monkeypatch.setattr("wcet.commands.analyse.analyse", endless)
    assert run("analyse", linked(tmp_path, TAILS), "--no-cache") == 10
    assert "nests deeper than this program follows" in capsys.readouterr().err
