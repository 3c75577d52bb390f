"""All pure operations of p-code: every column agrees with the concrete one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from loopbounds.budgets.budget import ProcessLimits, StepLimits
from loopbounds.nusmv.model_text import smv_text
from loopbounds.nusmv.nusmv_run import check_invariants, find_solver
from loopbounds.slicing.op_terms import OP_TERMS
from loopbounds.smt.solver import SmtResult, SmtSolver
from loopbounds.smt.translation import SmtTranslation
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import FALSE, Term, const, sym
from loopbounds.terms.evaluate import evaluate as value_of
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from quoll.intervals.strided_interval import ValueSet, progression
from quoll.semantics.operations import OPERATIONS, ResultSize, evaluate
from quoll.semantics.ops import Op, OpCode, temp
from quoll.semantics.ops import const as constant
from quoll.semantics.simplify_ops import simplify

DRAWS = 40  # operands of each operation
EFFECTS = {
    OpCode.LOAD, OpCode.STORE, OpCode.DISCARD, OpCode.RETRANSLATE, OpCode.BRANCH,
    OpCode.CBRANCH, OpCode.GOTO, OpCode.TRAP, OpCode.UNKNOWN, OpCode.BANK,
}  # fmt: skip
SHIFTS = {OpCode.INT_LEFT, OpCode.INT_RIGHT, OpCode.INT_SRIGHT}
NO_TERM = {OpCode.INT_SDIV}


class Drawn(NamedTuple):
    """An operation on words: sizes are in bytes."""

    code: OpCode
    values: tuple[int, ...]
    sizes: tuple[int, ...]
    out: int

    @property
    def result(self) -> int:
        return evaluate(self.code, list(self.values), list(self.sizes), self.out)

    def term(self, *inputs: Term) -> Term | None:
        return OP_TERMS[self.code](inputs[0], inputs[-1], 8 * self.out)


def sizes_of(code: OpCode, chance: random.Random) -> tuple[tuple[int, ...], int]:
    row, size = OPERATIONS[code], chance.choice([1, 2, 4, 8])
    if row.on_truths:
        return (1,) * row.inputs, 1
    if code in SHIFTS:
        return (size, chance.choice([1, 4])), size
    if code is OpCode.PIECE:
        return (min(size, 4),) * 2, 2 * min(size, 4)
    if code is OpCode.SUBPIECE:
        return (size, 4), chance.randint(1, size)
    if row.result is ResultSize.ANY:
        return (size,), chance.choice([s for s in (1, 2, 4, 8) if s >= size])
    return (size,) * row.inputs, 1 if row.result is ResultSize.TRUTH else size


def word(size: int, chance: random.Random) -> int:
    ones = (1 << 8 * size) - 1
    near = chance.choice([0, ones, ones >> 1, (ones >> 1) + 1]) + chance.randint(-2, 2)
    return chance.choice([near, chance.getrandbits(8 * size), chance.randint(0, 40)]) & ones


def drawn() -> Iterator[Drawn]:
    for code, row in OPERATIONS.items():
        chance = random.Random(code.name)
        for _ in range(DRAWS):
            sizes, out = sizes_of(code, chance)
            values = [chance.randint(0, 1) if row.on_truths else word(s, chance) for s in sizes]
            if code is OpCode.SUBPIECE:
                values[1] = chance.randint(0, sizes[0] - out)
            yield Drawn(code, tuple(values), sizes, out)


def test_every_operation_has_every_column() -> None:
    assert set(OPERATIONS) == set(OpCode) - EFFECTS
    assert set(OP_TERMS) == set(OPERATIONS)
    assert {case.code for case in drawn()} == set(OPERATIONS)


def test_folding() -> None:
    for case in drawn():
        inputs = tuple(map(constant, case.values, case.sizes))
        result = temp(0, case.out)
        ops = [Op(case.code, result, inputs), Op(OpCode.STORE, None, (constant(0), result))]
        [store] = simplify(ops)
        assert store.ins[1] == constant(case.result, case.out), case


def around(value: int, size: int, chance: random.Random) -> ValueSet:
    """A strided interval with ``value``."""
    stride = chance.choice([1, 2, 3, 8])
    below = chance.randint(0, min(value // stride, 5))
    above = chance.randint(0, min(((1 << 8 * size) - 1 - value) // stride, 5))
    return progression(value - below * stride, value + above * stride, stride)


def test_strided_intervals() -> None:
    chance = random.Random(1)
    for case in drawn():
        row = OPERATIONS[case.code]
        sets = [around(v, s, chance) for v, s in zip(case.values, case.sizes, strict=True)]
        if row.on_truths:
            sets = [chance.choice([ValueSet.of(v), ValueSet(0, 1, 1)]) for v in case.values]
        if case.code is OpCode.SUBPIECE:
            sets[1] = ValueSet.of(case.values[1])
        found = row.intervals(sets[0], sets[-1], 8 * case.sizes[0], 8 * case.out)
        assert case.result in found, (case, sets, found)


def test_terms_of_constants() -> None:
    """The simplifier and the operation give the same value."""
    missing = set()
    for case in drawn():
        inputs = [const(v, 8 * s) for v, s in zip(case.values, case.sizes, strict=True)]
        term = case.term(*inputs)
        if term is None:
            missing.add(case.code)
            assert case.code in NO_TERM or inputs[-1].constant == 0
        else:
            assert (term.constant, term.width) == (case.result, 8 * case.out), case
    assert missing <= NO_TERM | {OpCode.INT_DIV, OpCode.INT_REM, OpCode.INT_SREM}


def symbolic(case: Drawn) -> tuple[Term, dict[Term, int]] | None:
    """The term over symbols, and their values; a part and a divisor stay constant."""
    number, inputs, values = hash(case) & 0xFFFFFFFF, list[Term](), dict[Term, int]()
    fixed = case.code in (OpCode.SUBPIECE, OpCode.INT_DIV, OpCode.INT_REM, OpCode.INT_SREM)
    for place, (value, size) in enumerate(zip(case.values, case.sizes, strict=True)):
        if fixed and place == 1:
            inputs.append(const(value, 8 * size))
            continue
        narrow = OPERATIONS[case.code].on_truths
        symbol = sym(f"v{place}_{number}", 1 if narrow else 8 * size)
        values[symbol] = value
        inputs.append(terms.zext(symbol, 8 * size))
    term = case.term(*inputs)
    return None if term is None else (term, values)


def test_evaluated_terms() -> None:
    for case in drawn():
        if (found := symbolic(case)) is not None:
            assert value_of(*found) == case.result, case


def claims() -> Iterator[tuple[OpCode, dict[Term, int], Term]]:
    """One claim for each operation with a term: the term has the concrete value."""
    seen = set()
    for case in drawn():
        found = symbolic(case) if case.code not in seen else None
        if found is not None and found[0].constant is None:
            seen.add(case.code)
            yield case.code, found[1], terms.eq(found[0], const(case.result, 8 * case.out))
    assert seen == set(OPERATIONS) - NO_TERM


def test_smt() -> None:
    for code, values, claim in claims():
        solver = SmtSolver()
        names = {s: solver.symbol(s.name, s.width) for s in values}
        known = [terms.eq(s, const(v, s.width)) for s, v in values.items()]
        formulas = SmtTranslation(solver, names).of([*known, terms.negate(claim)])
        assert solver.check(formulas, StepLimits()).result is SmtResult.UNSAT, code


@pytest.mark.slow("NuSMV proves each term")
def test_smv() -> None:
    everything = list(claims())
    symbols = {s: v for _, values, _ in everything for s, v in values.items()}
    known = tuple(terms.eq(s, const(v, s.width)) for s, v in symbols.items())
    model = LoopModel(tuple(symbols), (), (), known, FALSE)
    properties = [(code.name.lower(), claim) for code, _, claim in everything]
    queries = [InvariantQuery(name) for name, _ in properties]
    text = smv_text(model, properties)
    results = check_invariants(text, queries, ProcessLimits(), find_solver())
    wrong = {q.name for q, r in zip(queries, results, strict=True)
             if r.verdict is not InvariantVerdict.TRUE}  # fmt: skip
    assert not wrong
