"""Results of ops on ranges, and hulls of ranges, hold for every word of the ranges."""

from __future__ import annotations

from random import Random

from loopbounds.execution.word_range import RULES, WordRange, hull, of_ranges
from quoll.semantics.operations import OPERATIONS, ResultSize, evaluate
from quoll.semantics.ops import OpCode
from tests.testing.harness.cases import cases

ENDS = (0, 0, 1, 2, 3, 7, 31, 127, 128, 255, 256, 32767, 65535, 1 << 31, (1 << 32) - 1, 1 << 33)
AMOUNTS = (OpCode.INT_LEFT, OpCode.INT_RIGHT, OpCode.INT_SRIGHT)


def drawn(random: Random, size: int) -> WordRange | int | None:
    modulus = 1 << 8 * size
    kind = random.randrange(5)
    if kind == 0:
        return None
    low = random.choice(ENDS) * random.choice([1, -1]) + random.randrange(-3, 4)
    if kind == 1:
        return low % modulus
    stride, count = random.choice([1, 1, 2, 3, 4, 8, 10, 256]), random.choice([1, 2, 5, 40, 3000])
    high = low + stride * count
    return WordRange(low, high, stride) if high - low < modulus - 1 else None


def member(random: Random, of: WordRange | int | None, size: int) -> int:
    modulus = 1 << 8 * size
    if isinstance(of, int):
        return of
    if of is None:
        return (random.choice(ENDS) + random.randrange(-2, 3)) % modulus
    steps = (of.high - of.low) // of.stride
    step = random.choice([0, steps, random.randint(0, steps)])
    return (of.low + step * of.stride) % modulus


def holds(found: WordRange | int | None, word: int, size: int) -> bool:
    if not isinstance(found, WordRange):
        return found in (None, word)
    distance = (word - found.low) % (1 << 8 * size)
    return distance <= found.high - found.low and distance % found.stride == 0


def test_ops_on_ranges() -> None:
    told = 0
    for seed in range(cases(20_000)):
        random = Random(seed)
        code = random.choice(list(RULES))
        size = random.choice([1, 2, 4, 4, 4, 8])
        row = OPERATIONS[code]
        out = {ResultSize.SAME: size, ResultSize.TRUTH: 1}.get(row.result, 4)
        sizes = [size] * row.inputs
        if code in (OpCode.INT_ZEXT, OpCode.INT_SEXT):
            out = max(out, size)
        values = [drawn(random, size) for _ in sizes]
        if code in AMOUNTS:
            amounts = (0, 1, 3, 8, 31, 32, 40)
            values[1] = random.choice(amounts) if seed % 3 else WordRange(1, 3)
        if code is OpCode.SUBPIECE:
            out = random.randint(1, size)
            values[1] = random.randint(0, size - out)
        found = of_ranges(code, tuple(values), tuple(sizes), out)
        told += found is not None
        for _ in range(5):
            words = [member(random, value, size) for value in values]
            right = evaluate(code, words, sizes, out)
            assert holds(found, right, out), (seed, code, values, words, found, right)
    assert told > cases(20_000) // 4


def test_hulls() -> None:
    assert hull(0xFFFFFFFF, 3) == WordRange(-1, 3, 4)
    assert hull(4, WordRange(8, 16, 4)) == WordRange(4, 16, 4)
    for seed in range(cases(4000)):
        random = Random(seed)
        one, other = drawn(random, 4), drawn(random, 4)
        if one == other:
            continue
        found = hull(one, other)
        for value in (one, other):
            word = member(random, value, 4)
            assert holds(found, word, 4), (one, other, word, found)


def test_limits() -> None:
    for seed in range(cases(4000)):
        random = Random(seed)
        held, limit = drawn(random, 4), drawn(random, 4)
        if isinstance(held, WordRange) and isinstance(limit, WordRange) and limit.low >= 0:
            if limit.high >= 1 << 32:
                continue
            found = held.within(limit)
            for _ in range(5):
                word = member(random, held, 4)
                if limit.low <= word <= limit.high:
                    assert holds(found, word, 4), (held, limit, word, found)
