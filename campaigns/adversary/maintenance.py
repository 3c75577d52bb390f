"""Operations of coprocessor 15: maintenance of caches, and registers that switch them off."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

PLAIN = (
    "mcr p15, 0, r2, c7, c10, 4", "mcr p15, 0, r2, c7, c5, 4", "mcr p15, 0, r2, c7, c5, 0",
    "mcr p15, 0, r7, c7, c10, 1", "mcr p15, 0, r7, c7, c14, 1", "mcr p15, 0, r7, c7, c6, 1",
    "mcr p15, 0, r7, c7, c5, 1", "mcr p15, 0, r2, c8, c7, 0",
)  # fmt: skip
WHOLE = (
    "mcr p15, 0, r2, c7, c10, 0",
    "mcr p15, 0, r2, c7, c14, 0",
    "mcr p15, 0, r2, c7, c6, 0",
    "mcr p15, 0, r2, c7, c7, 0",
)  # fmt: skip of the ARM1136
DATA, FETCH = 1 << 2, 1 << 12


def generate(w: Writer) -> Program:
    """Loops of loads of one line, with maintenance before or in them."""
    w.add("push {r4-r7, lr}", "ldr r7, =d~", "mov r2, #0")
    operations = PLAIN if w.board.thumb else PLAIN + WHOLE
    kind = w.draw.randrange(4)
    if kind == 0:
        control(w)
    elif kind == 1:
        w.add(*(w.draw.choice(operations) for _ in range(w.draw.randint(1, 2))))
    elif kind == 2:
        lockdown(w)
    inside: tuple[str, ...] = ("ldr r4, [r7]", w.one_of("ldr r5, [r7, #4]", "add r5, r5, r4"))
    if w.chance(0.5):  # an unknown operation may cost as much as writing back all lines
        w.spin("r1", 200, *(f"ldr r4, [r7, #{4 * i}]" for i in range(8)))
    if kind == 3 or w.chance(0.2):
        inside += (w.draw.choice(operations),)
    w.spin("r1", w.count(), *inside)
    if w.chance(0.3):
        control(w)
    w.add("pop {r4-r7, pc}")
    return w.done("maintenance")


def control(w: Writer) -> None:
    """Switch a cache off, or on; the word is read before, or written as a number."""
    bit = w.draw.choice([DATA, DATA, FETCH])
    register = "p15, 0, r3, c1, c0, 0"
    w.add(f"mrc {register}")
    if w.chance(0.8):
        w.add(f"bic r3, r3, #{bit:#x}")
    else:
        w.add(f"orr r3, r3, #{bit:#x}")
    w.add(f"mcr {register}")


def lockdown(w: Writer) -> None:
    """Lock ways, or write another register that changes the effect of accesses."""
    if w.board.thumb:
        w.add("mov r3, #7", w.one_of("mcr p15, 1, r3, c9, c0, 0", "mcr p15, 0, r3, c2, c0, 2"))
    else:
        ways = w.draw.choice([1, 3, 7])
        w.add(f"mov r3, #{ways}")
        w.add(w.one_of("mcr p15, 0, r3, c9, c0, 0", "mcr p15, 0, r3, c9, c0, 1"))
