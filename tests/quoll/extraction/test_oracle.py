"""The checks of the campaigns accept right graphs and refuse incomplete ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from campaigns.corpora import START
from campaigns.extraction import entries_of
from campaigns.extraction_listing import listing
from campaigns.extraction_oracle import Unreached, compare
from campaigns.extraction_pointers import Remaining, remaining
from campaigns.extraction_witness import MissedEdge, Walk, executed
from quoll.cfg.cfg import EdgeKind, Program
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.quoll.building import address, build

SOURCE = """
volatile int device;
__attribute__((noreturn, noinline)) void halt(void) { for (;;) device = 1; }
__attribute__((noinline)) int twice(int x) { return x ? 2 * x : 0; }
int (*handler)(int) = twice;
int main(void)
{
    int sum = 0;
    for (int i = 0, end = device + 12; i < end; i++)
        switch (i) {
        case 0: sum += twice(i); break;
        case 1: sum += handler(sum); break;
        case 2: sum ^= 5; break;
        case 3: device = sum; break;
        case 4: sum -= 3; break;
        case 6: sum *= 7; break;
        case 7: sum += device; break;
        case 40: halt();
        }
    if (sum == 12345)
        halt();
    return sum;
}
"""


@pytest.fixture(scope="module", params=[False, True], ids=["arm", "thumb"])
def path(request: pytest.FixtureRequest) -> Path:
    start = START.read_text()
    cpu = "cortex-a8" if request.param else "arm1136jf-s"
    return build(
        start + SOURCE,
        "-Wl,-e,_start,--section-start=.init=0x20000",
        "-w",
        thumb=request.param,
        cpu=cpu,
    )


def extracted(path: Path) -> tuple[Image, Program]:
    image = Image.load(path)
    stop = image.symbol("stop")
    assert stop is not None
    return image, extract(image, entries_of(image), exits=frozenset({stop.addr}))


def without_edge(program: Program, function: int, kind: EdgeKind) -> Program:
    """``program`` without the first edge of ``kind`` in ``function``."""
    cfg = program.functions[function]
    dropped = next(edge for edge in cfg.edges if edge.kind is kind)
    lacking = replace(cfg, edges=tuple(edge for edge in cfg.edges if edge != dropped))
    return replace(program, functions={**program.functions, function: lacking})


def test_a_complete_program_agrees_with_its_listing(path: Path) -> None:
    image, program = extracted(path)
    found = compare(image, program, listing(path))
    assert found.differences == []
    assert found.missed == 0
    assert found.instructions > 60
    assert found.branches > 10


def test_a_missing_function_is_seen(path: Path) -> None:
    image, program = extracted(path)
    twice = address(image, "twice")
    rest = {entry: cfg for entry, cfg in program.functions.items() if entry != twice}
    lacking = replace(
        program, functions={twice: replace(program.functions[twice], blocks=()), **rest}
    )
    found = compare(image, lacking, listing(path))
    assert found.unreached[Unreached.BRANCHED_TO] >= len(program.functions[twice].blocks[0].insns)


def test_a_wrong_target_is_seen(path: Path) -> None:
    image, program = extracted(path)
    lines = listing(path)
    call = next(line for line in lines.values() if line.is_call)
    lines[call.addr] = replace(call, target=call.addr)
    assert len(compare(image, program, lines).differences) == 1


def test_a_call_through_a_variable_remains(path: Path) -> None:
    image, program = extracted(path)
    assert [kind for kind, _ in remaining(image, program)] == [Remaining.CALL]


def test_an_execution_is_followed(path: Path) -> None:
    image, program = extracted(path)
    walk = Walk(program, address(image, "_start"))
    walk.follow(executed(path))
    assert walk.block.exits
    assert walk.instructions > 80
    assert walk.by_pointer == 1


@pytest.mark.parametrize("kind", [EdgeKind.INDIRECT, EdgeKind.ACROSS])
def test_an_execution_refutes_a_missing_edge(path: Path, kind: EdgeKind) -> None:
    image, program = extracted(path)
    main = address(image, "main")
    if kind is EdgeKind.ACROSS:
        cfg = program.functions[main]
        lacking = replace(cfg, edges=tuple(e for e in cfg.edges if e.kind is not kind))
        program = replace(program, functions={**program.functions, main: lacking})
    else:
        program = without_edge(program, main, kind)
    walk = Walk(program, address(image, "_start"))
    with pytest.raises(MissedEdge):
        walk.follow(executed(path))
