"""Facts against proofs, the store, workers, and what is said when there is no bound."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loopbounds import keys, nusmv, rounds
from loopbounds.bound import LoopBound
from loopbounds.bounds import BoundOptions
from loopbounds.nusmv import Answer, Check, Limits, Verdict
from loopbounds.prove import Budget
from loopbounds.scopes import Scopes
from loopbounds.slice import Slice
from quoll.errors import FactsError
from quoll.facts import Facts, LoopFact, Source
from quoll.guidance import Guidance, Replacement
from quoll.valueset import ValueSet
from tests.loopbounds.counting import Program, load
from tests.quoll.building import build

CHILD = nusmv.CHILD
SOURCE = """volatile int sink;
int fixed(void) {
    for (int i = 0; i < 37; i++)
        sink = i;
    return 0;
}
int masked(unsigned n) {
    for (unsigned i = 0; i < (n & 63); i++)
        sink = i;
    return 0;
}
int list(unsigned *p) {
    for (; p; p = (unsigned *)*p)
        sink = 1;
    return 0;
}
int main(void) { return fixed() + masked(sink) + list((unsigned *)sink); }
"""


GUARDED = """volatile unsigned sink;
int open(unsigned n) {
    if (n > 20) return 1;
    for (unsigned i = 0; i < n; i++) sink = i;
    return 0;
}
int checked(unsigned n) {
    if (sink != 3 || n > 20) return 1;
    for (unsigned i = 0; i < n; i++) sink = i;
    return 0;
}
int bounded(unsigned *n) {
    for (unsigned i = 0; i < (*n & 31); i++) sink = i;
    return 0;
}
int late(unsigned n) {
    while (sink) ;
    for (unsigned i = 0; i < (n & 15); i++) sink = i;
    return 0;
}
int main(void) { return open(sink) + checked(sink) + bounded((unsigned *)&sink) + late(sink); }
"""
APART = ("-fno-unroll-loops", "-fno-inline", "-fno-ipa-icf", "-fno-partial-inlining")
LINES = {"open": 4, "checked": 9, "bounded": 13, "late": 18}


def function(name: str) -> Program:
    flags = ("-fno-inline", "-fno-ipa-cp", "-fno-unroll-loops")
    return load(build(SOURCE, *flags), name)


def stated(line: int, bound: int) -> Facts:
    place = f"prog.c:{line}"
    text = f"loop {place} at most {bound}"
    return Facts((LoopFact(Source("my.facts", 7, text), place, bound),))


def only(bounds: tuple[LoopBound, ...]) -> LoopBound:
    [bound] = bounds
    return bound


def test_a_looser_fact_loses_to_the_proof() -> None:
    """The proved bound is used, and labelled as proved."""
    bound = only(function("fixed").bounds(stated(3, 1000)))
    assert (bound.bound, bound.exact, bound.method) == (37, True, "nusmv")


def test_a_fact_below_the_only_execution_is_refuted() -> None:
    """The error names the fact's line and shows the trace."""
    with pytest.raises(FactsError, match=r"my\.facts:7: .*executed 37 times.*execution 37: ") as e:
        function("fixed").bounds(stated(3, 36))
    assert e.value.hint == "state at least 37, or remove the fact"


def test_a_fact_below_what_some_arguments_give_is_refuted() -> None:
    """Registers at the entry may hold any word: the error says which ones, and what to state."""
    message = r"my\.facts:7: .*executed 63 times, not at most 9, where the path begins with r0 = 0x"
    with pytest.raises(FactsError, match=message) as e:
        function("masked").bounds(stated(8, 9))
    assert e.value.hint is not None
    assert "state at least 63, or what it may begin with: 'register r0 at 0x" in e.value.hint


