"""Counts and cycles that no execution falls below, and facts that say less (rule 49).

The property tests execute random programs in the interpreter, and replay them in the concrete
machine: a fact that holds in one execution is never refused.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from ilp.least_counts import least_rows
from ilp.paths.path_check import violations
from ilp.paths.solution import PathStep
from loopbounds.least_call import least_call
from pipeline.core import issue_width
from quoll.errors import UnboundedLoop
from quoll.facts.guidance import ReplacedFact
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.recordings.follow import follow
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build
from tests.testing.wcet import programs
from tests.testing.wcet.small_programs import BOARDS, COUNTS, Analysed, Board
from wcet.analysis.result import AnalysisResult
from wcet.cli import main
from wcet.executions.path_replay import (
    ReplayPath,
    StartContents,
    executed,
    random_machine,
    replay,
)

FACTS = 4  # exit status
G = """.type g, %function
g: push {r4, lr}
mov r4, #10
1: ldr r2, [r1], #4
str r2, [r0], #4
subs r4, r4, #1
inside: bne 1b
pop {r4, pc}
"""
TWICE = "push {lr}\nbl g\nbl g\npop {pc}\n"
MAYBE = "push {lr}\ncmp r0, #0\nblne g\npop {pc}\n"
BEHIND = "cmp r0, #0\nbeq 2f\nnop\n2: mov r3, #10\n1: subs r3, r3, #1\ninner: bne 1b\nbx lr\n"
INNER = "1: subs r2, r2, #1\ninner: bne 1b\nsubs r3, r3, #1\nbne 2b\nbx lr\n"
TRIANGLE = f"mov r3, #10\n2: mov r2, r3\n{INNER}"
NESTED = f"str r0, [r1]\nmov r3, #4\n2: mov r2, #5\n{INNER}"
LEFT = "mov r3, #9\n1: ldr r2, [r0]\ncmp r2, #0\nbeq 2f\nsubs r3, r3, #1\ninner: bne 1b\n2: bx lr\n"


class Stated(NamedTuple):
    body: str
    fact: str
    said: str  # "" if nothing refuses it


STATED = {
    "both calls": Stated(TWICE, "inside executes at most 19 times", "at least 20 times"),
    "both calls, truly": Stated(TWICE, "inside executes at most 20 times", ""),
    "each call": Stated(TWICE, "inside executes at most 9 times in g", "no path satisfies"),
    "each call, truly": Stated(TWICE, "inside executes at most 10 times in g", ""),
    "from one caller": Stated(
        TWICE, "inside executes at most 9 times in g when called from main", "no path satisfies"
    ),
    "a sum": Stated(TWICE, "count(inside) + count(g) <= 21", "no path satisfies"),
    "a sum, truly": Stated(TWICE, "count(inside) + count(g) <= 22", ""),
    "of equal counts": Stated(TWICE, "inside is consistent with g in main", "no path satisfies"),
    "perhaps called": Stated(MAYBE, "inside executes at most 3 times", ""),
    "perhaps called, each": Stated(MAYBE, "inside executes at most 3 times in g", ""),
    "a triangle": Stated(TRIANGLE, "inner executes at most 54 times", "at least 55 times"),
    "a triangle, truly": Stated(TRIANGLE, "inner executes at most 55 times", ""),
    "nested": Stated(NESTED, "inner executes at most 19 times", "at least 20 times"),
    "nested, truly": Stated(NESTED, "inner executes at most 20 times", ""),
    "behind a branch": Stated(BEHIND, "inner executes at most 9 times", "at least 10 times"),
    "behind a branch, truly": Stated(BEHIND, "inner executes at most 10 times", ""),
    "left early": Stated(LEFT, "inner executes at most 3 times", ""),
}


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("name", STATED)
def test_counts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = STATED[name]
    found = Analysed(tmp_path, capsys)(case.body, other=G, facts=f"{case.fact}\n")
    assert found.status == (FACTS if case.said else 0), found.error
    assert case.said in found.error


LEAST = {
    "straight": ("nop\nnop\nnop\nnop\n", 4),
    "either way": ("cmp r0, #0\nbeq 1f\nnop\nnop\nb 2f\n1: nop\nnop\nnop\n2: nop\n", 4),
    "a loop": (f"mov r3, #10\n{COUNTS}", 11),
    "stores to any place": ("mov r3, #10\n1: str r2, [r0], #4\nsubs r3, r3, #1\nbne 1b\n", 21),
    "any number of times": ("mov r1, #1\n1: subs r0, r0, #1\nbne 1b\n", 2),
    "a word that a store may change": (
        "push {r0}\nmov r3, #9\nstr r3, [sp]\nstr r1, [r0]\nldr r3, [sp]\n1: subs r3, r3, #1\n"
        "bne 1b\nadd sp, sp, #4\n",
        7,
    ),
}


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("board", BOARDS, ids=["arm1136", "cortex-a8", "thumb"])
@pytest.mark.parametrize("name", LEAST)
def test_cycles(
    name: str, board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Cortex-A8 issues two instructions in a cycle."""
    body, instructions = LEAST[name]
    least = instructions // (1 if board == BOARDS[0] else 2)
    other = f".thumb_func\n.type k, %function\nk:\n{body}bx lr\n"
    if board == BOARDS[0]:
        other = other.replace(".thumb_func\n", "")
    analysed = Analysed(tmp_path, capsys)
    for cycles in {least, max(1, least - 1)}:
        found = analysed(
            "push {r4, lr}\nbl k\npop {r4, pc}\n",
            other=other,
            facts=f"function k takes at most {cycles} cycles\n",
            board=board,
        )
        assert found.status == (0 if cycles == least else FACTS), found.error
        assert cycles == least or f"k takes at least {least} cycles in every call" in found.error


