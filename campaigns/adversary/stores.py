"""Loops whose counter lives in memory, and stores that overlap it in every width."""

from __future__ import annotations

from campaigns.adversary.program import Input, Program, Writer

__all__ = ["counting", "generate", "overlapping"]

VALUES = (1, 2, 9, 30, 31)


def generate(w: Writer) -> Program:
    """A word in memory decides; another access writes to a part of it."""
    if w.chance(0.35):
        return assembled(w)
    w.add("push {r4-r7, lr}", "and r0, r0, #3", "and r1, r1, #1", "ldr r7, =d~")
    if w.chance(0.1):
        return counting(w, "stores", "r7")
    return overlapping(w, "stores", "r7")


def counting(w: Writer, family: str, other: str, **more: object) -> Program:
    """A counter at r7 + ``place`` that an access through ``other`` may alter."""
    n, place = w.draw.randint(2, 6), 4 * w.draw.randrange(1, 8)
    again = w.label("again")
    w.add(f"mov r4, #{n}", f"str r4, [r7, #{place}]")
    before = w.chance(0.5)
    if before:
        touch(w, other, place)
    w.add(f"{again}:", f"ldr r4, [r7, #{place}]", "subs r4, r4, #1")
    form = w.draw.randrange(4)
    if form == 0:
        w.add(f"str r4, [r7, #{place}]")
    elif form == 1:
        w.add(f"add r3, r7, #{place}", w.one_of("stm r3, {r4}", "str r4, [r3], #4"))
    elif form == 2:
        w.add(f"add r3, r7, #{place}", "ldrex r6, [r3]", "strex r5, r4, [r3]")
    else:
        w.add(f"strb r4, [r7, #{place}]")
    if not before or w.chance(0.3):
        once = w.chance(0.7)  # else the loop may go on for ever
        skip = w.label("skip")
        if once:
            w.add(f"cmp r4, #{w.draw.randint(1, n)}", f"bne {skip}")
        touch(w, other, place)
        w.add(f"{skip}:")
        w.add(f"ldr r4, [r7, #{place}]", "cmp r4, #0")
        w.add("and r4, r4, #31")
    w.add(w.one_of("cmp r4, #0", "movs r4, r4"), w.one_of(f"bgt {again}", f"bne {again}"))
    w.add("pop {r4-r7, pc}")
    inputs = tuple((("r0", a), ("r1", b)) for a in range(4) for b in range(2))
    return w.done(family, inputs=inputs, enumerated=True, **more)


def overlapping(w: Writer, family: str, other: str, **more: object) -> Program:
    """Words at r7 with known contents, accesses through ``other`` over them, one word decides."""
    place, n = 4 * w.draw.randrange(1, 8), w.draw.randint(2, 6)
    w.add(f"mov r4, #{n}", f"str r4, [r7, #{place}]")
    for _ in range(w.draw.randint(1, 3)):
        touch(w, other, place)
    load = w.draw.randrange(4)
    if load == 0:
        w.add(f"ldrb r4, [r7, #{place}]")
    elif load == 1:
        w.add(f"add r3, r7, #{place & ~7}", "ldrd r2, r3, [r3]")
        w.add("mov r4, r3" if place & 4 else "mov r4, r2")
    elif load == 2:
        w.add(f"add r3, r7, #{place}", w.one_of("ldm r3, {r4}", "ldrex r4, [r3]"))
    else:
        w.add(f"ldr r4, [r7, #{place}]")
    w.decide("r4", n, w.draw.choice(VALUES))
    w.add("pop {r4-r7, pc}")
    inputs = tuple((("r0", a), ("r1", b)) for a in range(4) for b in range(2))
    return w.done(family, inputs=inputs, enumerated=True, **more)


def touch(w: Writer, base: str, place: int) -> None:
    """One access that overlaps the word at ``base`` + ``place``, or the one beside it."""
    value = w.draw.choice(VALUES)
    near = place + w.draw.choice([0, 0, 0, 1, 2, 3, 4, -4])
    word = near & ~3
    w.add(f"mov r5, #{value}", "mov r6, r5")
    kind = w.draw.randrange(12)
    if kind == 0:
        w.add(f"strb r5, [{base}, #{near}]")
    elif kind == 1:
        w.add(f"strh r5, [{base}, #{near & ~1}]")
    elif kind == 2:
        w.add(f"add r3, {base}, #{near & ~7}", "strd r4, r5, [r3]")
    elif kind == 3:
        w.add(f"add r3, {base}, #{word}", "add r3, r3, r0, lsl #2", "str r5, [r3]")
    elif kind == 4:
        w.add(f"add r3, {base}, #{place}", "strb r5, [r3, r0]")
    elif kind == 5:
        w.add(f"add r3, {base}, #{word}", "ldrex r6, [r3]", "strex r6, r5, [r3]")
    elif kind == 6:
        w.add(f"add r3, {base}, #{max(0, word - 4)}", "stm r3, {r5, r6}")
    elif kind == 7 and not w.board.thumb:
        w.add(f"add r3, {base}, #{word}", w.one_of("swp r6, r5, [r3]", "swpb r6, r5, [r3]"))
    elif kind == 8:
        w.add(f"add r3, {base}, #{word + 8}", "str r5, [r3, #-8]!")
    elif kind == 9:
        w.add(f"add r3, {base}, #{place}", "cmp r1, #0", "strne r5, [r3]")
    elif kind == 10:
        w.add(f"add r3, {base}, #{word - 4}", "mov r2, #2", "3:", "str r5, [r3], #4",
              "subs r2, r2, #1", "bne 3b")  # fmt: skip
    else:
        w.add(f"str r5, [{base}, #{word}]")


def assembled(w: Writer) -> Program:
    """A word put together from narrower stores, or taken apart by narrower loads."""
    place, signed = 4 * w.draw.randrange(8), w.chance(0.3)
    w.add("push {r4-r7, lr}", "and r0, r0, #3", "and r1, r1, #3", "ldr r7, =d~", "mov r2, #0")
    kind = w.draw.randrange(4)
    if kind == 0:
        for i in range(4):
            w.add(f"strb {'r0' if i == 0 else 'r2'}, [r7, #{place + i}]")
        w.add(f"ldr r4, [r7, #{place}]")
    elif kind == 1:
        w.add(f"strh r0, [r7, #{place}]", f"strh r2, [r7, #{place + 2}]", f"ldr r4, [r7, #{place}]")
    elif kind == 2:
        load = "ldrsb" if signed else "ldrb"
        w.add("orr r3, r0, r1, lsl #8", f"str r3, [r7, #{place}]")
        w.add(f"{load} r4, [r7, #{place + w.draw.randrange(2)}]")
    else:
        w.add("mov r4, r0", "mov r5, r1", f"add r3, r7, #{place & ~7}", "strd r4, r5, [r3]")
        w.add(f"ldr r4, [r3, #{w.draw.choice([0, 4])}]")
    w.add(f"add r4, r4, #{w.draw.randint(1, 3)}")
    if w.chance(0.5):
        w.add("and r4, r4, #15")
    w.decide("r4", 2, 6)
    w.add("pop {r4-r7, pc}")
    inputs: tuple[Input, ...] = tuple((("r0", a), ("r1", b)) for a in range(4) for b in range(4))
    return w.done("stores", inputs=inputs, enumerated=True)