@pytest.mark.parametrize("name", ["checked", "bounded", "late"])
def test_what_arguments_cannot_reach_is_not_refuted(name: str) -> None:
    """Conditions on the way in, and words that the program reads, are no arguments."""
    *_, bound = load(build(GUARDED, *APART), name).bounds(stated(LINES[name], 12))
    assert (bound.bound, bound.method) == (12, "fact")


def test_a_guarded_loop_is_refuted_by_arguments_that_pass() -> None:
    """The guard is part of the counterexample."""
    code = load(build(GUARDED, *APART), "open")
    with pytest.raises(FactsError, match="executed 20 times, not at most 12") as e:
        code.bounds(stated(LINES["open"], 12))
    [value] = re.findall(r"r0 = (0x[0-9a-f]+)", str(e.value))
    assert code.counts((int(value, 16), 0)) == {code.header(code.bounds()[0]): 20}


def test_a_tighter_fact_that_may_hold_is_an_assumption() -> None:
    """Some arguments exceed it, but callers decide which occur."""
    bound = only(function("masked").bounds(stated(8, 9), called=True))
    assert (bound.bound, bound.exact, bound.method) == (9, None, "fact")
    assert bound.evidence.startswith("my.facts:7 (assumed, not proved; proved is 6")


def test_a_fact_for_what_cannot_be_proved() -> None:
    """The list's length is an assumption."""
    bound = only(function("list").bounds(stated(13, 12)))
    assert (bound.bound, bound.method) == (12, "fact")
    assert bound.evidence == "my.facts:7 (assumed, not proved)"


def test_a_loop_without_a_bound_says_what_to_add() -> None:
    """The value that is unbounded is named, and the line of the fact is given."""
    bound = only(function("list").bounds())
    assert bound.bound is None
    assert "nothing bounds the word that 'ldr " in bound.reason
    assert "add 'loop prog.c:1" in bound.reason


def test_a_fact_about_no_loop_is_refused() -> None:
    """A reached line outside every loop is an error; a line of other code is not."""
    with pytest.raises(FactsError, match=r"my\.facts:7: 'prog\.c:6' is in no loop"):
        function("fixed").bounds(stated(6, 3))
    assert only(function("fixed").bounds(stated(13, 3))).bound == 37


def test_proofs_are_stored_and_found_again(tmp_path: Path) -> None:
    """A second run gives the same answers without a solver, also where there is no bound."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=2, cache=tmp_path)
    first = code.bounds(options=options)
    assert [b.bound is None for b in first].count(True) == 1
    [answers] = tmp_path.glob("*.answers.json")
    answers.unlink()
    bounds = [json.loads(proof.read_text())["bound"] for proof in tmp_path.glob("*.json")]
    assert set(bounds) == {b.bound for b in first}
    asked: list[str] = []
    again = code.bounds(options=options, progress=lambda done, of, place: asked.append(place))
    assert [replace(b, seconds=0) for b in again] == [replace(b, seconds=0) for b in first]
    assert not asked


def test_no_bound_within_a_budget_says_nothing_of_another(tmp_path: Path) -> None:
    code, asked = function("list"), []
    for seconds in (20, 21):
        options = BoundOptions(Budget(seconds=seconds), workers=1, cache=tmp_path)
        code.bounds(options=options, progress=lambda done, of, place: asked.append(place))
    assert len(asked) == 2


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"bound": 3}', '{"bound": "3", "reached": 1, "relations": 0, "seconds": 0}'],
)
def test_a_damaged_store_is_asked_again(tmp_path: Path, damage: str) -> None:
    """Whatever is in a file, the bound is the proved one."""
    code = function("fixed")
    options = BoundOptions(Budget(seconds=20), workers=1, cache=tmp_path)
    code.bounds(options=options)
    answers, *proofs = sorted(tmp_path.glob("*.json"), key=lambda f: "answers" not in f.name)
    assert {json.loads(proof.read_text())["bound"] for proof in proofs} == {37}
    answers.write_text(damage)
    assert only(code.bounds(options=options)).bound == 37
    for file in (answers, *proofs):
        file.write_text(damage)
    assert only(code.bounds(options=options)).bound == 37


def test_answers_are_found_without_slicing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of a whole graph is read, models included, as long as nothing changed."""
    code = function("masked")
    options = BoundOptions(Budget(seconds=20), workers=1, cache=tmp_path / "cache")
    first = code.bounds(options=options)
    monkeypatch.setattr(rounds, "slice_loops", lambda *_: pytest.fail("sliced"))
    assert code.bounds(options=options) == first
    assert code.bounds(options=replace(options, models=tmp_path / "smv")) == first
    [model] = (tmp_path / "smv").glob("*.smv")
    assert "INVARSPEC NAME spec_" in model.read_text()


