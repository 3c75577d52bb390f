"""Proofs and answers that are kept: found again, and asked again where they are not the same."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopbounds import bounds
from loopbounds.budgets.budget import Budget, ProcessLimits
from loopbounds.nusmv import nusmv_checker
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.proof import keys, rounds
from loopbounds.proof.bound import SMT
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.prove import ProofOutcome, prove_model
from loopbounds.proof.store import GraphBounds
from loopbounds.slicing.gated_ssa import GatedSsa
from loopbounds.slicing.slice import Slice, slice_loops
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from quoll.arm.insn import Remainder
from quoll.errors import FactsError
from quoll.facts.applied import AppliedGuidance, FunctionReplacement
from quoll.facts.count_facts import LoopFact
from quoll.facts.fact import FactSource
from quoll.facts.read import Facts
from quoll.intervals.strided_interval import ValueSet
from quoll.results.results_store import DIGEST, MAGIC, NOWHERE, ResultsStore, begin_run
from tests.testing.loopbounds.bounded import APART, GUARDED, function, only, stated
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

pytestmark = pytest.mark.slow("compiles programs and proves their loops again for each change")


def records(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of bounds of whole graphs, and of proofs."""
    found = sorted(folder.glob("*.quoll"))
    whole = [
        f
        for f in found
        if GraphBounds.__name__.encode() in zlib.decompress(f.read_bytes()[len(MAGIC) + DIGEST :])
    ]
    return whole, [f for f in found if f not in whole]


def test_proofs_are_stored_and_found_again(tmp_path: Path) -> None:
    """A second run gives the same answers without a solver, also where there is no bound."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=2, store=ResultsStore(tmp_path))
    first = code.bounds(options=options)
    assert [b.bound is None for b in first].count(True) == 1
    [bounds_of_graph], proofs = records(tmp_path)
    bounds_of_graph.unlink()
    kept = [ResultsStore(tmp_path).load(proof.stem, ProofOutcome).bound for proof in proofs]
    assert set(kept) == {b.bound for b in first}
    asked: list[str] = []
    again = code.bounds(options=options, progress=lambda done, of, place: asked.append(place))
    assert [replace(b, seconds=0) for b in again] == [replace(b, seconds=0) for b in first]
    assert not asked


def test_no_bound_within_a_budget_says_nothing_of_another(tmp_path: Path) -> None:
    code, asked = function("list"), []
    for seconds in (20, 21):
        options = BoundOptions(Budget(seconds=seconds), workers=1, store=ResultsStore(tmp_path))
        code.bounds(options=options, progress=lambda done, of, place: asked.append(place))
    assert len(asked) == 2


def edited(path: Path) -> bytes:
    """A record in which 37 was made 17, with everything else as it was."""
    data = path.read_bytes()
    start = len(MAGIC) + DIGEST
    return data[:start] + zlib.compress(zlib.decompress(data[start:]).replace(b"37", b"17"), 1)


@pytest.mark.parametrize("damage", [lambda _: b"", lambda _: b"[]", lambda _: b"\xff\xfe", edited])
def test_a_damaged_record_is_proved_again(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], bytes],
) -> None:
    """A corrupt file never changes the bound; a regression: an edited proof was believed."""
    begin_run()
    code = function("fixed")
    options = BoundOptions(Budget(seconds=20), workers=1, store=ResultsStore(tmp_path))
    code.bounds(options=options)
    [bounds_of_graph], proofs = records(tmp_path)
    for damaged in ([bounds_of_graph], [bounds_of_graph, *proofs]):
        for file in damaged:
            file.write_bytes(damage(file))
        begin_run()
        assert only(code.bounds(options=options)).bound == 37
        text = capsys.readouterr().err
        assert text.count("is corrupt") == text.count("\n") == 1


def test_cached_bounds_need_no_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of a whole graph are read from the cache, with models, if nothing changed."""
    code = function("masked")
    options = BoundOptions(Budget(seconds=20), workers=1, store=ResultsStore(tmp_path / "cache"))
    first = code.bounds(options=options)
    monkeypatch.setattr(rounds, "slice_loops", lambda *_: pytest.fail("sliced"))
    assert code.bounds(options=options) == first
    assert code.bounds(options=replace(options, models=tmp_path / "smv")) == first
    [model] = (tmp_path / "smv").glob("*.smv")
    assert "INVARSPEC NAME spec_" in model.read_text()


