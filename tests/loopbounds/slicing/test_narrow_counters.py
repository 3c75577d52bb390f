"""Counters of a few bits, which wrap, and of 64 bits, which are two words."""

from __future__ import annotations

import pytest

from tests.testing.harness.cases import in_turn
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

# body of main(unsigned n): arguments of a longest execution, and executions of its body
WRAPPING = {
    "until 0": ("unsigned char x = 0; do { x += 3; sink = x; } while (x);", 0, 256),
    "until a number": ("unsigned char x = 1; while (x != 200) { x += 3; sink = x; }", 0, 237),
    "from any": ("unsigned char x = n; while (x != 17) { x += 7; sink = x; }", 24, 255),
    "ten bits": (
        "unsigned x = n & 1023; while (x != 5) { x = (x + 3) & 1023; sink = x; }",
        8,
        1023,
    ),
    "multiples": (
        "unsigned x = n & 252; while (x != 100) { x = (x + 12) & 255; sink = x; }",
        112,
        63,
    ),
    "a ring": (
        "unsigned h = n & 63, t = n >> 8 & 63; while (h != t) { h = (h + 3) & 63; sink = h; }",
        3,
        63,
    ),
    "no sum": ("unsigned char x = n; while (x != 77) { x = x * 5 + 1; sink = x; }", 130, 255),
    "a shift register": (
        "unsigned char x = 1; do { x = (x >> 1) ^ ((x & 1) * 0xb8); sink = x; } while (x != 1);",
        0,
        255,
    ),
}
LONG = {
    "from below 0": ("for (long long i = -50; i < 50; i++) sink = i;", 0, 100),
    "past a word": ("for (long long i = 0xffffffe0; i < 0x100000020; i += 2) sink = i;", 0, 32),
    "in large steps": (
        "for (unsigned long long i = 0; i < 0x1000000000; i += 0x10000000) sink = i;",
        0,
        256,
    ),
    "to below 0": ("for (long long i = n & 511; i >= 0; i -= 7) sink = i;", 511, 74),
    "to a limit": ("for (long long i = 0; i < (long long)(n & 63); i++) sink = i;", 63, 63),
    "shifted left": (
        "for (unsigned long long x = (unsigned long long)sink << 32 | n; x; x <<= 1) sink = x;",
        1,
        64,
    ),
}


def executed(body: str, argument: int, optimise: str, *, thumb: bool) -> tuple[int | None, int]:
    """The bound of the loop, and executions of its header."""
    source = f"volatile unsigned sink; int main(unsigned n) {{ {body} return 0; }}"
    path = build(source, "-fno-unroll-loops", optimise=optimise, thumb=thumb, cpu="cortex-a8")
    code = load(path)
    [bound] = code.bounds()
    return bound.bound, code.counts((argument,))[code.header(bound)]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("name", "state"), in_turn(WRAPPING, [("-O0", True), ("-O2", False), ("-Os", True)])
)
def test_words_that_wrap(name: str, state: tuple[str, bool]) -> None:
    """The bound equals the longest execution, from any initial state."""
    optimise, thumb = state
    body, argument, most = WRAPPING[name]
    bound, found = executed(body, argument, optimise, thumb=thumb)
    assert found in (most, most + 1)
    assert bound == found


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("name", "state"), in_turn(LONG, [("-O0", False), ("-O2", True), ("-Os", False)])
)
def test_words_of_64_bits(name: str, state: tuple[str, bool]) -> None:
    """The same, by carries from one word to the other."""
    optimise, thumb = state
    body, argument, most = LONG[name]
    bound, found = executed(body, argument, optimise, thumb=thumb)
    assert found in (most, most + 1)
    assert bound == found