@pytest.mark.parametrize("change", ["value", "budget", "s1", "code", "image", "solver", "guidance"])
def test_answers_are_those_of_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Anything that the stage reads makes it slice again (rule 30)."""
    code = function("masked")
    options = BoundOptions(Budget(seconds=20), workers=1, cache=tmp_path)
    code.bounds(options=options)
    if change == "value":
        monkeypatch.setattr(type(code.values), "register", lambda *_: ValueSet(0, 77, 1))
    elif change == "budget":
        options = replace(options, budget=Budget(seconds=21))
    elif change == "s1":
        options = replace(options, s1=False)
    elif change == "code":
        monkeypatch.setattr(keys, "_code_version", lambda folder: f"{folder} later")
    elif change == "image":
        monkeypatch.setattr(code.image, "sha256", "another")
    elif change == "guidance":
        replaced = {0x9000: Replacement(7, preserves=False, fact="f takes at most 7 cycles")}
        code.graph = replace(code.graph, guidance=Guidance(replaced=replaced))
    else:
        monkeypatch.setattr(keys, "_solver_version", lambda solver: "later")
    sliced: list[int] = []
    real = rounds.slice_loops

    def counted(scopes: Scopes, loops: Sequence[int]) -> dict[int, Slice]:
        sliced.append(1)
        return real(scopes, loops)

    monkeypatch.setattr(rounds, "slice_loops", counted)
    code.bounds(options=options)
    assert sliced


@pytest.mark.parametrize(
    ("name", "line", "n"), [("masked", 8, 99), ("late", 18, 3), ("list", 13, 7)]
)
def test_a_fact_that_nothing_refutes_slices_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: int, n: int
) -> None:
    """The answers without it are kept, and it is set against them: as if all were found anew."""
    code = load(build(GUARDED, *APART), name) if name == "late" else function(name)
    options = BoundOptions(Budget(seconds=20), workers=1, cache=tmp_path)
    anew = code.bounds(stated(line, n), replace(options, cache=None))
    code.bounds(options=options)
    monkeypatch.setattr(rounds, "slice_loops", lambda *_: pytest.fail("sliced"))
    again = code.bounds(stated(line, n), options)
    assert [replace(b, seconds=0) for b in again] == [replace(b, seconds=0) for b in anew]


def test_a_kept_answer_does_not_hide_that_a_fact_is_refuted(tmp_path: Path) -> None:
    code = function("fixed")
    options = BoundOptions(Budget(seconds=20), workers=1, cache=tmp_path)
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
    options = BoundOptions(Budget(seconds=20), workers=1, cache=tmp_path)
    proved = code.bounds(options=options)
    [inner] = [b for b in proved if b.total is not None]
    outer = code.graph.loops[inner.loop].parent
    assert outer is not None
    place = f"{code.graph.nodes[code.graph.loops[outer].header].block.addr:#x}"
    facts = Facts((LoopFact(Source("my.facts", 7, place), place, most),))
    found = code.bounds(facts, options, called=True)
    assert found[outer].bound == most
    total = inner.total if kept else None
    assert found[inner.loop].total == total
    assert ("per entry of the loop around" in found[inner.loop].evidence) == kept


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("body", ["os.kill(os.getpid(), signal.SIGKILL)", "print('is true')"])
def test_a_failing_solver_bounds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, workers: int
) -> None:
    """Each loop is 'solver failed', also with a fact: no other number than before."""
    solver = tmp_path / "NuSMV"
    solver.write_text(f"#!{sys.executable}\nimport os, signal\n{body}\n")
    solver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    options = BoundOptions(Budget(seconds=20), workers=workers, cache=tmp_path / "cache")
    for bound in function("main").bounds(stated(3, 40), options):
        assert bound.bound is None
        assert bound.failed
    assert not list(tmp_path.glob("cache/*"))


KILLER = """import os, random, signal, subprocess, sys
with open({counter!r}, "ab") as counter:
    counter.write(b".")
    asked = counter.tell()
