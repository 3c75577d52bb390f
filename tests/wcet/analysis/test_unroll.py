"""Virtual unrolling through the whole analysis: its bounds are safe, and some are lower."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from quoll.errors import FactsError
from quoll.inlining.vivu import FULL, VivuSettings
from tests.testing.quoll.building import build
from tests.testing.wcet.calling import calling_program
from tests.testing.wcet.programs import CODE, FLAGS, bound, check, guided, program
from wcet.analysis.result import EntryResult
from wcet.cli import main

UNROLLED = VivuSettings(unroll=True)
FIRST = """
volatile unsigned device[64];
unsigned cells[64];
unsigned main(unsigned a) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 20; i++) {
        if (i == 0)
            sum += device[1] + device[9] + device[17] + device[25] + device[33] + device[41];
        sum += cells[3] + cells[a & 7];
    }
    return sum;
}
"""


def rounds(entry: EntryResult) -> list[int | None]:
    """The bounds of the loops as a user counts them."""
    return [bound.iterations(entry.graph) for bound in entry.bounds]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("write", "seed", "optimise"),
    [
        (calling_program, 5, "-O1"),
        (calling_program, 6, "-O2"),
        (program, 2, "-Os"),
        (program, 3, "-O1"),
        (program, 7, "-O2"),
    ],
)
def test_no_execution_exceeds_a_bound(
    write: Callable[[int, str], Path], seed: int, optimise: str
) -> None:
    elf = write(seed, optimise)
    result = bound(elf, vivu=UNROLLED)
    entry = result.entries["main"]
    assert entry.path.unrealisable is None
    assert all(entry.graph.apart(loop) == 1 for loop in entry.graph.loops)
    for case in check(result, seed, inputs=4, states=2):
        assert case.most <= case.charged <= case.bound


@pytest.mark.slow("several whole analyses")
def test_what_only_the_first_iteration_does_is_charged_once() -> None:
    elf = build(FIRST, *FLAGS, optimise="-O0", link=(CODE,))
    plain, apart = (bound(elf, vivu=vivu) for vivu in (FULL, UNROLLED))
    whole, entry = plain.entries["main"], apart.entries["main"]
    assert rounds(whole) == rounds(entry) == [21]
    assert entry.cycles < 0.9 * whole.cycles
    check(apart, 1, inputs=4, states=3)


UNKNOWN = """
struct item { struct item *next; } *first;
unsigned main(unsigned a) {
    unsigned n = 0;
    for (struct item *i = first; i; i = i->next) n++;
    for (unsigned j = 0; j < 5; j++) { n += a >> j; asm volatile("" : "+r"(j)); }
    return n;
}
"""


@pytest.fixture(scope="module")
def unknown() -> Path:
    return build(UNKNOWN, *FLAGS, "-g", optimise="-O1", link=(CODE,))


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("most", [1, 2, 7])
def test_a_stated_bound_counts_the_first_iteration(
    unknown: Path, most: int, tmp_path: Path
) -> None:
    fact = f"loop prog.c:5 at most {most}"
    plain = guided(unknown, tmp_path, fact).entries["main"]
    result = guided(unknown, tmp_path, fact, vivu=UNROLLED)
    entry = result.entries["main"]
    assert most in rounds(plain)
    assert most in rounds(entry)
    assert rounds(entry).count(5) == rounds(plain).count(5) == 1
    assert [label.label for label in result.facts] == ["assumed"]
    walked = next(loop for loop in entry.graph.loops if rounds(entry)[loop.index] == most)
    assert entry.solution.nodes[walked.header] == most - 1


@pytest.mark.slow("several whole analyses")
def test_a_stated_bound_is_judged_with_the_first_iteration(tmp_path: Path) -> None:
    lines = UNKNOWN.splitlines(keepends=True)
    counted_first = "".join((*lines[:4], lines[5], lines[4], *lines[6:]))
    unknown = build(counted_first, *FLAGS, "-g", optimise="-O1", link=(CODE,))
    stated = "loop prog.c:6 at most 3\nloop prog.c:5 at most "
    proved = guided(unknown, tmp_path, stated + "5", vivu=UNROLLED, prove_stated=True)
    assert sorted(label.label for label in proved.facts) == ["assumed", "proved"]
    with pytest.raises(FactsError, match="is executed 5 times whenever it is repeated, not at"):
        guided(unknown, tmp_path, stated + "4", vivu=UNROLLED)


@pytest.mark.slow("several whole analyses")
def test_a_list_has_no_more_elements_after_its_first(unknown: Path, tmp_path: Path) -> None:
    """As many rounds as elements, and the last look; the first of them is counted apart."""
    fact = "list at prog.c:5 has at most 6 elements"
    plain = guided(unknown, tmp_path, fact).entries["main"]
    entry = guided(unknown, tmp_path, fact, vivu=UNROLLED).entries["main"]
    (walk,) = [n for n in rounds(plain) if n != 5]
    (apart,) = [n for n in rounds(entry) if n != 5]
    assert walk is not None
    assert apart in (walk, walk + 1)


@pytest.mark.slow("several whole analyses")
def test_a_report_says_what_is_counted(unknown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = unknown.with_suffix(".facts")
    facts.write_text("loop prog.c:5 at most 3\n")
    command = ["analyse", str(unknown), "--entry", "main", "--platform", "kzm", "--unroll"]
    assert main([*command, "--json", "-"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"].values()
    assert sorted((loop["bound"], loop["first_apart"]) for loop in entry["loops"]) == [
        (3, True),
        (5, True),
    ]
    assert main(["path", *command[1:]]) == 0
    text = capsys.readouterr().out
    assert "loop prog.c:6 after its first iteration, entered once, at most 4 each" in text
    assert main(["cfg", str(unknown), "--entry", "main"]) == 0
    plain = capsys.readouterr().out
    assert main(["cfg", str(unknown), "--entry", "main", "--unroll"]) == 0
    assert plain != capsys.readouterr().out
