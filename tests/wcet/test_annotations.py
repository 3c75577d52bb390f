"""Facts in comments of the source: the loop or function that each applies to."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.errors import FactsError, UnboundedLoop
from quoll.facts.annotations import read_annotations
from quoll.image.image import Image
from quoll.results.results_store import ResultsStore
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog

pytestmark = [
    pytest.mark.slow("compiles and analyses programs"),
    pytest.mark.xdist_group("annotations"),
]

LEVELS = ("-O0", "-O1", "-O2", "-Os")
FLAGS = ("-fno-tree-loop-distribute-patterns", CODE)
OPTIONS = AnalysisOptions(
    entries=("main",),
    platform="kzm",
    l2=None,
    facts=(),
    neighbouring_facts=True,
    exits=(),
    solver="",
    time_limit=60.0,
    bounds=BoundOptions(budget=Budget(seconds=60)),
)
LIST = """\
struct item { struct item *next; unsigned n; } *first;
volatile unsigned total;
"""


def analysed(elf: Path, options: AnalysisOptions = OPTIONS) -> AnalysisResult:
    """Its sources are beside it, unless ``options`` say where."""
    asked = options if options.sources != Path() else replace(options, sources=elf.parent)
    return analyse(elf, asked, StageLog(verbose=False))


def stated(result: AnalysisResult) -> dict[str, list[tuple[int, str]]]:
    """By file:line of the fact: bounds, and lines of the headers."""
    entry = result.entries["main"]
    found: dict[str, list[tuple[int, str]]] = {}
    for loop, bound in zip(entry.graph.loops, entry.bounds, strict=True):
        if bound.method == "fact":
            assert bound.bound is not None
            header = entry.graph.nodes[loop.header].block.addr
            source = bound.explained.split(" ")[0].rpartition("/")[2]
            found.setdefault(source, []).append((bound.bound, str(result.image.line(header))))
    return found


WALK = (
    LIST
    + """\
void main(unsigned n) {
    for (struct item *i = first; i; i = i->next) {  // wcet: loop at most 33
        total += i->n;
        total ^= n;
    }
}
"""
)


@pytest.mark.parametrize("level", LEVELS)
def test_a_loop_gets_its_number(level: str) -> None:
    result = analysed(build(WALK, *FLAGS, optimise=level))
    [(source, found)] = stated(result).items()
    assert source == "prog.c:4"
    assert [n for n, _ in found] == [33]
    assert any("prog.c:4" in text for text in map(str, result.assumptions))


@pytest.mark.parametrize("level", LEVELS)
def test_the_line_before_and_other_comments(level: str) -> None:
    text = WALK.replace("  // wcet: loop at most 33", "").replace(
        "    for (",
        "    /* The list is short.\n"
        "     * wcet: loop at most 0x21   # as many as there are threads\n"
        "     */\n"
        "    for (",
    )
    result = analysed(build(text, *FLAGS, optimise=level))
    [(source, found)] = stated(result).items()
    assert (source, [n for n, _ in found]) == ("prog.c:5", [33])


INLINED = (
    LIST
    + """\
static inline unsigned work(unsigned k) {
    unsigned sum = 0;
    // wcet: loop at most 9
    for (unsigned i = 0; i < (k & 7); i++)
        sum += total;
    return sum;
}
void main(unsigned n) {
    for (struct item *i = first; i; i = i->next)  // wcet: loop at most 33
        total += work(i->n) + n;
}
"""
)


@pytest.mark.parametrize("level", ["-O0", "-O1", "-Os"])
def test_a_loop_of_a_function_that_is_inlined(level: str) -> None:
    """The loop around the copy is of another statement, although it holds the copy's lines."""
    found = stated(analysed(build(INLINED, *FLAGS, optimise=level)))
    assert {source: sorted({n for n, _ in at}) for source, at in found.items()} == {
        "prog.c:5": [9],
        "prog.c:11": [33],
    }


GONE = (
    LIST
    + """\
static inline unsigned four(unsigned k) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; i++)  // wcet: loop at most 5
        sum += total + k;
    return sum;
}
void main(unsigned n) {
    for (struct item *i = first; i; i = i->next)
        total += four(i->n);
}
"""
)


