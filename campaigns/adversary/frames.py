"""Callees that edit the frames of their callers, and functions that leave in unusual ways."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

POINTERS = (("r0", "d"), ("r1", "d+64"))


def generate(w: Writer) -> Program:
    """A counter or a return address in a frame to which another function writes."""
    if w.chance(0.15):
        return leaving(w)
    local = w.draw.choice([0, 4, 8, 16])
    small, large = w.draw.randint(1, 3), w.draw.choice([5, 9])
    deep = w.chance(0.6)  # the frame of ``middle`` is edited, and so its caller's registers
    editor = edit(w, local, large)
    w.add("push {r4-r6, lr}", f"mov r4, #{small}", "mov r5, r2", "mov r6, #0")
    if deep:
        middle_frame = [f"sub sp, sp, #{local}"] if local else []
        middle_back = [f"add sp, sp, #{local}"] if local else []
        pointer = w.one_of(f"add r0, sp, #{local}", "mov r0, sp", f"add r0, sp, #{local + 4}")
        middle = w.callee(
            "middle", "push {r4-r6, lr}", *middle_frame, "mov r4, #1", "mov r5, #1", "mov r6, #1",
            pointer, f"bl {editor}", *middle_back, "pop {r4-r6, pc}",
        )  # fmt: skip
        w.add(f"bl {middle}")
    else:
        if local:
            w.add(f"sub sp, sp, #{local}")
        w.add("mov r0, sp", f"bl {editor}")
        if local:
            w.add(f"add sp, sp, #{local}")
    if w.chance(0.3):
        w.add("and r4, r4, #15")
    w.decide("r4", small, *([large] if w.chance(0.5) else []))
    w.add("mov r0, r6", "pop {r4-r6, pc}")
    return w.done("frames", inputs=tuple((("r1", a), ("r2", b)) for a in (0, 1, 3) for b in (0, 2)))


def edit(w: Writer, local: int, value: int) -> str:
    """A leaf that stores ``value``, or the address of code, into frames above its own."""
    place = local + 4 * w.draw.randrange(4)
    lines: list[str] = []
    if w.chance(0.3):
        alternative = w.callee("other", "mov r0, #3", "1:", "subs r0, r0, #1", "bne 1b",
                               "pop {r4-r6, pc}")  # fmt: skip
        lines.append(f"ldr r3, ={alternative}")
        place = local + 12  # the return address
    else:
        lines.append(f"mov r3, #{value}")
    skip = w.label("skip") if w.chance(0.15) else ""
    if skip:
        lines += ["cmp r1, #0", f"beq {skip}"]
    kind = w.draw.randrange(9)
    if kind == 0:
        lines.append(f"str r3, [sp, #{place}]")
    elif kind == 1:
        lines.append(f"str r3, [r0, #{place}]")
    elif kind == 2:
        lines.append(f"strb r3, [sp, #{place}]")
    elif kind == 3:
        lines += [f"add r2, sp, #{place}", w.one_of("stm r2, {r3}", "stm r2!, {r1, r3}")]
    elif kind == 4:
        lines += [f"mov r2, #{place}", "str r3, [sp, r2]"]
    elif kind == 5:
        lines += ["and r2, r1, #3", f"add r0, sp, #{local}", "str r3, [r0, r2, lsl #2]"]
    elif kind == 6:
        first = max(0, place - 4)
        lines += [f"add r0, sp, #{first}", "mov r2, #2", "2:", "str r3, [r0], #4",
                  "subs r2, r2, #1", "bne 2b"]  # fmt: skip
    elif kind == 7:
        lines.append(f"strh r3, [sp, #{place}]")
    else:
        lines += [f"add r12, sp, #{place & ~7}", "mov r2, r3", "strd r2, r3, [r12]"]
    return w.callee("edit", *lines, *([f"{skip}:"] if skip else []), "bx lr")


def leaving(w: Writer) -> Program:
    """A function with an unusual return: through data, or from another stack."""
    turns, out, back = w.count(), w.label("out"), w.label("back")
    w.add("push {r4, lr}", "mov r4, sp", "tst r2, #1", f"beq {out}")
    if w.chance(0.4):
        w.add("ldr r0, =d~", "add r1, r0, #64")
    address = f"{back}+1" if w.board.thumb else back
    w.add(f"ldr r2, ={address}", "str r2, [r1, #4]", "mov r2, #7", "str r2, [r1]", "str r1, [r0]")
    forms = [
        ("str sp, [r0, #8]", "ldr sp, [r0]", "pop {r2, pc}"),
        ("ldr r3, [r0]", "mov sp, r3", "pop {r2, pc}"),
        ("push {r4-r6, lr}", "str sp, [r0, #8]", "ldr sp, [r0]", "ldr lr, [sp, #4]", "bx lr"),
        ("push {r4-r6, lr}", "str sp, [r0, #8]", "mov r3, sp", "mov sp, r3", "pop {r4-r6, pc}"),
        ("push {r4-r6, lr}", "str sp, [r0, #8]", "ldr sp, [r0, #8]", "pop {r4-r6, pc}"),
        ("push {r4-r6, lr}", "str sp, [r0, #8]", "ldr sp, [r0]", "pop {r2, pc}"),
        ("push {r4, lr}", "str sp, [r0, #8]", "mov sp, r1", "pop {r2, pc}"),
        ("mov sp, r1", "pop {r2, pc}"),
        ("ldr r2, [r1, #4]", "bx r2"),
        ("push {r1}", "pop {r2}", "ldr pc, [r2, #4]"),
    ]
    if not w.board.thumb:
        forms += [
            ("mov r3, #0xd3", "msr spsr_cxsf, r3", "movs pc, lr"),
            ("mov r3, #0xd3", "msr spsr_cxsf, r3", "ldr r2, [r1, #4]", "movs pc, r2"),
            ("mov r3, #0xd3", "str r3, [r1, #8]", "add r1, r1, #4", "rfeia r1"),
        ]
    leave = w.callee("leave", *w.draw.choice(forms))
    w.add(f"bl {leave}", f"{back}:", "mov sp, r4")
    w.slow(turns)
    w.add(f"{out}:", "mov sp, r4", "pop {r4, pc}")
    return w.done("frames", inputs=tuple((*POINTERS, ("r2", i)) for i in (0, 1)))
