"""Words that a branch leaves: all for which its condition holds, with the condition by flags."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from loopbounds.execution.branch_relation import DECIDED, branch_relation, limited
from loopbounds.execution.value import ConcreteValue
from loopbounds.execution.word_range import WordRange, range_of, word_of
from quoll.arm.decode import decode
from quoll.arm.insn import Condition
from quoll.semantics.lift import lift
from quoll.semantics.ops import const, general
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

WORD = 1 << 32
FULL = WordRange(0, WORD - 1)
ENDS = (0, 1, 5, 40, 0x7FFFFFFE, 0x80000000, 0xFFFFFFFE)
BEQ, BGT = "0x0a000007", "0xca000007"


def holds(condition: Condition, a: int, b: int) -> bool:
    """By the flags of ``cmp a, b`` (ARM ARM A8.3)."""
    difference = (a - b) % WORD
    n, z, c = difference >> 31, difference == 0, a >= b
    v = ((a ^ b) & (a ^ difference)) >> 31
    basic = (z, c, n == 1, v == 1, c and not z, n == v, n == v and not z)[condition >> 1]
    return basic if condition & 1 == 0 else not basic


def drawn(random: Random) -> WordRange:
    low, stride = random.choice(ENDS) + random.randrange(-4, 5), random.choice([0, 1, 1, 2, 4])
    return WordRange(low, low + stride * random.choice([1, 2, 9]), stride)


def words(of: WordRange) -> list[int]:
    return [word % WORD for word in range(of.low, of.high + 1, of.stride or 1)]


def ends(of: list[int]) -> set[int]:
    return {of[0], of[-1]}


def test_no_word_is_lost() -> None:
    empty = 0
    for seed in range(cases(20_000)):
        random = Random(seed)
        condition, a, b = random.choice(sorted(DECIDED)), drawn(random), drawn(random)
        found = limited(condition, a, b)
        right = [(x, y) for x in words(a) for y in words(b) if holds(condition, x, y)]
        empty += found is None
        if found is None:
            assert not right, (condition, a, b)
            continue
        left = [set(words(one)) for one in found]
        assert all(x in left[0] and y in left[1] for x, y in right), (condition, a, b, found)
    assert empty > cases(20_000) // 20


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (["0xe1530001", BGT], (Condition.GT, general(3), general(1))),  # cmp r3, r1
        (["0xe352003c", BGT], (Condition.GT, general(2), const(0x3C))),  # cmp r2, #60
        (["0xe2511001", BEQ], (Condition.EQ, general(1), const(0))),  # subs r1, r1, #1
        (["0xe2511001", BGT], None),
        (["0xe1530001", "0xe0833001", BGT], None),  # add r3, r3, r1
        (["0xe1530001", "0xe0822001", BGT], (Condition.GT, general(3), general(1))),
        (["0xe1530001", "0x01510000", BEQ], (Condition.EQ, general(1), general(0))),  # cmpeq r1, r0
        (["0xe1530001", "0xc1510000", BEQ], None),  # cmpgt r1, r0
    ],
)
def test_the_relation_of_a_branch(code: list[str], expected: object) -> None:
    insns = [decode(int(c, 16).to_bytes(4, "little"), 0x8000, False, ()) for c in code]
    found = branch_relation(insns, list(map(lift, insns)))
    assert (found and (found.condition, found.a, found.b)) == expected


CHAINS = {
    "both hold": ("cmp r0, r1; cmplo r2, r3; blo 1f", Condition.CC, Condition.CC),
    "neither holds": ("cmp r0, r1; cmpne r2, r3; beq 1f", Condition.NE, Condition.EQ),
    "a number": ("cmp r0, #5; cmpgt r2, r3; ble 1f", Condition.GT, Condition.LE),
    "moved between": ("cmp r0, r1; mov r4, r0; cmpls r2, r3; bls 1f", Condition.LS, Condition.LS),
}


@pytest.mark.parametrize("name", CHAINS)
def test_no_word_is_lost_of_two_comparisons(name: str) -> None:
    text, first, last = CHAINS[name]
    head = ".syntax unified\n.arm\n.global main\n.type main, %function\nmain: "
    graph = load(build(f"{head}{text}\n nop\n 1: bx lr\n", language="asm")).graph
    block = graph.nodes[graph.entry].block
    relation = branch_relation(block.insns, list(map(lift, block.insns)))
    assert relation is not None
    assert relation.earlier is not None
    fewer = 0
    for seed in range(cases(5_000)):
        random = Random(seed)
        ranges = [drawn(random) for _ in range(4)]
        ranges[1] = WordRange(5, 5, 0) if "#5" in text else ranges[1]
        registers: list[ConcreteValue] = [word_of(r.low, r.high, r.stride, 4) for r in ranges]
        registers += [None] * 21
        for taken in (False, True):
            found = relation.limited(registers, taken=taken)
            left = [
                set(words(range_of((found or {}).get(i, word), 4) or FULL))
                for i, word in enumerate(registers[:4])
            ]
            fewer += bool(found)
            for a, b, c, d in product(*(ends(words(r)) for r in ranges)):
                second = holds(first, a, b)
                way = holds(last, c, d) if second else holds(last, a, b)
                if way is taken:
                    assert found is not None
                    assert all(x in y for x, y in zip((a, b, c, d), left, strict=True))
    assert fewer > cases(5_000) // 10
