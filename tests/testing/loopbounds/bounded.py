"""Programs whose loops have bounds of every sort, and facts about them."""

from __future__ import annotations

from loopbounds.proof.bound import LoopBound
from quoll.facts.count_facts import LoopFact
from quoll.facts.fact import FactSource
from quoll.facts.read import Facts
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import build

__all__ = ["APART", "GUARDED", "LINES", "function", "only", "stated"]

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
    return Facts((LoopFact(FactSource("my.facts", 7, text), place, bound),))


def only(bounds: tuple[LoopBound, ...]) -> LoopBound:
    [bound] = bounds
    return bound
