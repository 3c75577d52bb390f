"""``wcet loops``: bounds, methods, evidence and reasons, for any ELF."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from loopbounds.budgets.budget import ProcessLimits
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from quoll.errors import FactsError
from quoll.extraction.extract import extract
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """volatile unsigned sink;
void copy(unsigned n)
{
    for (unsigned i = 0; i < (n & 15); i++)
        sink = i;
}
void list(unsigned *p)
{
    for (; p; p = (unsigned *)*p)
        sink = 1;
}
void many(unsigned n)
{
    for (unsigned i = 0; i < (n & 8191); i++)
        sink = i;
}
__attribute__((naked)) void counted(unsigned *p)
{
    asm("ldr r1, [r0]\\n mov r2, #0\\n b 2f\\n 1: add r2, r2, #1\\n"
        "2: cmp r2, r1\\n blo 1b\\n bx lr");
}
int main(void)
{
    copy(sink);
    copy(3);
    list((unsigned *)sink);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program() -> Path:
    return build(SOURCE, "-fno-inline", "-fno-ipa-cp", "-fno-unroll-loops")


def loops(capsys: pytest.CaptureFixture[str], program: Path, *arguments: str) -> tuple[int, str]:
    status = main(["loops", str(program), "--no-cache", "--quiet", *arguments])
    return status, capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_each_function_by_itself(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    """Without an entry there are no callers: nothing is known of the arguments."""
    status, text = loops(capsys, program, "--entry", "many")
    assert status == 0
    assert "count <= 8191 is an invariant" in text
    assert "1 loops in their contexts: 1 bounded, 1 of them exact" in text


@pytest.mark.slow("several whole analyses")
def test_in_context_as_json(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    """Every field is there; a call with a constant has a bound of its own."""
    status, text = loops(capsys, program, "--entry", "main", "--json", "-")
    found = json.loads(text)["loops"]
    assert status == 6
    assert {(x["function"], x["bound"], x["exact"], x["method"]) for x in found} == {
        ("copy", 15, True, "nusmv"),
        ("copy", 3, None, "nusmv"),  # whether the list before it ends is not known
        ("list", None, None, ""),
    }
    for loop in found:
        assert loop["line"].startswith("prog.c:")
        assert int(loop["place"].split()[0], 16) == int(loop["address"], 16)
        assert len(loop["context"]) == 1
        assert "<main+" in loop["context"][0]
        assert loop["seconds"] >= 0
        assert (loop["bound"] is None) == ("add 'loop prog.c:" in loop["reason"])


@pytest.mark.slow("several whole analyses")
def test_models_can_be_checked_again(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """The solver proves the property of the model that ``--smv`` keeps."""
    loops(capsys, program, "--entry", "many", "--smv", str(tmp_path))
    (model,) = tmp_path.glob("*.smv")
    text = model.read_text()
    name = text.rsplit("INVARSPEC NAME spec_", 1)[1].split(" ")[0]
    (answer,) = nusmv.check_invariants(
        text, [InvariantQuery(name)], ProcessLimits(), nusmv.find_solver()
    )
    assert answer.verdict is InvariantVerdict.TRUE


def test_facts_are_read(capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path) -> None:
    """A stated count for a loop without a proof is shown as an assumption."""
    facts = tmp_path / "my.facts"
    facts.write_text("loop prog.c:9 at most 12\n")
    status, text = loops(capsys, program, "--entry", "list", "--facts", str(facts))
    assert status == 0
    assert "12  fact" in text
    assert "assumed, no proof was tried" in text
    status, text = loops(
        capsys, program, "--entry", "list", "--facts", str(facts), "--prove-stated"
    )
    assert status == 0
    assert "assumed, not proved" in text


@pytest.mark.slow("several whole analyses")
def test_arguments_refute_a_bound_unless_a_fact_excludes_them(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """The hint's fact about the register takes the counterexample away, and gives a proof."""
    facts = tmp_path / "my.facts"
    arguments = ["loops", str(program), "--no-cache", "--quiet", "--entry", "copy"]
    facts.write_text("loop prog.c:4 at most 5\n")
    assert main([*arguments, "--facts", str(facts)]) != 0
    said = capsys.readouterr().err
    assert "executed 15 times, not at most 5, where the path begins with r0 = 0x" in said
    proposed = re.search(r"'(register r0 at 0x[0-9a-f]+ is at most )M'", said)
    assert proposed is not None
    facts.write_text(f"loop prog.c:4 at most 5\n{proposed[1]}5\n")
    given = ("--facts", str(facts), "--prove-stated")
    status, text = loops(capsys, program, "--entry", "copy", *given)
    assert status == 0
    assert "count <= 5 is an invariant" in text


def test_guidance_is_followed_in_its_context(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """A loop that a branch fact excludes is not listed; the fact is an assumption."""
    facts = tmp_path / "my.facts"
    image = Image.load(program)
    entry = image.symbol("list")
    assert entry is not None
    block = extract(image, [entry.addr]).functions[entry.addr].blocks[0]
    facts.write_text(f"branch at {block.last.addr:#x} is always taken in list\n")
    status, text = loops(capsys, program, "--entry", "list", "--facts", str(facts))
    assert status == 0
    assert "no loops" in text
    assert (
        f"assumed: fact: {facts}:1: branch at {block.last.addr:#x} is always taken in list" in text
    )


def test_no_such_entry(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    assert main(["loops", str(program), "--entry", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


@pytest.mark.slow("several whole analyses")
def test_an_invariant_about_data_bounds_a_loop(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """The bound is proved from the register's stated range, and the fact is listed."""
    status, text = loops(capsys, program, "--entry", "counted", "--time-limit", "2")
    assert status == 6
    assert "nothing bounds the word that 'ldr r1, [r0]' reads at" in text
    proposed = re.search(r"'(register r1 at 0x[0-9a-f]+ is at most )M'", text)
    assert proposed is not None
    facts = tmp_path / "my.facts"
    facts.write_text(f"{proposed[1]}8999\n")
    status, text = loops(capsys, program, "--entry", "counted", "--facts", str(facts))
    assert status == 0
    assert "count <= 9000 is an invariant" in text
    assert f"assumed: fact: {facts}:1: {proposed[1]}8999" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("register r16 at main is at most 4", "no register r16"),
        ("register r1 at main is at most 0x100000000", "less than"),
        ("register r1 at main is at most", "register rN at PLACE is at most M"),
        ("register r1 at main is at most 4\nregister r1 at main is at most 5", "contradicts"),
    ],
)
def test_what_is_no_invariant(text: str, message: str) -> None:
    """Each error names the file and the defect."""
    with pytest.raises(FactsError, match=message) as error:
        parse(text, "my.facts")
    assert "my.facts:" in str(error.value)


def test_an_invariant_reads_back() -> None:
    """Its text is the fact again, and it is not taken for a pointer."""
    [fact] = parse("register sp at main+0x8 is at most 0x40", "my.facts").facts
    assert str(fact) == "register r13 at main+0x8 is at most 64"
    assert str(parse(str(fact), "x").facts[0]) == str(fact)


@pytest.mark.slow("several whole analyses")
def test_what_values_assume_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The bounds rested on it, and only ``wcet analyse`` said so."""
    source = "void fill(unsigned *p, unsigned n) { do *p++ = n; while (n-- & 7); }\n"
    elf = build(source + "int main(void) { return 0; }\n", optimise="-O1")
    status, text = loops(capsys, elf, "--entry", "fill")
    assert status == 0
    assert "assumed: S2: a store of unknown address" in text


def test_what_values_assume_is_listed_where_there_is_no_loop(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Value analysis and its assumptions may be the reason that no loop is reached."""
    source = (
        "volatile unsigned *where;\n"
        "__attribute__((noinline)) unsigned leaf(unsigned a) { *where = a; return a + 1; }\n"
        "unsigned main(unsigned a) { return leaf(a) + leaf(a + 1); }\n"
    )
    status, text = loops(capsys, build(source, optimise="-O1"), "--entry", "main")
    assert status == 0
    assert text.startswith("no loops\n")
    assert "assumed: S2: a store of unknown address" in text
