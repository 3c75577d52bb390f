"""Facts against recorded executions: every form, obeyed and violated, with positions (rule 28)."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quoll.extraction.extract import extract
from quoll.facts.control_flow_facts import ReturnsFact
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.trace import End, Execution, Trace
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import address, build
from tests.testing.quoll.recordings import written
from tests.testing.quoll.sketch import assemble
from tests.testing.wcet.programs import run
from wcet.cli import main
from wcet.executions.fact_check import FactRecord, check_facts, gone_elsewhere
from wcet.executions.path_replay import by_path

PATHS = 20  # of each entry

PROGRAM = """\
unsigned table[64];
unsigned work(unsigned a) {
    unsigned x = 0;
    for (unsigned i = 0; i < (a & 7); i++)
        x += table[i];
    return x;
}
unsigned other(unsigned a) { return table[a & 63]; }
unsigned both(unsigned a) {
    unsigned x = work(a);
    if (a & 8)
        x += other(a);
    return x;
}
unsigned main(unsigned a) {
    unsigned x = both(a);
    if (a & 16)
        x += both(a >> 1);
    return x;
}
"""
CODE = "-Wl,-Ttext=0xf0010000"


@pytest.fixture(scope="module")
def image() -> Image:
    return Image.load(build(PROGRAM, "-fno-inline", link=(CODE,)))


@pytest.fixture(scope="module")
def trace(image: Image) -> Trace:
    """The interpreter's executions of ``main`` with 60 seeds."""
    main = image.symbol("main")
    assert main is not None
    executions = []
    for seed in range(60):
        pcs, _ = run(image, main.addr, Random(seed))
        words = memoryview(np.array(pcs, "u4").tobytes()).cast("I")
        executions.append(Execution(words, np.empty((0, 3), np.uint32), End.OUTSIDE))
    return Trace(0, 0, 0, tuple(executions))


def graph_of(image: Image, text: str) -> Supergraph:
    facts = locate(parse(text, "my.facts"), image)
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr], facts)
    return guided_in_contexts(expand(program, main.addr, image), image, facts)


def checked(image: Image, trace: Trace, text: str) -> list[FactRecord]:
    facts = locate(parse(text, "my.facts"), image)
    graph = graph_of(image, text)
    entry = graph.contexts[0].function
    records, judged = check_facts(image, facts, {entry: graph}, "t.trace", trace)
    assert judged == 60
    return records


def counts(image: Image, trace: Trace, name: str) -> list[int]:
    """How often a function was entered, execution by execution, from the addresses alone."""
    symbol = image.symbol(name)
    assert symbol is not None
    return [list(e.pcs).count(symbol.addr) for e in trace.executions]


def test_totals(image: Image, trace: Trace) -> None:
    seen = counts(image, trace, "other")
    assert set(seen) == {0, 1, 2}
    for most in range(3):
        (record,) = checked(image, trace, f"other executes at most {most} times")
        assert record.broken == sum(n > most for n in seen)
        # "at most 0" counts as reached in every execution that could have entered the function.
        assert record.reached == (sum(n > 0 for n in seen) if most else len(seen))
    (record,) = checked(image, trace, "other never executes")
    first = next(i for i, n in enumerate(seen) if n)
    symbol = image.symbol("other")
    assert symbol is not None
    assert record.first.startswith(f"t.trace, execution {first + 1}, 0x")
    assert f"it goes on at {image.place(symbol.addr)}" in record.first


def test_what_is_passed_over_refutes_nothing(image: Image, trace: Trace) -> None:
    """``work`` executes as often as ``both``, but a fact replaces it: no node counts it."""
    stated = "both is consistent with work in both\nfunction work takes at most 9999 cycles"
    assert [record.broken for record in checked(image, trace, stated)] == [0, 0]


