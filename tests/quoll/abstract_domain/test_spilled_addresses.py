"""Addresses of locals that are stored on some paths only: their targets are unknown."""

from __future__ import annotations

from itertools import product

import pytest

from tests.testing.harness.cases import in_turn
from tests.testing.values.executed import analysed, walk

ONE_PATH = """
volatile unsigned sink;
int main(unsigned a, unsigned b)
{
    unsigned n, *p;

    if (a)
        p = &n;
    n = 5;
    if (a)
        *p = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return 0;
}
"""
OTHER_VALUE = """
volatile unsigned sink;
unsigned elsewhere;
int main(unsigned a, unsigned b)
{
    unsigned n, *p;

    switch (a) {
    case 1: p = &n; break;
    case 2: p = &elsewhere; break;
    case 3: p = (unsigned *)b; break;
    }
    n = 5;
    if (a == 1)
        *p = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return 0;
}
"""
IN_A_LOOP = """
volatile unsigned sink;
int main(unsigned a, unsigned b)
{
    unsigned n, *p, *q;

    for (unsigned i = 0; i < 3; i++) {
        if (i == a)
            p = &n;
        n = 5;
        if (i > a && a < 3) {
            q = p;
            *q = b;
        }
        for (unsigned k = 0; k < n; k++)
            sink = k;
    }
    return 0;
}
"""
IN_AN_ARRAY = """
volatile unsigned sink;
unsigned elsewhere;
int main(unsigned a, unsigned b)
{
    unsigned n, *p[4];

    for (unsigned i = 0; i < 4; i++)
        p[i] = &elsewhere;
    p[a & 3] = &n;
    n = 5;
    *p[a & 3] = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return 0;
}
"""
BESIDE_AN_ARRAY = """
volatile unsigned sink;
int main(unsigned a, unsigned b)
{
    unsigned n, x[4], *volatile p = &n;

    x[a & 3] = 0;
    n = 5;
    *p = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return x[b & 3];
}
"""
IN_A_LARGE_ARRAY = """
volatile unsigned sink;
int main(unsigned a, unsigned b)
{
    unsigned n, *volatile p[512];

    p[a & 511] = &n;
    n = 5;
    *p[a & 511] = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return 0;
}
"""
BYTE_BY_BYTE = """
volatile unsigned sink;
int main(unsigned a, unsigned b)
{
    unsigned n, *volatile p = &n, *volatile q;

    for (unsigned i = 0; i < sizeof p; i++)
        ((volatile char *)&q)[i] = ((volatile char *)&p)[i];
    n = 5;
    *q = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return 0;
}
"""
UNALIGNED = """
volatile unsigned sink;
struct __attribute__((packed)) { char first; unsigned *p; } typedef volatile packed;
int main(unsigned a, unsigned b)
{
    unsigned n;
    packed in;

    in.p = &n;
    n = 5;
    *in.p = b;
    for (unsigned i = 0; i < n; i++)
        sink = i;
    return 0;
}
"""
SOURCES = [
    ONE_PATH,
    OTHER_VALUE,
    IN_A_LOOP,
    IN_AN_ARRAY,
    BESIDE_AN_ARRAY,
    IN_A_LARGE_ARRAY,
    BYTE_BY_BYTE,
    UNALIGNED,
]


@pytest.mark.slow("executes many random instruction sequences")
@pytest.mark.parametrize(
    ("compiled", "known"),
    in_turn(product(["-O0", "-O1", "-O2"], SOURCES), [*product([False, True], [False, True])]),
)
def test_what_is_written_through_a_spilled_address(
    compiled: tuple[str, str], known: tuple[bool, bool]
) -> None:
    optimise, source = compiled
    thumb, known_stack = known
    image, graph, values = analysed(source, thumb, optimise, known_stack)
    for a in range(4):
        walk(image, graph, values, [a, 40])
