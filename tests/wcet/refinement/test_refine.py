"""``wcet refine``: no execution exceeds a refined bound, or takes edges that exclude each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.errors import UnboundedLoop
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build
from tests.testing.wcet.first_hour import build_handler
from tests.testing.wcet.infeasible_programs import CHANGED, build_pairs
from tests.testing.wcet.planted_programs import planted
from tests.testing.wcet.programs import CODE
from tests.testing.wcet.refined_runs import (
    broken_exclusions,
    graph_of,
    paths_of,
    refined,
    removed,
)
from wcet.refinement.rounds import Ending

LEVELS = ("-O1", "-O2", "-Os")
SEEDS = range(cases(2))
LOWER = [  # a pair at a level at which the compiler leaves both decisions
    ("argument", 0, "-O0"),
    ("global", 1, "-O1"),
    ("callee", 2, "-O2"),
    ("cleared", 1, "-Os"),
    ("table", 1, "-O1"),
    ("machine", 2, "-Os"),
    ("field", 1, "-O2"),
    ("fields", 0, "-O1"),
    ("stored", 2, "-Os"),
    ("contexts", 0, "-O1"),
    ("length", 0, "-O1"),
    ("lengths", 0, "-O1"),
    ("once", 0, "-Os"),
    ("part", 0, "-O1"),
]
CHANGING = [  # at -O0, the last iteration of a loop stores nothing
    ("aliased", 0, "-O1"),
    ("walked", 1, "-O0"),
    ("moved", 2, "-Os"),
    ("byte", 8, "-O1"),
    ("followed", 4, "-O0"),
    ("grown", 4, "-O1"),
    ("lengthened", 0, "-O1"),
    ("uneven", 1, "-O1"),
    ("rewritten", 0, "-Os"),
    ("drained", 0, "-O1"),
    ("stepped", 0, "-O1"),
    ("recounted", 0, "-O1"),
    ("recounted", 1, "-Os"),
    ("again", 2, "-O1"),
    ("restarted", 0, "-O1"),
    ("raised", 0, "-O1"),
]
SEVERAL = [  # programs in which several calls are excluded together
    ("modes", 18),
    ("loops", 35),
    ("loops", 9059),
    ("loops", 9235),
    ("loops", 9243),
    ("types", 5017),
]
IN_LOOP = ".syntax unified\n.global main\nmain: lsrs r0, r0, #1\nbne main\nbx lr\n"
WIDE = """
.syntax unified
.global main
main: push {r4, lr}
mov r4, #0
cmp r0, #27
bne 1f
.rept 30
lsrs r1, r1, #1
beq 9f
mul r2, r1, r2
9:
.endr
b 2f
1: mov r4, r1
2: cmp r4, #0
beq 3f
.rept 40
mul r2, r2, r3
.endr
3: pop {r4, pc}
"""
HANDLER = """\
region ram from 0x80000000 to 0x80001fff is cached and fixed
calls at handle_irq+0x250 go to beat, sample
loop handler.c:138 at most 5
region stack from 0x80001400 to 0x80001400 is cached
register r13 at irq_entry points into stack
region data from 0x80001800 to 0x8000190f is cached
accesses of unknown address point into data
"""


@pytest.mark.slow("analyses, refines and executes a program for each kind of pair")
@pytest.mark.parametrize(("kind", "seed", "level"), LOWER)
def test_a_planted_pair_is_excluded(kind: str, seed: int, level: str) -> None:
    found = refined(build_pairs((kind,), seed, level).elf)
    assert found.cycles < found.entry.cycles
    assert found.ending is Ending.NOT_REFUTED
    assert [one.cycles for one in found.rounds] == sorted(
        (one.cycles for one in found.rounds), reverse=True
    )
    for path in paths_of(found, 6, seed):
        assert not broken_exclusions(found, path)


@pytest.mark.slow("analyses, refines and executes random programs")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_execution_takes_excluded_edges(seed: int) -> None:
    """Each program has pairs that something changes, and a search with two ways out of its loop."""
    kinds = (CHANGED[seed % len(CHANGED)], "search", CHANGED[(seed + 3) % len(CHANGED)])
    program = build_pairs(kinds, seed, LEVELS[seed % len(LEVELS)])
    try:
        found = refined(program.elf)
    except UnboundedLoop:  # a loop whose counter the compiler left in memory
        return
    for path in paths_of(found, 30, seed):
        assert not broken_exclusions(found, path)


@pytest.mark.slow("analyses, refines and executes a program for each kind of pair")
@pytest.mark.parametrize(("kind", "seed", "level"), CHANGING)
def test_a_word_that_may_change_is_any_word(kind: str, seed: int, level: str) -> None:
    """By a store through another pointer, in a loop, into a byte of it; or the pointer changes.

    The last rows are about numbers of iterations, some in one of two contexts only.
    """
    found = refined(build_pairs((kind,), seed, level).elf)
    for path in paths_of(found, 60, seed):
        assert not broken_exclusions(found, path)


@pytest.mark.slow("analyses, refines and executes a program")
def test_a_core_is_lifted_where_it_is_proved_again() -> None:
    """Both calls decide about the same word twice; then one of them about two words."""
    [both] = refined(build_pairs(("contexts",), 0, "-O1").elf).rounds
    assert len(both.exclusions) == 2
    found = refined(build_pairs(("crossed",), 0, "-O1").elf)
    graph = graph_of(found)
    of_one_call = [
        core
        for core in found.cores
        if len({graph.nodes[graph.edges[e].src].context for e in core.edges}) == 1
        and len(core.edges) == 2
    ]
    assert len(of_one_call) == 1
    for path in paths_of(found, 20, 0):
        assert not broken_exclusions(found, path)


@pytest.mark.slow("analyses the handler of the first hour")
def test_frames_of_the_handler_are_four_bytes_apart(tmp_path: Path) -> None:
    """No fact says that 16 bytes are at most four frames."""
    build_handler("gcc -O2 arm", tmp_path)
    (tmp_path / "handler.facts").write_text(HANDLER)
    found = refined(tmp_path / "handler.elf", entry="irq_entry", platform="cubieboard")
    assert found.cycles < found.entry.cycles / 2
    assert 4 in [core.distance for core in found.cores]


@pytest.mark.slow("analyses two programs")
def test_the_reason_of_the_end_is_given() -> None:
    late = refined(build_pairs(("global",), 1, "-O1").elf, seconds=0)
    assert (late.ending, late.rounds, late.cycles) == (Ending.TIME, (), late.entry.cycles)
    assert refined(build(IN_LOOP, language="S", link=(CODE,))).ending is Ending.IN_LOOP


def test_the_way_to_a_wide_join_decides_behind_it() -> None:
    """Sixty blocks lie between the first branch and the join, too many for conditions of its edges.

    r4 is 0 behind them, and is tested behind the join.
    """
    found = refined(build(WIDE, language="S", link=(CODE,)))
    assert found.cycles <= found.entry.cycles - 60
    for path in paths_of(found, 6, 0):
        assert not broken_exclusions(found, path)


@pytest.mark.slow("analyses, refines and executes planted programs")
@pytest.mark.parametrize(("family", "seed"), SEVERAL)
def test_calls_that_no_execution_makes_are_not_on_the_worst_path(family: str, seed: int) -> None:
    """Between the tests of a global word, functions store into frames at an unknown sp.

    Loops count in registers and in frames; a word is tested as a whole and by its bytes.
    """
    program = planted(family, seed)
    found = refined(program.elf, platform=program.platform)
    assert found.cycles < found.entry.cycles
    assert removed(program, found)
    for path in paths_of(found, 6, seed):
        assert not broken_exclusions(found, path)