chance = random.Random({seed} * 1000 + asked)
arguments = sys.argv[1:]
if chance.random() < 0.1:
    arguments[0] = str(1 << 24)
run = subprocess.run([sys.executable, "-I", "-S", {child!r}, *arguments], capture_output=True)
if chance.random() < 0.1:
    sys.stdout.buffer.write(run.stdout[: chance.randrange(len(run.stdout) + 1)])
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdout.buffer.write(run.stdout)
sys.stderr.buffer.write(run.stderr)
sys.exit(run.returncode if run.returncode >= 0 else 1)
"""


def test_a_solver_killed_at_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any part of its output, or out of memory: the same number, or 'failed'."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=1)
    wanted = [b.bound for b in code.bounds(options=options)]
    survived = failed = 0
    for seed in range(6):
        killer = tmp_path / f"killer{seed}.py"
        counter = str(tmp_path / f"asked{seed}")
        killer.write_text(KILLER.format(seed=seed, child=str(CHILD), counter=counter))
        monkeypatch.setattr(nusmv, "CHILD", killer)
        for bound, number in zip(code.bounds(options=options), wanted, strict=True):
            lost = bound.bound is None and bound.reason.startswith("solver failed")
            assert lost or bound.bound == number
            failed += lost
            survived += bound.bound is not None
    assert failed > 1
    assert survived > 1


NESTED = """volatile unsigned sink;
int main(unsigned a, volatile unsigned *p) {
    unsigned i, j;
    for (i = 0; i < 20; i++)
        for (j = 0; j <= i; j++)
            sink = j;
    for (i = 0; i < (a & 31); i++)
        sink = i;
    for (; i < 40; i += 3)
        sink = i;
    for (i = 0; i < ((*p << (*p & 3)) & 7); i++)
        sink = i;
    return 0;
}
"""


def test_a_solver_that_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever query it is: each loop has the same bound and total as ever, or 'failed'.

    There is a total here, a loop that begins where another one ends, and one whose simple model
    says too little.
    """
    code = load(build(NESTED, optimise="-O1"))
    options = BoundOptions(Budget(seconds=20), workers=1)
    asked, real = [0], nusmv.ask
    fails_at = 0

    def failing(
        model: str, checks: Sequence[Check], limits: Limits, solver: Path
    ) -> tuple[Answer, ...]:
        asked[0] += 1
        if asked[0] == fails_at:
            return tuple(Answer(Verdict.FAILED, reason="killed") for _ in checks)
        return real(model, checks, limits, solver)

    monkeypatch.setattr(nusmv, "ask", failing)
    wanted = [(b.bound, b.total) for b in code.bounds(options=options)]
    assert {total is None for _, total in wanted} == {True, False}
    queries, failed = asked[0], 0
    for fails_at in range(1, queries + 1):
        asked[0] = 0
        for bound, numbers in zip(code.bounds(options=options), wanted, strict=True):
            assert bound.failed or (bound.bound, bound.total) == numbers, fails_at
            failed += bound.failed
    assert failed >= queries


