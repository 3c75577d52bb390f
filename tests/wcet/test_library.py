"""``import wcet``: the examples of docs/outputs.md run, and bounds equal the command's."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

import wcet
from tests.testing.quoll.building import build
from wcet import library, run_command
from wcet.cli import main, parser
from wcet.request import requested

PAGE = Path(__file__).resolve().parents[2] / "docs" / "outputs.md"
LIBRARY = PAGE.read_text().partition("\n## Library\n")[2]
EXAMPLES = [dedent(text) for text in re.findall(r"(?:^    .*\n|^\n(?=    ))+", LIBRARY, re.M)]
SOURCE = """\
volatile unsigned left;
__attribute__((noinline)) unsigned sum(unsigned n) {
    for (unsigned i = 0; i < 8; i++) left += n;
    return left;
}
unsigned vector_svc(unsigned n) { return sum(n) + 1; }
unsigned vector_irq(unsigned n) { return n + 1; }
unsigned main(unsigned n) { return vector_svc(n) + vector_irq(n); }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(build(SOURCE, "-fno-inline", optimise="-O1"), "kernel.elf")
    return tmp_path


def test_the_names_are_those_that_are_promised() -> None:
    assert wcet.__all__ == sorted((*library.__all__, *run_command.__all__))
    for module in (library, run_command):
        assert all(getattr(wcet, name) is getattr(module, name) for name in module.__all__)
    assert set(wcet.__all__) <= set(dir(wcet))
    with pytest.raises(AttributeError, match="nothing"):
        _ = wcet.nothing


def test_a_command_does_not_import_the_library() -> None:
    code = "import sys, wcet.cli; sys.exit('wcet.library' in sys.modules or 'numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_options_are_those_of_the_command() -> None:
    options = requested(parser("analyse").parse_args(["analyse", "k.elf"]), [])
    assert library.analysis_options((), None, (), {}, options.store) == options


@pytest.mark.slow("several whole analyses")
def test_the_bounds_are_those_of_the_command(folder: Path) -> None:
    found = wcet.analyse("kernel.elf", entries=["sum"], platform="kzm")
    asked = ["analyse", "kernel.elf", "--entry", "sum", "--platform", "kzm", "--quiet"]
    assert main([*asked, "--json", "command.json"]) == 0
    command = json.loads(Path("command.json").read_text())
    ours = json.loads(found.to_json())
    assert {**ours, "stages": 0} == {**command, "stages": 0}
    entry = found.entries["sum"]
    assert entry.cycles == command["entries"]["sum"]["cycles"] == sum(entry.functions.values())
    assert [(loop.function, loop.line, loop.bound) for loop in entry.loops] == [("sum", 3, 8)]
    assert list(found.assumptions) == command["assumptions"]


def test_a_name_alone_is_not_several() -> None:
    with pytest.raises(TypeError, match="several"):
        wcet.analyse("kernel.elf", entries="syscall")


def test_a_command_is_a_function(folder: Path) -> None:
    """With its files and options, its document, or its report, and its status."""
    found = wcet.run("cfg", Path("kernel.elf"), entry=["vector_svc", "main"])
    names = {function["name"] for function in found.document["functions"]}
    assert (found.status, found.text, names) == (0, "", {"vector_svc", "sum", "main", "vector_irq"})
    listing = wcet.run("disasm", "kernel.elf", "sum", no_cache=False)
    assert (listing.status, listing.document) == (0, None)
    assert "<sum> prog.c:2" in listing.text
    wcet.run("cfg", "kernel.elf", json="cfg.json")
    assert (
        json.loads(Path("cfg.json").read_text())["schema_version"]
        == found.document["schema_version"]
    )


def test_a_wrong_use_of_a_command_is_an_error(folder: Path) -> None:
    for text, command, options in (
        ("there is no command latencies", "latencies", {}),
        ("unrecognized arguments: --at-mots=3", "latency", {"at_mots": 3}),
        ("invalid choice: 'mny'", "latency", {"l2": "mny"}),
        (
            "there is no symbol no_such_entry",
            "latency",
            {"entry": "no_such_entry", "platform": "kzm"},
        ),
    ):
        with pytest.raises(wcet.WcetError, match=text):
            wcet.run(command, "kernel.elf", **options)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 6
    assert all("import wcet" in example for example in EXAMPLES)


@pytest.mark.slow("each example is a process with whole analyses")
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(folder: Path, example: str) -> None:
    if "matplotlib" in example and find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    code = example.replace('"kernel.elf", ', '"kernel.elf", platform="kzm", ')
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"MPLBACKEND": "agg", "HOME": str(folder), "PYTHONPATH": str(PAGE.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or Path("functions.png").stat().st_size > 5000
