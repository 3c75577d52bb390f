"""``wcet cfg``, ``disasm``, ``callgraph`` and ``loops`` on programs whose shape is known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.testing.programs import needs
from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.reports.loads import HEAT
from wcet.reports.painted import LEGEND

SOURCE = """\
__attribute__((noinline)) int leaf(int x) { return x * 3; }
int volatile sink;
int main(int n)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += leaf(sum ^ n);
    switch (n) {
    case 0: return sum; case 1: return sum + 9; case 2: sink = 4; break;
    case 3: return leaf(sum); case 4: sink = 7; break; case 5: sink = sum; break;
    }
    return sum;
}
"""


@pytest.fixture(scope="module")
def program() -> Path:
    return build(SOURCE, "-fno-jump-tables", optimise="-O1")


def out(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_summary(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    text = out(capsys, "cfg", program, "--entry", "main")
    assert "functions     2\n" in text
    assert "loops         1\n" in text
    assert "3 contexts" in text, "main, and leaf from two places"
    assert "unresolved" not in text


def test_json_goes_to_a_file_or_to_standard_output(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    document = json.loads(out(capsys, "cfg", program, "--entry", "main", "--json", "-"))
    assert document["contexts"] == {"main": 3}
    assert (document["unresolved"], document["recursion"], document["noreturn"]) == ([], [], [])
    file = tmp_path / "cfg.json"
    assert "functions" in out(capsys, "cfg", program, "--entry", "main", "--json", file)
    assert json.loads(file.read_text()) == document


def test_disassembly_shows_source_blocks_edges_and_loops(
    capsys: pytest.CaptureFixture[str], program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program.parent)
    text = out(capsys, "disasm", program, "main")
    assert "sum += leaf(sum ^ n);" in text
    assert "loop header" in text
    assert "call of" in text
    assert "-> return" in text


def test_call_graph(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    text = out(capsys, "callgraph", program, "--entry", "main")
    assert text.count("call of leaf at") == 2
    assert out(capsys, "callgraph", program, "--dot", "-").startswith("digraph")
    assert "<graphml" in out(capsys, "callgraph", program, "--graphml", "-")


def test_loops(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    (line,) = out(capsys, "loops", program, "--nest").splitlines()
    assert line.startswith("loop at")
    assert "prog.c:" in line


def test_drawing_needs_a_function(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    for option in ("--dot", "--graphml", "--svg"):
        assert main(["cfg", str(program), option, "x"]) == 2
        assert "--function" in capsys.readouterr().err
    assert "<graphml" in out(capsys, "cfg", program, "--function", "leaf", "--graphml", "-")
    assert out(capsys, "cfg", program, "--function", "leaf", "--dot", "-").startswith("digraph")


def test_no_such_function(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    assert main(["disasm", str(program), "laef"]) == 2
    assert "leaf" in capsys.readouterr().err


@pytest.mark.slow("several whole analyses")
@needs("dot")
def test_a_drawing_has_the_worst_path(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    """Colours, counts of edges and a legend: in the dot file and in Graphviz's SVG."""
    of = ["cfg", program, "--function", "main", "--cycles", "main", "--platform", "kzm"]
    dot = out(capsys, *of, "--dot", "-")
    plain = out(capsys, "cfg", program, "--function", "main", "--dot", "-")
    assert "loop: at most" in dot
    assert all(text in dot for _, text in LEGEND)
    assert HEAT[-1] in dot
    assert not any(word in plain for word in ("×", "fillcolor", "legend"))
    svg = ElementTree.fromstring(out(capsys, *of, "--svg", "-"))
    drawn = {shape.get("fill") for shape in svg.iter("{http://www.w3.org/2000/svg}polygon")}
    assert {fill for fill, _ in LEGEND} <= drawn


def test_cycles_are_those_of_the_path(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    asked = ["--platform", "kzm"]
    result = json.loads(
        out(capsys, "analyse", program, "--entry", "main", *asked, "--quiet", "--json", "-")
    )
    entry = result["entries"]["main"]
    names = [context["function"] for context in entry["contexts"]]
    blocks = [b for s in entry["path"] if names[s["context"]] == "main" for b in s["blocks"]]
    of = ["cfg", program, "--function", "main", "--cycles", "main", *asked]
    dot = out(capsys, *of, "--dot", "-")
    drawn = re.findall(r"([\d,]+) cycles, ([\d,]+)×", dot)
    numbers = [[int(n.replace(",", "")) for n in pair] for pair in drawn]
    assert sum(cycles for cycles, _ in numbers) == sum(block["cycles"] for block in blocks)
    assert sum(runs for _, runs in numbers) == sum(block["executions"] for block in blocks)


def test_cycles_need_a_drawing(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    assert main(["cfg", str(program), "--cycles", "main"]) == 2
    assert "--function" in capsys.readouterr().err
    assert main(["cfg", str(program), "--platform", "kzm"]) == 2
    assert "--cycles" in capsys.readouterr().err
