"""``wcet analyse`` where a loop has a name instead of a number, or nothing (rule 27)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ilp.constraints.parameters import loop_parameters, numbered, visits
from ilp.solvers.highs import Highs
from ilp.worst_case import worst_case
from loopbounds.proof.options import BoundOptions
from quoll.facts.located import locate
from quoll.facts.read import load
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse as run
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog
from wcet.cli import main

CODE = "-Wl,-Ttext=0xf0010000"
QUEUE = """\
struct item { struct item *next; unsigned value; };
unsigned table[8];
__attribute__((noinline)) unsigned drain(struct item *at) {
    unsigned sum = 0;
    while (at) {
        sum += at->value;
        at = at->next;
    }
    return sum;
}
unsigned wake(struct item *first, unsigned a) {
    if (a & 1) {
        unsigned x = a;
        for (unsigned i = 0; i < 8; i++) x += table[i];
        return x;
    }
    return drain(first);
}
unsigned plain(unsigned a) { return a * 3; }
unsigned main(struct item *first, unsigned a) { return wake(first, a) + plain(a); }
"""


ROWS = """\
struct item { struct item *next; unsigned value; };
struct item *rows[16];
__attribute__((noinline)) void drop(struct item **row) {
    struct item *first = *row;
    *row = first->next;
    first->value = 0;
}
unsigned main(void) {
    for (unsigned i = 0; i < 16; i++) {
        struct item **row = &rows[i];
        __asm__("" : "+r"(row));
        while (*row) {
            if ((*row)->value == 7) return i;
            __asm__ volatile(".global dropped\\ndropped:");
            drop(row);
        }
    }
    return 16;
}
"""


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(QUEUE, "-fno-inline", link=(CODE,))


def analyse(elf: Path, *more: object) -> dict[str, Any]:
    """The JSON of one run that succeeds."""
    out = elf.parent / "parametric.json"
    arguments = ["analyse", elf, "--platform", "kzm", "--quiet", "--solver", "highs", *more]
    assert main([str(a) for a in (*arguments, "--json", out)]) == 0
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def value(parametric: dict[str, Any], n: int) -> int:
    """The function at ``n``, as its documentation says."""
    (name,) = parametric["parameters"]
    for piece in parametric["pieces"]:
        if piece["first"] <= n and (piece["last"] is None or n <= piece["last"]):
            return int(piece["constant"] + piece["slopes"][name] * n)
    raise AssertionError(n)


def plain_bounds(elf: Path, facts: Path, values: Sequence[int], name: str = "wake") -> list[int]:
    """The bound of an entry for each value of the parameter, by plain solves."""
    options = AnalysisOptions(
        entries=(name,),
        platform="kzm",
        l2=None,
        facts=(facts,),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(),
    )
    result = run(elf, options, StageLog(verbose=False))
    entry = result.entries[name]
    parameters = loop_parameters(entry.graph, result.image, locate(load([facts]), result.image))
    return [
        worst_case(
            entry.graph,
            entry.costs,
            numbered(entry.bounds, parameters, {"waiting": n}),
            limits=visits(parameters, {"waiting": n}),
            solver=Highs(),
        ).solution.cycles
        for n in values
    ]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("plus", ["", " + 1"])
def test_the_function_is_never_below_the_plain_bound(
    elf: Path, tmp_path: Path, plus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 14 values, 0 among them: the same program solved with numbers; here it is equal.

    It is an upper bound: from hundreds of misses on, lines that are not dirty are evicted.
    """
    facts = tmp_path / "queue.facts"
    facts.write_text(f"loop prog.c:6 at most waiting{plus}  # as many as threads wait\n")
    chosen = ["--entry", "wake", "--facts", facts]
    entry = analyse(elf, *chosen)["entries"]["wake"]
    bound = entry["parametric"]
    assert (entry["cycles"], bound["exact"], bound["parameters"]) == (None, False, ["waiting"])
    assert bound["reason"] == "a write-back for each line cleaned or evicted"
    assert len(bound["pieces"]) == 2, "the table is the longer way while the queue is short"
    assert [loop for loop in entry["loops"] if loop["bound"] is None], "the loop has no number"
    values = (*range(0, 25, 3), *(31 + 40 * k for k in range(5)))
    assert [value(bound, n) for n in values] == plain_bounds(elf, facts, values)
    for n in (0, 40):
        plain = analyse(elf, *chosen, "--set", f"waiting={n}")["entries"]["wake"]
        assert (plain["parametric"], plain["cycles"]) == (None, value(bound, n))
    assert value(bound, bound["example"]["waiting"]) == bound["example_cycles"]
    (per_element,) = bound["cycles_per_iteration"]
    assert per_element["cycles"] == bound["pieces"][-1]["slopes"]["waiting"]
    capsys.readouterr()
    assert main(["analyse", str(elf), *map(str, chosen), "--platform", "kzm", "--quiet"]) == 0
    text = capsys.readouterr().out
    assert f"wake: {bound['text']}" in text
    row = next(line for line in text.splitlines() if line.startswith("wake  "))
    assert row.split() == ["wake", "f(waiting)", "a", "function,", "below"]
    shown = [line for line in text.splitlines() if f"{bound['example_cycles']:,}" in line]
    assert shown[0].startswith(f"  for waiting = {bound['example']['waiting']}: ")
    assert f"worst path of wake for waiting = {bound['example']['waiting']}" in text
    assert f"{per_element['cycles']:,} cycles per element in the loop" in text
    assert f"queue.facts:1: at most waiting{plus}" in text, "an assumption"


