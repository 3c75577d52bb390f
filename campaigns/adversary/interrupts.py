"""Tests for interrupts of every shape, in loops, and handlers that acknowledge."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["ACK", "acknowledge", "generate", "nested", "read", "work"]

ACK = 0x100  # offset of the register that acknowledges pending interrupts


def generate(w: Writer) -> Program:
    """A path that works, tests, and works again; its handler, too, after its acknowledge."""
    w.add("push {r4-r8, lr}", f"ldr r8, ={w.board.controller:#x}")
    out = w.label("out")
    looping = w.chance(0.5)
    again = w.label("round")
    if looping:
        w.add(f"mov r7, #{w.draw.randint(2, 3)}", f"{again}:")
    for _ in range(w.draw.randint(1, 2)):
        work(w)
        test(w, out)
    work(w)
    if looping:
        w.add("subs r7, r7, #1", f"bne {again}")
    w.add(f"{out}:", "pop {r4-r8, pc}")
    return w.done("interrupts", handler=handler(w))


def nested(w: Writer) -> Program:
    """Tests in loops in loops, so that segments start within them."""
    w.add("push {r4-r8, lr}", f"ldr r8, ={w.board.controller:#x}")
    out, outer, inner = w.label("out"), w.label("outer"), w.label("inner")
    first, second = w.draw.randint(2, 4), w.draw.choice([2, 5])
    carried = w.chance(0.4)  # the inner counter goes on where it was, or grows
    w.add(f"mov r7, #{first}", "mov r6, #0", f"{outer}:")
    if carried:
        w.add("rsb r4, r7, #6")
    else:
        w.add(f"mov r4, #{second}")
    where = w.draw.randrange(3)
    w.add(f"{inner}:", "add r6, r6, #1")
    if where == 0:
        test(w, out)
    if w.chance(0.5):
        w.spin("r1", w.count())
    w.add("subs r4, r4, #1", f"bne {inner}")
    if where == 1:
        test(w, out)
    work(w)
    w.add("subs r7, r7, #1", f"bne {outer}")
    if where == 2:
        test(w, out)
    work(w)
    w.add(f"{out}:", "pop {r4-r8, pc}")
    return w.done("preempted", handler=handler(w))


def work(w: Writer) -> None:
    """A loop of a count that is known."""
    w.slow(w.draw.choice([3, 60, 150]))


def read(w: Writer) -> None:
    """Read into r2 whether an interrupt is pending; r3, r4 and r5 are changed."""
    first, last = w.board.offsets[0], w.board.offsets[-1]
    two = first != last
    kind = w.draw.randrange(11)
    if kind == 0 and two:
        w.add(f"ldr r2, [r8, #{first}]", f"ldr r3, [r8, #{last}]", "orr r2, r2, r3")
    elif kind == 1:
        w.add(f"ldrb r2, [r8, #{first + w.draw.randrange(4)}]")
    elif kind == 2:
        w.add(f"ldrh r2, [r8, #{first + 2 * w.draw.randrange(2)}]")
    elif kind == 3 and two:
        w.add(f"add r3, r8, #{first}", "ldm r3, {r2, r3}", "orr r2, r2, r3")
    elif kind == 4 and two:
        w.add(f"add r5, r8, #{first}", "ldrd r2, r3, [r5]", "orr r2, r2, r3")
    elif kind == 5:
        w.add(f"ldr r3, [r8, #{first}]", "push {r3}", "mov r3, #0", "pop {r2}")
    elif kind == 6:
        shift = w.draw.choice([1, 4, 16])
        w.add(f"ldr r3, [r8, #{first}]", f"{w.one_of('lsr', 'lsl')} r2, r3, #{shift}")
    elif kind == 7:
        w.add(f"ldr r3, [r8, #{first}]", f"and r2, r3, #{w.draw.choice([1, 0xFF, 0xF0])}")
    elif kind == 9:  # from the word below on
        w.add(f"add r3, r8, #{first - 4}")
        w.add("ldm r3, {r1, r2, r3}" if two else "ldm r3, {r1, r2}")
        if two:
            w.add("orr r2, r2, r3")
    elif kind == 10:  # to the word above
        w.add(f"add r3, r8, #{last}", "ldm r3, {r2, r3}")
    elif kind == 8 and two:
        w.add(f"ldr r2, [r8, #{last}]", "cmp r2, #0", f"ldreq r2, [r8, #{first}]")
    else:
        w.add(f"ldr r2, [r8, #{first}]")


def test(w: Writer, out: str) -> None:
    """Leave if an interrupt is pending."""
    read(w)
    w.add(w.one_of("cmp r2, #0", "movs r2, r2", "tst r2, r2"), f"bne {out}")


def acknowledge(w: Writer) -> None:
    """Acknowledge the handled interrupt; r3 is changed."""
    w.add(f"ldr r3, ={w.board.controller + ACK:#x}", "str r3, [r3]")


def handler(w: Writer) -> tuple[str, ...]:
    """Work, acknowledge, work, perhaps a test, more work."""
    h = Writer(w.draw, w.board, labels=900)
    h.add("push {r0-r8, r12, lr}", f"ldr r8, ={w.board.controller:#x}")
    out = h.label("out")
    if h.chance(0.5):
        work(h)
    if h.chance(0.2):
        test(h, out)
    acknowledge(h)
    if h.chance(0.6):
        work(h)
    for _ in range(h.draw.randrange(3)):
        test(h, out)
        work(h)
    h.add(f"{out}:", "pop {r0-r8, r12, lr}", "subs pc, lr, #4")
    return tuple(h.lines)