def test_without_a_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored keeps its number; the rest says that NuSMV is missing."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=1)
    monkeypatch.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    for bound in code.bounds(options=options):
        assert bound.bound is None
        assert "NuSMV is missing" in bound.reason


def test_models_are_kept(tmp_path: Path) -> None:
    """Anyone can check a kept model again: it says what was proved."""
    options = BoundOptions(Budget(seconds=20), workers=1, models=tmp_path)
    function("fixed").bounds(options=options)
    [model] = tmp_path.glob("*.smv")
    text = model.read_text()
    assert "INVARSPEC NAME spec_all := all;" in text
    checks = [nusmv.Check("all")]
    [answer] = nusmv.ask(text, checks, nusmv.Limits(), nusmv.find_solver())
    assert answer.verdict is nusmv.Verdict.TRUE


SAVED = """.global main
main: push {r4, r5, r6, lr}
  sub sp, sp, #16
  and r4, r0, #3
  add r5, sp, #0
  add r6, r5, r4, lsl #2
fill: cmp r5, r6
  beq filled
  ldr r0, [r1], #4
  str r0, [r5], #4
  b fill
filled: ldr r6, [sp]
  and r5, r2, #31
  mov r4, #0
count: cmp r4, r5
  beq done
  mov r0, r6
  bl store
  add r4, r4, #1
  b count
done: add sp, sp, #16
  pop {r4, r5, r6, pc}
store: push {r4, r5, r6, lr}
  cmp r1, #0
  beq stored
  str r1, [r0]
stored: pop {r4, r5, r6, pc}
"""


@pytest.mark.parametrize(("stored", "bound"), [("ldr r0, [r1], #4", 32), ("add r0, sp, #8", None)])
def test_a_word_from_an_array_on_the_stack(stored: str, bound: int | None) -> None:
    """It is a stack address only if one is put into the array: S1 speaks of the other (rule 1)."""
    code = load(build(SAVED.replace("ldr r0, [r1], #4", stored), language="asm"))
    assert [b.bound for b in code.bounds()] == [4, bound]


FRAMED = """.global main
main: push {r4, r11, lr}
  add r11, sp, #0
  sub sp, sp, #8
  and r0, r0, #31
  str r0, [r11, #-4]
again: ldr r0, [r11, #-4]
  cmp r0, #0
  beq done
  sub r0, r0, #1
  str r0, [r11, #-4]
  sub r3, r11, #8
  str r1, [r3]
  add r2, r11, #0
  and r3, r1, #16
  bl leaf
  b again
done: add sp, r11, #0
  pop {r4, r11, pc}
leaf: str r11, [sp, #-4]!
  add r11, sp, #0
  sub sp, sp, #12
  str r0, [r11, #-8]
  LEAF
  ldr r0, [r11, #-8]
  add sp, r11, #0
  ldr r11, [sp], #4
  bx lr
"""


@pytest.mark.parametrize(
    ("leaf", "bound"),
    [
        ("nop", 32),
        ("str r1, [r4]", 32),
        ("str r1, [r2, #-12]", None),
        ("str r1, [r2, -r3]", None),
        ("strb r1, [r2, #-9]", None),
        ("strne r1, [r2, #-12]", None),
        ("str r1, [r2, #-4]", None),
    ],
)
def test_a_frame_pointer_that_functions_save(leaf: str, bound: int | None) -> None:
    """It is kept where nothing may hit the word that it is saved in (S1 spares that, rule 1)."""
    code = load(build(FRAMED.replace("LEAF", leaf), language="asm"))
    assert [b.bound for b in code.bounds()] == [bound]


def test_without_s1_a_saved_frame_pointer_is_lost() -> None:
    """A store of unknown address may hit the word that it is saved in."""
    code = load(build(FRAMED.replace("LEAF", "str r1, [r4]"), language="asm"))
    options = BoundOptions(Budget(seconds=20), workers=1, s1=False)
    assert [b.bound for b in code.bounds(options=options)] == [None]
