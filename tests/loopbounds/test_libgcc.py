"""Software division and soft float of libgcc, as the cross compiler links them."""

from __future__ import annotations

import random

import pytest

from quoll.facts.read import parse
from tests.testing.harness.cases import spread
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

SOURCE = """
unsigned divided(unsigned a, unsigned b) { return a / b; }
int divided_signed(int a, int b) { return a / b; }
float divided_float(float a, float b) { return a / b; }
float times_float(float a, float b) { return a * b; }
double times_double(double a, double b) { return a * b; }
double divided_double(double a, double b) { return a / b; }
unsigned long long counted_float(float a) { return (unsigned long long)a; }
unsigned long long divided_long(unsigned long long a, unsigned long long b) { return a / b; }
float power(float a, int b) { return __builtin_powif(a, b); }
int main(void) { return 0; }
"""

WORDS = (0, 1, 2, 3, 7, 8, 0x7F_FFFF, 0x80_0000, 0xF_FFFF, 0x1FFF_FFFF, 0x7FFF_FFFF, 0x8000_0001)


def arguments(count: int) -> list[tuple[int, ...]]:
    """Extremes, and random words of random length."""
    chance = random.Random(1)
    corners = [*WORDS, *(~w & 0xFFFF_FFFF for w in WORDS)]
    found = [tuple(chance.choice(corners) for _ in range(count)) for _ in range(100)]
    found += [(a, b, *(0,) * (count - 2)) for a in corners for b in WORDS]
    lengths = [[chance.randint(1, 32) for _ in range(count)] for _ in range(100)]
    return found + [tuple(map(chance.getrandbits, bits)) for bits in lengths]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("function", "words", "bounds"),
    spread(
        [
            ("__divsi3", 2, [7, 4, 8]),  # by four places, by one, and back
            ("__udivsi3", 2, [7, 4, 8]),
            ("__muldf3", 4, [52, 52]),  # denormal operands are shifted until they are normal
            ("__mulsf3", 2, [23, 23]),
            ("__divdf3", 4, [52, 52, 13]),  # four bits of the quotient at a time, in two words
            ("__divsf3", 2, [23, 23, 6]),
        ],
        2,
    ),
)
def test_shifting_loops(function: str, words: int, bounds: list[int]) -> None:
    """No execution exceeds a bound, and each is reached."""
    code = load(build(SOURCE, cpu="arm7tdmi", link=("-lgcc",)), function)
    found = code.bounds()
    assert [b.bound for b in found] == bounds
    most = dict.fromkeys(map(code.header, found), 0)
    for given in arguments(words):
        for header, count in code.counts(given).items():
            most[header] = max(most[header], count)
    assert [most[code.header(b)] for b in found] == bounds


@pytest.mark.slow("NuSMV proves each bound")
def test_flags_that_a_condition_chooses() -> None:
    """The remainder goes on while two comparisons say so, of which the first may skip the other."""
    link = ("-Wl,-u,__modsi3", "-lgcc")
    code = load(build(SOURCE, cpu="arm7tdmi", link=link), "__modsi3")
    found = code.bounds()
    assert [b.bound for b in found] == [8, 4, 8]
    counts = [code.counts(words) for words in arguments(2)]
    for bound in found:
        executed = max(count[code.header(bound)] for count in counts)
        assert bound.bound is not None
        assert bound.bound - 1 <= executed <= bound.bound


@pytest.mark.slow("NuSMV proves each bound")
# With a table of leading zeros; clz.
@pytest.mark.parametrize("cpu", spread(["arm7tdmi", "arm946e-s"], 1))
def test_divisions_of_double_words(cpu: str) -> None:
    """As often as the divisor has more leading zeros: dividend and divisor are compared before."""
    code = load(build(SOURCE, cpu=cpu, link=("-lgcc",)), "__udivmoddi4")
    (found,) = code.bounds()
    assert found.bound == 64
    given = [*arguments(4), (0xFFFF_FFFF, 0x7FFF_FFFF, 1, 0), (0xFFFF_FFFF, 0xFFFF_FFFF, 1, 0)]
    executed = max(code.counts(words)[code.header(found)] for words in given)
    assert 62 <= executed <= 64


@pytest.mark.slow("NuSMV proves each bound")
def test_what_an_inner_loop_shifts_bounds_the_loop_around_it() -> None:
    """The exponent of a power is halved by both: the inner one halves it any number of times."""
    code = load(build(SOURCE, cpu="arm7tdmi", link=("-lgcc",)), "__powisf2")
    graph = code.graph
    headers = {loop.header for loop in graph.loops if graph.nodes[loop.header].context}
    others = {graph.nodes[header].block.addr for header in headers}
    stated = "".join(f"loop {header:#x} at most 99\n" for header in sorted(others))
    found = code.bounds(parse(stated, "callees.facts"))
    assert [b.bound for b in found if graph.loops[b.loop].parent is None][:1] == [32]


@pytest.mark.slow("NuSMV proves each bound")
def test_a_context_that_is_too_large() -> None:
    """The operands of a conversion's multiplication need many terms: one call suffices."""
    code = load(build(SOURCE, cpu="arm7tdmi", link=("-lgcc",)), "__aeabi_f2ulz")
    assert [b.bound for b in code.bounds()] == [52] * 4