@pytest.mark.parametrize(
    "change",
    ["value", "budget", "s1", "code", "image", "solver", "search", "checker", "guidance", "nest"],
)
def test_answers_are_those_of_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Anything that the stage reads makes it slice again (rule 30)."""
    code = function("masked")
    options = BoundOptions(Budget(seconds=20), workers=1, store=ResultsStore(tmp_path))
    code.bounds(options=options)
    if change == "value":
        monkeypatch.setattr(type(code.values), "register", lambda *_: ValueSet(0, 77, 1))
    elif change == "budget":
        options = replace(options, budget=Budget(seconds=21))
    elif change == "s1":
        options = replace(options, s1=False)
    elif change == "code":
        monkeypatch.setattr(keys, "versions", lambda *folders: f"{folders} later")
    elif change == "image":
        monkeypatch.setattr(code.image, "sha256", "another")
    elif change == "guidance":
        replaced = {0x9000: FunctionReplacement(7, preserves=False, fact=None)}
        code.graph = replace(code.graph, guidance=AppliedGuidance(replaced=replaced))
    elif change == "nest":
        contexts = tuple(replace(context, nest=()) for context in code.graph.contexts)
        code.graph = replace(code.graph, contexts=contexts)
    elif change == "search":
        monkeypatch.setattr(
            "loopbounds.smt.smt_checker.package_version", lambda name: f"{name} later"
        )
    elif change == "checker":
        options = replace(options, checker=SMT)
    else:
        monkeypatch.setattr(nusmv_checker, "file_version", lambda solver: "later")
    sliced: list[int] = []
    real = slice_loops

    def counted(ssa: GatedSsa, loops: Sequence[int]) -> dict[int, Slice]:
        sliced.append(1)
        return real(ssa, loops)

    monkeypatch.setattr(rounds, "slice_loops", counted)
    code.bounds(options=options)
    assert sliced


@pytest.mark.parametrize(
    ("name", "line", "n"), [("masked", 8, 99), ("late", 18, 3), ("list", 13, 7)]
)
def test_another_number_in_a_fact_slices_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: int, n: int
) -> None:
    """Answers are kept without it, and it is set against them: as if all were found anew."""
    code = load(build(GUARDED, *APART), name) if name == "late" else function(name)
    options = BoundOptions(Budget(seconds=20), workers=1, store=ResultsStore(tmp_path))
    anew = code.bounds(stated(line, n), replace(options, store=NOWHERE))
    code.bounds(stated(line, n + 1), options)
    for module in (rounds, bounds):
        monkeypatch.setattr(module, "slice_loops", lambda *_: pytest.fail("sliced"))
    again = code.bounds(stated(line, n), options)
    assert [replace(b, seconds=0) for b in again] == [replace(b, seconds=0) for b in anew]


def test_a_kept_answer_does_not_hide_that_a_fact_is_refuted(tmp_path: Path) -> None:
    code = function("fixed")
    options = BoundOptions(Budget(seconds=20), workers=1, store=ResultsStore(tmp_path))
    assert only(code.bounds(options=options)).bound == 37
    with pytest.raises(FactsError, match=r"executed 37 times.*execution 37: "):
        code.bounds(stated(3, 36), options)
    assert only(code.bounds(options=options)).bound == 37


TRIANGLE = """volatile unsigned sink;
int main(unsigned a) {
    for (unsigned i = 0; i < (a & 31); i++)
        for (unsigned j = 0; j <= i; j++)
            sink = j;
    return 0;
}
"""


@pytest.mark.parametrize(("most", "kept"), [(28, True), (5, False)])
def test_a_total_is_dropped_where_a_fact_says_more(tmp_path: Path, most: int, kept: bool) -> None:
    """A few iterations of the outer loop have no more of the inner one than their product."""
    code = load(build(TRIANGLE, *APART, optimise="-O1"))
    options = BoundOptions(Budget(seconds=20), workers=1, store=ResultsStore(tmp_path))
    proved = code.bounds(options=options)
    [inner] = [b for b in proved if b.total is not None]
    outer = code.graph.loops[inner.loop].parent
    assert outer is not None
    place = f"{code.graph.nodes[code.graph.loops[outer].header].block.addr:#x}"
    facts = Facts((LoopFact(FactSource("my.facts", 7, place), place, most),))
    found = code.bounds(facts, options, called=True)
    assert found[outer].bound == most
    total = inner.total if kept else None
    assert found[inner.loop].total == total
    assert ("per entry of the loop around" in found[inner.loop].explained) == kept


def test_models_are_kept(tmp_path: Path) -> None:
    """Anyone can check a stored model again: it contains the proved property."""
    options = BoundOptions(Budget(seconds=20), workers=1, models=tmp_path)
    function("fixed").bounds(options=options)
    [model] = tmp_path.glob("*.smv")
    text = model.read_text()
    assert "INVARSPEC NAME spec_bounded := bounded;" in text
    checks = [InvariantQuery("bounded")]
    [answer] = nusmv.check_invariants(text, checks, ProcessLimits(), nusmv.find_solver())
    assert answer.verdict is InvariantVerdict.TRUE


ALIKE = """
volatile unsigned table[32];
unsigned main(unsigned n, unsigned k) {
    unsigned i = 0;
    if (k & 1)
        while (i < (n & 31) && table[i] * k != 77) i++;
    else
        while (i < (n & 31) && table[i] * k != 99) i++;
    return i;
}
"""


def test_loops_with_the_same_simple_model_share_its_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """They differ in a product, which a simple model leaves out."""
    asked: list[LoopModel] = []

    def counted(model: LoopModel, *others: Any) -> ProofOutcome:
        asked.append(model)
        return prove_model(model, *others)

    monkeypatch.setattr(rounds, "prove_model", counted)
    found = load(build(ALIKE)).bounds(options=BoundOptions(Budget(seconds=20), workers=0))
    assert [b.bound for b in found] == [31, 31]
    assert len(asked) == 1


def test_a_key_tells_which_instructions_leave_remainders() -> None:
    """They do in a context, by the words that its registers hold (rule 42)."""
    code = function("main")
    graph = code.graph
    first, *others = graph.nodes
    [*before, last] = first.block.insns
    marked = last._replace(remainder=Remainder(dividend=0, divisor=10, signed=False))
    block = replace(first.block, insns=(*before, marked))
    other = replace(graph, nodes=(replace(first, block=block), *others))
    found = {keys.graph_identity(one, code.image, code.values) for one in (graph, other)}
    assert len(found) == 2
