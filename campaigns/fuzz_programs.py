"""Small programs to damage: ARM and Thumb, with and without symbols and sections."""

from __future__ import annotations

import subprocess
from functools import cache

from tests.testing.quoll.building import build

__all__ = ["programs"]

SOURCE = """
typedef unsigned u32;
volatile u32 device;
static u32 (*const handlers[])(u32);
__attribute__((noreturn, noinline)) void halt(u32 why) { for (;;) device = why; }
__attribute__((noinline)) u32 twice(u32 x) { return x * 2; }
__attribute__((noinline)) u32 count(u32 x) { u32 n = 0; while (x) { x &= x - 1; n++; } return n; }
static u32 (*const handlers[])(u32) = {twice, count, twice, count};
u32 choose(u32 which, u32 x)
{
    switch (which) {
    case 0: return twice(x);
    case 1: return count(x) + 1;
    case 2: device = x; break;
    case 3: device = 2 * x; return x ^ 5;
    case 4: x = device; break;
    case 5: halt(x);
    case 7: return handlers[x & 3](x);
    }
    return x;
}
u32 main(void)
{
    u32 sum = 0;
    for (u32 i = 0; i < 9; i++)
        for (u32 j = i; j; j--)
            sum += choose(i, j);
    if (sum == 77)
        halt(sum);
    return sum;
}
"""


@cache
def programs() -> tuple[bytes, ...]:
    """The ELF files."""
    found = []
    for thumb, cpu in ((False, "arm1136jf-s"), (True, "cortex-a8"), (True, "arm7tdmi")):
        for optimise in ("-O0", "-O2"):
            path = build(SOURCE, "-lgcc", optimise=optimise, thumb=thumb, cpu=cpu)
            found.append(path.read_bytes())
            stripped = path.with_suffix(".stripped")
            subprocess.run(
                ["arm-none-eabi-strip", "-s", path, "-o", stripped], check=True, timeout=60
            )
            found.append(stripped.read_bytes())
    return tuple(found)