def test_what_is_left_of_an_unrolled_loop_is_not_the_loop_around_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The inner loop is gone, its lines are in the outer one: 5 is not the bound of that."""
    elf = build(GONE, *FLAGS, "-fpeel-loops", optimise="-O3")
    with pytest.raises(UnboundedLoop):
        analysed(elf)
    beside = elf.with_suffix(".facts")
    beside.write_text("loop prog.c:11 at most 100\n")
    result = analysed(elf)
    beside.unlink()
    assert list(stated(result)) == ["prog.facts:1"]
    assert "no loop begins at line 5 in the analysed code" in capsys.readouterr().err


NEST = (
    LIST
    + """\
void main(unsigned n) {
    for (struct item *i = first; i; i = i->next)  // wcet: loop at most 33
        for (unsigned k = 0; k < 4; k++)  // wcet: loop at most 5
            total += i->n;
}
"""
)


@pytest.mark.parametrize("level", [*LEVELS, "-O3"])
def test_nested_loops_are_told_apart(level: str) -> None:
    found = stated(analysed(build(NEST, *FLAGS, optimise=level)))
    assert [n for n, _ in found["prog.c:4"]] == [33]
    assert {n for n, _ in found.get("prog.c:5", [])} <= {5}


def test_several_loops_on_a_line_are_refused() -> None:
    text = WALK.replace("        total += i->n;", "")
    text = text.replace("{  //", "{ for (unsigned k = 0; k < n; k++) total++;  //")
    with pytest.raises(FactsError, match=r"prog\.c:4: 2 loops begin at line 4"):
        analysed(build(text, *FLAGS))


SPLIT = (
    LIST
    + """\
void main(unsigned n) {
    for (struct item *i = first; i; i = i->next) {  // wcet: loop at most 33
        for (unsigned k = 0; k < (i->n & 7); k++) total += n;
        total ^= n;
        for (unsigned k = 0; k < (i->n & 3); k++) total += 5;
    }
}
"""
)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("level", spread([*LEVELS, "-O3"], 2))
def test_a_bound_never_gets_to_a_loop_inside(level: str) -> None:
    found = stated(analysed(build(SPLIT, *FLAGS, optimise=level)))
    assert {s: [n for n, _ in at] for s, at in found.items()} == {"prog.c:4": [33]}


def test_a_loop_that_the_compiler_has_split_is_refused() -> None:
    """Its two loops have the same lines: one might be the remainder of another loop."""
    text = INLINED.replace("+ n;", "+ n, total += work(i->n + 3);")
    with pytest.raises(FactsError, match="one inside of the other") as refused:
        analysed(build(text, *FLAGS, optimise="-O2"))
    assert str(refused.value).count("<main+") == 2


COUNTED = """\
volatile unsigned total;
void main(void) {
    for (unsigned i = 0; i < 8; i++)  // wcet: loop at most N
        total += i;
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_the_number_counts_the_tests_of_the_condition(level: str) -> None:
    """Nine at the head for eight turns; with eight, -O0 is refuted by an execution."""
    right = analysed(build(COUNTED.replace("N", "9"), *FLAGS, optimise=level))
    assert right.entries["main"].bounds[0].bound in (8, 9)
    wrong = build(COUNTED.replace("N", "8"), *FLAGS, optimise=level)
    if level == "-O0":
        with pytest.raises(FactsError, match=r"prog\.c:3: .* executed 9 times"):
            analysed(wrong)
    else:
        assert analysed(wrong).entries["main"].bounds[0].bound == 8


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("loop att most 33", r"prog\.c:4: .*did you mean"),
        ("at most 33", r"prog\.c:4: 'at most 33' is no fact about the line"),
        ("main never returns", r"prog\.c:4: .* belongs into a facts file"),
        ("loop at most 0", r"prog\.c:4: .*at least 1"),
        ("loop at most 99999999999999999999999", r"prog\.c:4: .*too large"),
        ("loop prog.c:5 at most 3", "prog.c:4: 'loop here prog.c:5 at most 3' is|is not a fact"),
    ],
)
def test_what_is_no_fact_is_an_error_with_its_line(comment: str, message: str) -> None:
    with pytest.raises(FactsError, match=message):
        analysed(build(WALK.replace("loop at most 33", comment), *FLAGS))


def test_a_contradiction_names_both_lines(tmp_path: Path) -> None:
    elf = build(WALK, *FLAGS)
    facts = tmp_path / "other.facts"
    facts.write_text("loop prog.c:4 at most 32\n")
    with pytest.raises(FactsError, match=r"contradicts .* at .*(prog\.c:4|other\.facts:1)"):
        analysed(elf, replace(OPTIONS, facts=(facts,)))


