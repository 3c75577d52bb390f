"""Address spaces that are switched: real tables, and an MMU that is on (address_spaces.py)."""

from __future__ import annotations

from campaigns.adversary.address_spaces import FIRST, PROCESS, SECOND, AddressSpace
from campaigns.adversary.program import Memory, Program, Writer

__all__ = ["generate"]

FLUSH = ("mcr p15, 0, r2, c8, c7, 0", "mcr p15, 0, r2, c8, c6, 0", "mcr p15, 0, r12, c8, c7, 1",
         "mcr p15, 0, r12, c8, c6, 1", "mcr p15, 0, r2, c8, c7, 2")  # fmt: skip
OTHERS = (
    "mcr p15, 0, r2, c8, c5, 0", "mcr p15, 0, r2, c7, c5, 4", "mcr p15, 0, r2, c7, c10, 4",
    "mcr p15, 0, r2, c7, c5, 0", "mrc p15, 0, r3, c2, c0, 0", "nop",
)  # fmt: skip


def generate(w: Writer) -> Program:
    """Words and code at addresses that no platform fixes, before and after a switch."""
    if w.chance(0.25):
        return stacked(w) if w.chance(0.4) else again(w)
    w.add("push {r4-r7, lr}", "ldr r5, =u~", "ldr r7, =d~", "and r0, r0, #1")
    one, two = w.draw.sample([1, 2, 5, 9, 14, 30], 2)
    place = 4 * w.draw.randrange(4)
    writable = w.chance(0.7)
    for section, first in ((".low", one), (".other", two)):
        words = [first if 4 * i == place else first + i + 1 for i in range(4)]
        label = "u~" if section == ".low" else "v~"
        w.low(section + "data" if writable else section, f"{label}:",
              *(f"    .word {n}" for n in words))  # fmt: skip
    known = w.draw.choice([3, 7, 11])
    if w.chance(0.5) and writable:
        w.add(f"mov r4, #{known}", f"str r4, [r5, #{place}]")
    elif w.chance(0.3):
        w.add(f"ldr r4, [r5, #{place}]", f"str r4, [r7, #{place}]")
    if w.chance(0.3):
        lines, form = switch(w)
        w.add("cmp r0, #0", "beq .L~skip", *lines, ".L~skip:")
        form += ", under a condition"
    else:
        lines, form = switch(w)
        w.add(*lines)
    kind = w.draw.randrange(6)
    if kind == 0 and writable:
        w.add(f"mov r4, #{known + 1}", f"str r4, [r5, #{(place + 4) % 16}]")
    if kind == 1:  # back again: the stored words are there
        w.add(*to(w, FIRST)[0])
    if kind == 2:  # code
        for section, count in ((".low", one), (".other", two)):
            name = "ulow~" if section == ".low" else "vlow~"
            head = [f".type {name}, %function", *([".thumb_func"] if w.board.thumb else [])]
            w.low(
                section,
                *head,
                f"{name}:",
                f"movs r1, #{count}",
                "1:",
                "subs r1, r1, #1",
                "bne 1b",
                "bx lr",
            )
        w.add("ldr r3, =ulow~", "blx r3", "pop {r4-r7, pc}")
        return done(w, f"code after {form}")
    w.add(f"ldr r4, [{w.one_of('r5', 'r5', 'r5', 'r7')}, #{place}]")
    if w.chance(0.3):
        w.add("and r4, r4, #15")
        w.count_down("r4", "add r1, r1, #1")
    else:
        w.bits("r4", 0, 1, 2, 3)
    w.add("pop {r4-r7, pc}")
    return done(w, f"data after {form}")


def stacked(w: Writer) -> Program:
    """A return address on a stack that the switch exchanges."""
    on, other = w.label("on"), w.label("other")
    bit = "+1" if w.board.thumb else ""
    w.low(".lowdata", "u~:", ".word 1, 2, 3, 4")
    w.low(".otherdata", "v~:", f".word 1, 2, 3, {other}{bit}")
    lines, form = switch(w)
    callee = w.callee("switch", "push {r3, lr}", *lines, "pop {r3, pc}")
    w.add("mov r6, lr", "mov r5, sp", "ldr r4, =u~+16", "mov sp, r4", "mov r7, #3")
    w.add(f"bl {callee}", f"b {on}", f"{other}:", "nop")
    w.spin("r1", w.count())
    w.add(f"{on}:", "mov sp, r5", "bx r6")
    return w.done("translations", memory=Memory.PAGED, form=f"stack after {form}")


def again(w: Writer) -> Program:
    """A loop that switches, so that each of its loads reads another space."""
    one, two = w.draw.sample([1, 2, 5, 9, 14, 30], 2)
    w.low(".lowdata", "u~:", f".word {one}")
    w.low(".otherdata", "v~:", f".word {two}")
    w.add("push {r4-r7, lr}", "ldr r5, =u~", f"mov r7, #{w.draw.randint(2, 3)}")
    if w.chance(0.5):
        w.add("mov r4, #3", "str r4, [r5]")
    label = w.label("again")
    lines, form = switch(w)
    w.add(f"{label}:", "ldr r4, [r5]")
    w.bits("r4", 0, 1, 2, 3)
    w.add(*lines, "subs r7, r7, #1", f"bne {label}", "pop {r4-r7, pc}")
    return w.done("translations", memory=Memory.PAGED, form=f"a loop with {form}")


def done(w: Writer, form: str) -> Program:
    """The program."""
    inputs = tuple((("r0", i),) for i in range(2))
    return w.done("translations", inputs=inputs, memory=Memory.PAGED, form=form)


def switch(w: Writer) -> tuple[list[str], str]:
    """Another table, or another entry in the table, and the operation that applies it."""
    if w.chance(0.2):  # a store into the table: only the flush shows it
        lines = ["mov r2, #0", "mov r12, r5", f"ldr r0, ={FIRST.entry:#x}"]
        lines += [f"ldr r1, ={SECOND.descriptor:#x}", "str r1, [r0]", w.draw.choice(FLUSH)]
        form = "a store into the table"
    elif w.chance(0.15):
        lines = ["mov r2, #0", "mov r12, r5", f"ldr r0, ={PROCESS:#x}"]
        lines += ["mcr p15, 0, r0, c13, c0, 0"]
        form = "FCSEIDR"
    else:
        lines, form = to(w, SECOND)
    if w.chance(0.4):
        lines.append(w.draw.choice(OTHERS))
    return lines, form


def to(w: Writer, space: AddressSpace) -> tuple[list[str], str]:
    """Set the table base, and apply it: in QEMU's core by an operation that flushes."""
    lines = ["mov r2, #0", "mov r12, r5", f"ldr r0, ={space.base:#x}", "mcr p15, 0, r0, c2, c0, 0"]
    effect = w.draw.randrange(4)
    if effect == 0:
        number = w.draw.randint(1, 200)
        return [*lines, f"mov r3, #{number}", "mcr p15, 0, r3, c13, c0, 1"], "TTBR0, CONTEXTIDR"
    if effect == 1:
        return [*lines, "mov r3, #3", "mcr p15, 0, r3, c3, c0, 0"], "TTBR0, DACR"
    return [*lines, w.draw.choice(FLUSH)], "TTBR0, flush"