@pytest.mark.parametrize("allowed", [0, 3, 8])
def test_lists(image: Image, trace: Trace, allowed: int) -> None:
    """More rounds than the stated length allows refute it."""
    facts = locate(parse("list at prog.c:4 has at most 9 elements", "my.facts"), image)
    loop = locate(parse(f"loop prog.c:4 at most {allowed or 1}", "x"), image)
    graph = graph_of(image, "")
    [header] = {graph.nodes[loop.header].block.addr for loop in graph.loops}
    address = graph.contexts[0].function
    walks = {address: {header: allowed}}
    [record], _ = check_facts(image, facts, {address: graph}, "t", trace, walks=walks)
    [rounds], _ = check_facts(image, loop, {address: graph}, "t", trace)
    assert record.most == rounds.most
    assert record.reached == rounds.reached
    assert bool(record.broken) is ((record.most or 0) > allowed)
    assert record.broken == rounds.broken or not allowed


def test_within_an_invocation(image: Image, trace: Trace) -> None:
    obeyed = "\n".join(
        [
            "other executes at most 1 times in both",
            "both is consistent with work in both",
            "count(work) - count(other) >= 0 in both",
            "2*count(other) + count(both) <= 3 in both",
            "count(both) = count(work) in main",
            "other executes at most 2 times in main",
        ]
    )
    assert [r.broken for r in checked(image, trace, obeyed)] == [0] * 6
    seen = counts(image, trace, "other")
    violated = [
        ("other executes at most 1 times in main", sum(n > 1 for n in seen)),
        ("other conflicts with both in both", sum(n > 0 for n in seen)),
        ("count(other) = 0 in both", sum(n > 0 for n in seen)),
        ("3*count(other) <= 5 in main", sum(n > 1 for n in seen)),
        ("count(other) >= 1 in main", sum(n == 0 for n in seen)),
        ("count(both) >= 2", sum(n < 2 for n in counts(image, trace, "both"))),
    ]
    for text, broken in violated:
        (record,) = checked(image, trace, text)
        assert record.broken == broken > 0, text


def test_loops(image: Image, trace: Trace) -> None:
    (record,) = checked(image, trace, "loop prog.c:5 at most 7")
    assert (record.broken, record.most) == (0, 7)
    (record,) = checked(image, trace, "loop prog.c:5 at most 4")
    assert record.broken > 0
    assert record.first.endswith(" rounds")
    (record,) = checked(image, trace, "loop prog.c:5 at most n")
    assert (record.broken, record.most) == (0, 7), "a parameter is whatever it takes"


@pytest.mark.parametrize(
    "text", ["ignore other", "require other", "function work takes at most 1 cycles"]
)
def test_guidance(image: Image, trace: Trace, text: str) -> None:
    (record,) = checked(image, trace, text)
    assert record.broken > 0
    assert "refutes" in record.first


def test_a_function_that_returns_after_all(image: Image, trace: Trace) -> None:
    (record,) = checked(image, trace, "other never returns")
    assert record.broken == sum(n > 0 for n in counts(image, trace, "other"))


def test_a_return_to_somewhere_else() -> None:
    text = "main: bl f\n nop\n nop\n b main\nf: add lr, lr, #4\nback: bx lr\n"
    image = assemble(text)
    begin, f = address(image, "main"), address(image, "f")
    facts = locate(parse("back returns to its caller", "my.facts"), image)
    (fact,) = facts.facts
    assert isinstance(fact, ReturnsFact)
    assert gone_elsewhere(facts, fact, [begin, f, f + 4, begin + 4, begin + 8]) is None
    assert gone_elsewhere(facts, fact, [begin, f, f + 4, begin + 8]) == 3
    assert gone_elsewhere(facts, fact, [begin, f, f + 4]) is None