def test_only_code_that_is_known_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Behind a jump to any place, and in a function in ROM, any code may be executed."""
    other = f".type k, %function\nk: {'nop;' * 9} mov pc, r0\n"
    analysed = Analysed(tmp_path, capsys)
    body = "push {lr}\nldr r3, =0x100000\nblx r3\nbl k\npop {pc}\n"
    rom = "function 0x100000 takes at most 1 cycle\n"
    for cycles, status in ((9, 0), (8, FACTS)):
        facts = f"{rom}function k takes at most {cycles} cycles\n"
        assert analysed(body, other=other, facts=facts).status == status


LOOP = """.syntax unified
.global main
.type main, %function
main: mov r3, #10
here: subs r3, r3, #1
bne here
bx lr
"""


@pytest.mark.slow("several whole analyses")
def test_a_new_constraint_of_a_cached_entry_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf, facts = build(LOOP, language="S", link=(programs.CODE,)), tmp_path / "k.facts"
    options = ["--entry", "main", "--platform", "kzm", "--quiet", "--cache", str(tmp_path / "c")]
    for most, status in ((10, 0), (9, FACTS), (11, 0)):
        facts.write_text(f"here executes at most {most} times\n")
        assert main(["analyse", str(elf), *options, "--facts", str(facts)]) == status
    assert "here is executed at least 10 times on every path" in capsys.readouterr().err


SEEDS = range(cases(6))
PLATFORMS = (("kzm", "arm1136jf-s"), ("cubieboard", "cortex-a8"))


@pytest.mark.slow("analyses and executes many random programs")
def test_no_execution_falls_below_them() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        platform, cpu = PLATFORMS[seed % 2]
        elf = programs.program(seed, ("-O0", "-O1", "-O2")[seed % 3], cpu)
        try:
            result = programs.bound(elf, platform)
        except UnboundedLoop:
            continue
        for number in range(4):
            check(result, Random(f"{seed} {number}"), counts)
    assert counts["rows"] >= 15
    assert counts["calls"] >= 10
    assert counts["near"] > 0, "some are not far below"


def check(result: AnalysisResult, random: Random, counts: Counter[str]) -> None:
    """One execution satisfies the rows, and takes the cycles of the least call."""
    entry = result.entries["main"]
    (paths,) = entry.paths
    pcs, accesses = programs.run(result.image, entry.address, random)
    visits = follow(paths.graph, result.image, pcs)
    taken = Counter(visit.edge for visit in visits)
    edges = [taken[e] for e in range(len(paths.graph.edges))]
    rows = least_rows(paths.graph, paths.bounds, paths.prefix)
    assert all(row.holds(edges) for row in rows)
    counts["rows"] += len(rows)
    facts = locate(parse("function main takes at most 1 cycle", "x"), result.image)
    (fact,) = facts.of(ReplacedFact)
    least = least_call(result.image, facts, frozenset(), fact)
    assert least is not None
    width = issue_width(result.platform.timing)
    steps = executed(ReplayPath.of(paths.graph, visits), accesses, result.platform, random)
    machine = random_machine(result.platform, steps, StartContents.COLD, random)
    cycles = replay(machine, steps, exception=False)
    assert least.instructions <= len(pcs)
    assert least.instructions // width <= cycles
    counts["calls"] += 1
    counts["near"] += 2 * least.instructions > len(pcs)


@pytest.mark.slow("analyses and executes many random programs")
def test_a_fact_that_holds_in_an_execution_is_never_refused(tmp_path: Path) -> None:
    """All counts of one execution, in total and in each function, are facts of one analysis."""
    judged = 0
    for seed in SEEDS[: cases(3)]:
        elf = programs.program(seed, ("-O0", "-O1", "-O2")[seed % 3])
        try:
            result = programs.bound(elf)
        except UnboundedLoop:
            continue
        entry = result.entries["main"]
        pcs, _ = programs.run(result.image, entry.address, Random(seed))
        (paths,) = entry.paths
        visits = follow(paths.graph, result.image, pcs)
        most = Counter(paths.graph.nodes[v.node].block.addr for v in visits)
        blocks = {node.block.addr for node in paths.graph.nodes}
        stated = [f"{at:#x} executes at most {most[at]} times" for at in sorted(blocks)]
        found = programs.guided(elf, tmp_path, "\n".join(stated)).entries["main"]
        steps = [PathStep(v.node, v.edge) for v in follow(found.graph, result.image, pcs)]
        assert not violations(found.graph, found.numbers, found.constraints, steps)
        judged += len(found.constraints)
    assert judged > 10  # counts of 0 remove code, and are no constraints
