"""Merging of states: the merged state covers both, and the order agrees."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from quoll.abstract_domain.abstract_state import ENTRY_MODE, AbstractState, covered_by, merge
from quoll.abstract_domain.condition import TermComparison
from quoll.abstract_domain.terms import (
    MASK,
    RIGID,
    TAINTED,
    StatusWord,
    covers,
    shift_fact,
    union,
    widen_facts,
)
from quoll.intervals.interval_comparison import ComparisonOperator
from quoll.intervals.masked_words import MaskedWords
from quoll.intervals.strided_interval import ANY, ValueSet
from tests.testing.harness.cases import cases
from tests.testing.values.concretes import (
    differences,
    environment,
    random_fact,
    random_field,
    random_pair,
)


def check(seed: int, fields: int) -> Counter[str]:
    """Two states (or one twice) are merged, and each machine is looked for in the result.

    In half of the cases the symbols of both belong to the merged component, and must be renamed; in
    the other half they stay.
    """
    rng = random.Random(seed)
    around = environment()
    a, machine_a, rigid_a = random_pair(rng, around, fields)
    b, machine_b, rigid_b = random_pair(rng, around, fields)
    if rng.random() < 0.5:
        b, machine_b, rigid_b = a, machine_a, rigid_a
    owned = rng.random() < 0.5
    span = (0, 1) if owned else (1, 1)
    thresholds = [0, 100, 1 << 31] if rng.random() < 0.5 else None
    merged = merge(a, b, around.names, span, "test", thresholds)
    assert not differences(merged, machine_a, rigid_a, around.stacks)
    assert not differences(merged, machine_b, rigid_b, around.stacks)
    assert covered_by(a, merged)
    assert covered_by(b, merged)
    if owned:
        symbols = {t >> 32 for t in merged.registers if type(t) is int}
        first = {around.names.of(0, ("initial", slot)) for slot in range(4)}
        assert not symbols & first
    again = merge(merged, b, around.names, (1, 1) if not owned else (0, 1), "test", thresholds)
    assert covered_by(b, again)
    third, _, _ = random_pair(rng, around, fields)
    last = merge(merged, third, around.names, span, "again", thresholds)
    assert all(covered_by(state, last) for state in (a, b, merged, third))
    return _counted(a, b, merged)


def _counted(a: AbstractState, b: AbstractState, merged: AbstractState) -> Counter[str]:
    triples = zip(a.registers, b.registers, merged.registers, strict=True)
    kept = sum(x == y == z for x, y, z in triples)
    related = Counter(t >> 32 for t in merged.registers[:15] if type(t) is int and t >> 32 >= RIGID)
    return Counter(
        kept=kept,
        classes=sum(1 for n in related.values() if n > 1),
        cells=len(merged.frames) + len(merged.globals),
        covers=int(covered_by(merged, a)),
    )


@pytest.mark.slow("many random instruction sequences and states")
@pytest.mark.parametrize("fields", [0, 3])
def test_merge_covers_both(fields: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(cases(500)):
        counts += check(seed, fields)
    assert min(counts[what] for what in ("kept", "classes", "cells", "covers")) > 120


@pytest.mark.parametrize("thresholds", [None, [0, 1 << 31]])
def test_an_address_of_the_stack_keeps_its_mark(thresholds: list[int] | None) -> None:
    """The same symbol may be any word in one state and an address of the stack in the other."""
    around = environment()
    plain, _, _ = random_pair(random.Random(1), around)
    symbol = around.names.of(7, "shared")
    registers = (symbol << 32, *plain.registers[1:])
    unmarked = plain._replace(registers=registers)
    marked = unmarked._replace(facts={**plain.facts, symbol: TAINTED})
    for a, b in ((unmarked, marked), (marked, unmarked)):
        merged = merge(a, b, around.names, (1, 1), "test", thresholds)
        assert covered_by(a, merged)
        assert covered_by(b, merged)


def test_words_that_are_known_are_equal_whatever_they_are_called() -> None:
    """One of them is 0 because it was compared, another because it was loaded."""
    around = environment()
    compared, loaded, merged = (around.names.of(3, slot) for slot in ("a", "b", "c"))
    empty = random_pair(random.Random(1), around)[0]
    others = (0,) * 13 + (None,) * 6
    facts = {compared: ValueSet.of(0), loaded: ValueSet.of(0)}
    a = AbstractState((compared << 32, loaded << 32, *others), {}, {}, {}, facts)
    b = AbstractState((merged << 32, merged << 32, *others), {}, {}, {}, {})
    assert len(a.registers) == len(empty.registers)
    assert covered_by(a, b)
    assert not covered_by(a._replace(facts={compared: ValueSet.of(0)}), b)
    assert not covered_by(a._replace(facts={**facts, loaded: ValueSet.of(4)}), b)


def test_a_flag_with_one_value_in_both_states_is_known() -> None:
    """An instruction under ``ne`` clears the flag; where it is skipped, the flag was set before."""
    around = environment()
    symbol = around.names.of(3, "word")
    zero = TermComparison(ComparisonOperator.EQ, symbol << 32, 0)
    words = (symbol << 32, *(0,) * 14)
    skipped = AbstractState(
        (*words, *(zero,) * 4, None, None), {}, {}, {}, {symbol: ValueSet.of(0)}
    )
    executed = AbstractState((*words, *(True,) * 4, None, None), {}, {}, {}, {})
    merged = merge(skipped, executed, around.names, (1, 1), "test", None)
    assert merged.flags == (True,) * 4
    assert covered_by(skipped, merged)
    undecided = skipped._replace(facts={})
    assert not covered_by(undecided, merged)
    assert merge(undecided, executed, around.names, (1, 1), "test", None).flags == (None,) * 4


@pytest.mark.slow("many random values")
@pytest.mark.parametrize("thresholds", [None, [], [0, 100, 1 << 31]])
def test_facts_of_all_kinds_are_covered_by_their_union(thresholds: list[int] | None) -> None:
    rng = random.Random(1)
    masked = 0
    for _ in range(4000):
        field, other = random_field(rng)[0], shift_fact(random_fact(rng), rng.choice([0, 4, MASK]))
        status = StatusWord(rng.choice([ENTRY_MODE, 0x10]), rng.choice([ANY, random_field(rng)[0]]))
        a, b = rng.sample([field, other, random_field(rng)[0], status, status], 2)
        both = union(a, b) if thresholds is None else widen_facts(a, b, thresholds)
        assert covers(both, a), (a, b, both)
        assert covers(both, b), (a, b, both)
        masked += isinstance(a, MaskedWords)
    assert masked > 1000


def test_order_is_not_everything() -> None:
    """States that miss a machine do not cover the state of that machine."""
    told_apart = 0
    for seed in range(cases(200)):
        rng = random.Random(seed)
        around = environment()
        a, machine, rigid = random_pair(rng, around)
        b, _, _ = random_pair(rng, around)
        if differences(b, machine, rigid, around.stacks):
            assert not covered_by(a, b)
            told_apart += 1
    assert told_apart > 100


@pytest.mark.slow("many random instruction sequences and states")
@pytest.mark.parametrize("fields", [0, 3])
@pytest.mark.parametrize("owned", [False, True])
def test_widening_ends(owned: bool, fields: int) -> None:
    for seed in range(cases(5)):
        rng = random.Random(seed)
        around = environment()
        state, _, _ = random_pair(rng, around, fields)
        span = (0, 1) if owned else (1, 1)
        changes = 0
        for _ in range(200):
            other, _, _ = random_pair(rng, around, fields)
            wider = merge(state, other, around.names, span, "test", [0, 1 << 31])
            changes += not covered_by(wider, state)
            state = wider
        assert changes < 100