def test_comments_that_say_nothing_are_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    text = WALK.replace("total ^= n;", "total ^= n;  // wcet: loop at most 3")
    text = text.replace("struct item {", "// wcet: never executes\nstruct item {")
    text += "// wcet: loop at most 3\n"
    found = stated(analysed(build(text, *FLAGS)))
    assert list(found) == ["prog.c:5"]
    said = capsys.readouterr().err
    assert "no loop begins at line 7" in said
    assert "line 2 has no code" in said
    assert "no code follows" in said


@pytest.mark.parametrize(
    "comment",
    [
        "// at most 33 rounds, wcet: loop at most 33",
        "// WCET: loop at most 33",
        "\n#pragma GCC diagnostic push // wcet: loop at most 33\n",
        "\n#define BOUND /* wcet: list has at most 3 elements */\n",
    ],
)
def test_a_fact_that_is_not_read_is_a_warning(
    comment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text that looks like a fact, where none is read, causes a warning."""
    text = WALK.replace("// wcet: loop at most 33", f"// The walk. Not wcet: a word.  {comment}")
    with pytest.raises(UnboundedLoop):
        analysed(build(text, *FLAGS))
    [line] = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert "is not read: 'wcet:' must begin a comment" in line
    assert f"prog.c:{text.split(comment)[0].count(chr(10)) + 1 + comment[0].isspace()}: " in line


@pytest.mark.slow("several whole analyses")
def test_other_facts_of_a_place() -> None:
    text = WALK.replace("{  // wcet: loop at most 33", "{  // wcet: list has at most 8 elements")
    result = analysed(build(text, *FLAGS, optimise="-O1"))
    assert max(b.bound or 0 for b in result.entries["main"].bounds) in (8, 9)
    text = WALK.replace(
        "total ^= n;",
        "if (n > 3)\n            total ^= n;  // wcet: here never executes",
    )
    result = analysed(build(text, *FLAGS, optimise="-O0"))
    assert any("prog.c:7 never executes" in text for text in map(str, result.assumptions))
    text = WALK.replace("at most 33", "at most items + 1")
    parametric = analysed(build(text, *FLAGS)).entries["main"].parametric
    assert parametric is not None
    assert parametric.names == ("items",)


def test_assembly_counts_at_the_first_instruction() -> None:
    text = """\
.syntax unified
.globl main
main:
    mov r3, #0
1:  @ wcet: loop at most 17
    ldr r2, [r3, r1]
    add r3, r3, r2
    cmp r3, r0
    bne 1b
    bx lr
"""
    result = analysed(build(text, CODE, language="S"))
    assert {s: [n for n, _ in at] for s, at in stated(result).items()} == {"prog.S:5": [17]}


@pytest.mark.slow("several whole analyses")
def test_where_comments_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(WALK, *FLAGS, "-DA_BUILD_OF_ITS_OWN")
    with pytest.raises(UnboundedLoop):
        analysed(elf, replace(OPTIONS, neighbouring_facts=False))
    source = elf.parent / "prog.c"
    os.utime(source, (elf.stat().st_mtime + 10,) * 2)
    analysed(elf)
    assert "is newer than prog.elf" in capsys.readouterr().err
    source.rename(tmp_path / "prog.c")
    with pytest.raises(UnboundedLoop):
        analysed(elf)


def test_paths_are_relative_to_where_the_compiler_ran() -> None:
    elf = build(WALK, *FLAGS)
    assert not read_annotations(Image.load(elf), elf, Path("/nowhere")).facts
    assert len(read_annotations(Image.load(elf), elf, elf.parent).facts) == 1
    with pytest.raises(UnboundedLoop):
        analysed(elf, replace(OPTIONS, sources=Path("/nowhere")))


def test_a_comment_that_changes_is_another_request(tmp_path: Path) -> None:
    elf = build(WALK, *FLAGS, "-DANOTHER_BUILD")
    store = ResultsStore(tmp_path / "cache")
    first = analysed(elf, replace(OPTIONS, store=store)).entries["main"].cycles
    source = elf.parent / "prog.c"
    source.write_text(source.read_text().replace("33", "66"))
    assert analysed(elf, replace(OPTIONS, store=store)).entries["main"].cycles > first
    source.write_text(source.read_text().replace("66", "33"))
    assert analysed(elf, replace(OPTIONS, store=store)).entries["main"].cycles == first
