"""States along the worst path through jump tables, and behind pointers whose bits are masked."""

from __future__ import annotations

import pytest

from tests.testing.wcet.planted_programs import built
from tests.testing.wcet.refined_runs import refined

pytestmark = pytest.mark.slow("refines whole programs")

WORK = """
#define NOINLINE __attribute__((noinline))
volatile unsigned sink[64];
NOINLINE void work(unsigned n) { for (unsigned i = 0; i < 12; i++) sink[i] += n; }
NOINLINE void other(unsigned n) { sink[n & 7] = n; }
"""
TABLE = """
unsigned main(unsigned a, unsigned b) {
    switch (a) {
    case 0: other(b); sink[3] = b; break;
    case 1: other(b + 1); other(b); break;
    case 2: sink[9] = b; other(a); break;
    case 3: other(b * 5); work(b); work(a); break;
    case 4: sink[10] = 4; other(b + 7); break;
    case 5: other(b ^ 1); sink[5] = 5; break;
    default: break;
    }
    return sink[a & 63];
}
"""
WINDOW = """
struct thread { unsigned first[16]; struct thread *peer; unsigned priority; unsigned rest[46]; };
struct thread *volatile current;
#define IN_WINDOW(p) ((struct thread *)(((unsigned)(p) | 0xf0000000u) & ~0x080000ffu))
unsigned main(unsigned a) {
    struct thread *me = IN_WINDOW(current);
    struct thread *you = IN_WINDOW(me->peer);
    if (you->priority < me->priority) work(a);
    return a;
}
"""


@pytest.mark.parametrize("source", [TABLE, WINDOW], ids=["table", "window"])
def test_a_state_takes_the_worst_path(source: str) -> None:
    elf = built(WORK + source, clang=False, thumb=False, cpu="arm1136jf-s", level="-O2")
    found = refined(elf)
    assert found.entry.seen is not None
    assert found.entry.seen.charged == found.cycles