def test_the_kernel_and_its_record(
    kernel: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line: exit status, and labels in later analyses."""
    facts = tmp_path / "my.facts"
    facts.write_text(
        "resolve.h:38 executes at most 32 times in cspace_resolve\n"
        "cspace_resolve executes at most 1 times\n"
        "region code from 0xF0010000 to 0xF0010FFF is read-only\n"
        "slot_empty never executes in syscall_receive when called from reply_receive\n"
        "message_transfer never executes in endpoint_send when called from fault_raise\n"
    )
    out, some = tmp_path / "result.json", tmp_path / "tests.trace"
    by_entry = by_path(Trace.read(recording)).values()
    paths = [path for of_entry in by_entry for path in spread(of_entry, PATHS)]
    some.write_bytes(written([execution for path in paths for execution in path]))
    more = ["--facts", str(facts), "--quiet", "--json", str(out)]
    checked = ["check-facts", str(kernel), str(some), *more]
    assert main(checked) == 1
    found = json.loads(out.read_text())["facts"]
    constraints = [f for f in found if "never executes in" in f["fact"]]
    assert len(constraints) >= 2
    assert all(f["violations"] == 0 for f in constraints)
    text = {f["fact"].split(" ")[0]: f for f in found}
    assert text["resolve.h:38"]["label"].startswith("survived ")
    assert text["resolve.h:38"]["reached"] > 100
    assert text["cspace_resolve"]["label"] == "violated"
    assert "instruction" in text["cspace_resolve"]["first_violation"]
    assert text["region"]["label"].startswith("survived ")
    loops = [f for name, f in text.items() if name == "loop"]
    assert all(f["violations"] == 0 for f in loops)
    capsys.readouterr()
    assert main(["analyse", str(kernel), "--entry", "interrupt", *more]) == 0
    labels = json.loads(out.read_text())["fact_labels"]
    mine = [f["label"] for f in labels if f["source"].startswith(str(facts))]
    assert mine[0] == text["resolve.h:38"]["label"]
    assert mine[1].startswith("violated: tests.trace, execution ")
    printed = capsys.readouterr()
    assert "survived" in printed.out
    assert "is violated" in printed.err


def test_facts_about_memory(image: Image, trace: Trace) -> None:
    """Accesses test facts about pointers, unknown addresses and read-only regions, not caches."""
    main, other = (image.symbol(name) for name in ("main", "other"))
    assert main is not None
    assert other is not None
    facts = parse(
        "region data from 0x80000000 to 0x8FFFFFFF is cached\n"
        "region fixed from 0x90000000 to 0x9FFFFFFF is read-only\n"
        "accesses of unknown address point into data\n"
        "access at main points into data\n"
        "access at other points into data\n",
        "my.facts",
    )
    unknown = frozenset([other.addr])
    rows = ((main.addr, 0x80000000, 4), (other.addr, 0x90000000, 4 | 1 << 8))
    executions = []
    for ran in trace.executions:
        first = {pc: position for position, pc in reversed(list(enumerate(ran.pcs)))}
        words = [(first[pc], addr, info) for pc, addr, info in rows if pc in first]
        executions.append(Execution(ran.pcs, np.array(words, np.uint32), ran.end))
    graph = graph_of(image, "")
    records, _ = check_facts(
        image, locate(facts, image), {graph.contexts[0].function: graph}, "t.trace",
        Trace(0, 0, 0, tuple(executions)), unknown,
    )  # fmt: skip
    calls = sum(n > 0 for n in counts(image, trace, "other"))
    assert [r.reached for r in records] == [0, calls, calls, 60, calls]
    assert [r.broken for r in records] == [0, calls, calls, 0, calls]
    assert ": access of 0x90000000" in records[1].first


def test_initial_contents_are_refuted_by_what_stored_there_before(
    image: Image, trace: Trace
) -> None:
    main = image.symbol("main")
    assert main is not None
    facts = parse(
        f"region code from {main.addr:#x} to {main.addr + 64:#x} is cached\n"
        "region code holds its initial contents at main\n",
        "my.facts",
    )
    graph = graph_of(image, "")
    reached = []
    for at in (main.addr + 64, main.addr + 65, main.addr - 4):
        words = np.array([(0, at, 4 | 1 << 8)], np.uint32)
        nothing = np.empty((0, 3), np.uint32)
        executions = tuple(
            Execution(ran.pcs, words if number == 1 else nothing, ran.end)
            for number, ran in enumerate(trace.executions)
        )
        records, judged = check_facts(
            image, locate(facts, image), {graph.contexts[0].function: graph}, "t.trace",
            Trace(0, 0, 0, executions),
        )  # fmt: skip
        reached.append((records[1].reached == judged, records[1].broken, judged))
    count = reached[0][2]
    assert reached == [(True, count - 2, count), (True, 0, count), (True, 0, count)]