@pytest.mark.slow("several whole analyses")
def test_a_place_counted_on_the_whole_path_bounds_a_loop_in_a_loop(tmp_path: Path) -> None:
    """No product of the two loops: at every n as many items as rows together hold, and the scan."""
    elf = build(ROWS, "-fno-inline", link=(CODE,))
    facts = tmp_path / "rows.facts"
    facts.write_text("dropped executes at most waiting times\n")
    chosen = ["--entry", "main", "--facts", facts]
    bound = analyse(elf, *chosen)["entries"]["main"]["parametric"]
    assert (bound["exact"], bound["parameters"]) == (False, ["waiting"])
    (piece,) = bound["pieces"]
    slope = piece["slopes"]["waiting"]
    values = (0, 1, 17, 40, 100)
    plain = plain_bounds(elf, facts, values, "main")
    assert all(value(bound, n) >= p for n, p in zip(values, plain, strict=True))
    assert all(value(bound, n) <= p + slope for n, p in zip(values, plain, strict=True))
    assert plain[-1] - plain[-2] <= 60 * slope, "once for each item, not once for each row too"
    for n, p in zip((1, 40), (plain[1], plain[3]), strict=True):
        assert analyse(elf, *chosen, "--set", f"waiting={n}")["entries"]["main"]["cycles"] == p


@pytest.mark.slow("several whole analyses")
def test_an_exact_proof_wins_over_a_name(elf: Path, tmp_path: Path) -> None:
    facts = tmp_path / "table.facts"
    facts.write_text("loop prog.c:14 at most waiting + 1\nloop prog.c:6 at most 1\n")
    entry = analyse(elf, "--entry", "wake", "--facts", facts)["entries"]["wake"]
    assert (entry["parametric"], entry["cycles"] > 0) == (None, True)


@pytest.mark.slow("several whole analyses")
def test_two_lines_about_one_merged_loop_are_refused(
    elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "merged.facts"
    facts.write_text("loop prog.c:6 at most 5\nloop prog.c:7 at most waiting\n")
    arguments = ["analyse", str(elf), "--entry", "wake", "--facts", str(facts), "--quiet"]
    assert main([*arguments, "--platform", "kzm"]) == 4
    assert "the compiler has merged two loops" in capsys.readouterr().err


def test_the_other_entries_are_still_bounded(
    elf: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    arguments = ["analyse", str(elf), "--platform", "kzm", "--quiet", "--json", str(out)]
    assert main([*arguments, "--entry", "wake", "--entry", "plain"]) == 6
    printed = capsys.readouterr()
    document = json.loads(out.read_text())
    assert set(document["entries"]) == {"plain"}
    assert document["entries"]["plain"]["cycles"] > 0
    assert set(document["unbounded"]) == {"wake"}
    assert "plain" in printed.out
    assert "unbounded because of this loop: " in printed.err
    assert "cycles per element" in printed.err
    assert "at most N'" in printed.err, "the fact to add is spelled out"


def test_a_parameter_has_a_value_where_a_number_is_needed(
    elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "queue.facts"
    facts.write_text("loop prog.c:6 at most waiting\n")
    arguments = ["analyse", str(elf), "--entry", "wake", "--facts", str(facts), "--quiet"]
    for wrong in ("waiting", "waiting=-1", "waiting=x"):
        assert main([*arguments, "--set", wrong]) == 2
    assert main([*arguments, "--set", "wating=3"]) == 2
    assert "there are: waiting" in capsys.readouterr().err


@pytest.mark.slow("several whole analyses")
def test_a_count_with_a_number_is_listed_though_the_loop_has_a_proof() -> None:
    """The bound rested on the count, and the report did not say so: the loop was 'proved'."""
    elf = build(
        "unsigned table[8];\n"
        "unsigned main(unsigned a) {\n"
        "    for (unsigned i = 0; i < 8; i++) {\n"
        '        __asm__ volatile(".global passed\\npassed:");\n'
        "        a += table[i];\n"
        "    }\n"
        "    return a;\n"
        "}\n",
        optimise="-O1",
        link=(CODE,),
    )
    facts = elf.with_name("count.facts")
    facts.write_text("passed executes at most n times\n")
    more = ["--entry", "main", "--facts", facts, "--set"]
    some, all_of_them = (analyse(elf, *more, f"n={n}")["entries"]["main"] for n in (3, 8))
    assert some["cycles"] < all_of_them["cycles"]
    assert [loop["method"] for loop in some["loops"]] == ["execution"]
    assert f"loop bound by fact: {facts}:1: n in total, and n = 3" in some["assumptions"]
