"""Programs whose accesses are followed are charged the misses that they can have, and not less."""

from __future__ import annotations

import pytest

from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound, check

START = """
__attribute__((naked)) int main(void) {
    asm("ldr r3, =0xf0200000; mov sp, r3; push {r4, lr}; bl work; pop {r4, pc}; .ltorg");
}
"""
PROGRAMS = {
    "sorted by distances": """static int v[64];
int work(void) {
    for (int i = 0; i < 64; i++) v[i] = (i * 29) & 63;
    for (int gap = 32; gap > 0; gap /= 2)
        for (int i = gap; i < 64; i++) {
            int t = v[i], j;
            for (j = i; j >= gap && v[j - gap] > t; j -= gap) v[j] = v[j - gap];
            v[j] = t;
        }
    return v[10];
}
""",
    "inputs decide": """volatile unsigned char data[64];
static unsigned v[32];
int work(void) {
    for (int i = 0; i < 32; i++) v[i] = data[i];
    for (int i = 0; i < 31; i++)
        for (int j = 0; j < 31 - i; j++)
            if (v[j] > v[j + 1]) { int t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; }
    return v[3];
}
""",
    "an array many times": """static volatile int table[32];
int work(void) {
    int s = 0;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) s += table[j];
    return s;
}
""",
}
CPUS = {"kzm": "arm1136jf-s", "cubieboard": "cortex-a8"}


@pytest.mark.slow("whole analyses, each replayed from several states")
@pytest.mark.parametrize("platform", CPUS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_misses_are_charged_as_often_as_possible(name: str, platform: str) -> None:
    source, cpu = PROGRAMS[name] + START, CPUS[platform]
    elf = build(source, "-fno-builtin", optimise="-O2", cpu=cpu, link=(CODE,))
    result = bound(elf, platform)
    for case in check(result, 7, inputs=2, states=3):
        assert case.charged <= 2 * case.most


INSERTION = """int data[24];
static struct { int key; signed char next; } nodes[24];
int work(void) {
    int first = -1;
    for (int i = 0; i < 24; i++) {
        int before = -1, at = first;
        for (int steps = 0; at >= 0 && steps < 24 && nodes[at].key < data[i]; steps++) {
            before = at;
            at = nodes[at].next;
        }
        nodes[i].key = data[i];
        nodes[i].next = at;
        if (before < 0) first = i; else nodes[before].next = i;
    }
    return first;
}
"""


@pytest.mark.slow("a whole analysis, replayed from several states")
def test_indices_that_inputs_choose_miss_each_line_once() -> None:
    elf = build(INSERTION + START, "-fno-builtin", optimise="-Os", link=(CODE,))
    for case in check(bound(elf), 7, inputs=2, states=3):
        assert case.charged <= 4 * case.most


REMAINDER = """volatile unsigned data[4];
int work(void) {
    int s = 0;
    for (int i = 0; i < 4; i++)
        for (unsigned n = data[i] % 1000; n >= 365 + (i == 1); n -= 365) s++;
    return s;
}
"""


@pytest.mark.slow("a whole analysis, replayed from several states")
def test_a_remainder_limits_a_loop() -> None:
    """The compiler multiplies by a reciprocal."""
    elf = build(REMAINDER + START, "-fno-builtin", optimise="-O2", link=(CODE,))
    for case in check(bound(elf), 7, inputs=2, states=3):
        assert case.bound <= 3 * case.most
