"""Maintenance of dirty lines: a line that is invalidated before it is cleaned loses its stores.

The executor models a write-back cache (write_back.py), at both of its extremes.
"""

from __future__ import annotations

from campaigns.adversary.program import Memory, Program, Writer

__all__ = ["generate"]


def generate(w: Writer) -> Program:
    """A word with a known content, a store over it, maintenance, a load."""
    if w.chance(0.2):
        return counter(w) if w.chance(0.5) else stacked(w)
    w.add("mov r6, lr", "ldr r5, =d~", "and r0, r0, #1")
    line = 64 if w.board.armv7 else 32
    place = 4 * w.draw.randrange(line // 4)
    one, two = w.draw.sample([1, 2, 6, 9, 21, 30], 2)
    w.add(f"mov r4, #{one}", f"str r4, [r5, #{place}]")
    if w.chance(0.6):  # so that memory has it
        w.add(f"add r3, r5, #{place}", *one_line(w, clean=True, invalidate=w.chance(0.3)))
    store(w, place, two)
    forms = []
    for _ in range(w.draw.randint(1, 3)):
        lines, form = operation(w, place, line)
        w.add(*lines)
        forms.append(form)
    if w.chance(0.2):
        store(w, (place + 4) % line, w.draw.choice([1, 3, 8]))
    narrow = w.chance(0.2)
    w.add(f"ldr{'b' if narrow else ''} r4, [r5, #{place}]")
    if w.chance(0.3):
        w.add("and r4, r4, #31")
        w.count_down("r4", "add r1, r1, #1")
    else:
        w.bits("r4", *w.draw.sample(range(5), 4))
    w.add("bx r6")
    inputs = tuple((("r0", i),) for i in range(2))
    return w.done("dirty_lines", inputs=inputs, memory=Memory.CACHED, form=", ".join(forms))


def counter(w: Writer) -> Program:
    """A counter in memory, which maintenance in its loop may set back."""
    line = 64 if w.board.armv7 else 32
    again, place = w.label("again"), 4 * w.draw.randrange(8)
    w.add("mov r6, lr", "ldr r5, =d~", f"mov r4, #{w.draw.randint(2, 9)}")
    w.add(f"str r4, [r5, #{place}]", f"add r3, r5, #{place}")
    w.add(*one_line(w, clean=True, invalidate=False))
    lines, form = operation(w, place, line)
    w.add("mov r0, #0", f"{again}:", f"ldr r4, [r5, #{place}]", "subs r4, r4, #1")
    w.add(f"str r4, [r5, #{place}]", *lines, f"ldr r4, [r5, #{place}]", "cmp r4, #0")
    w.add(f"bgt {again}", "bx r6")
    return w.done("dirty_lines", memory=Memory.CACHED, form=f"a counter, {form}")


def stacked(w: Writer) -> Program:
    """A return address that is lost with its line: an older one is in memory."""
    line = 64 if w.board.armv7 else 32
    on, other = w.label("on"), w.label("other")
    bit = "+1" if w.board.thumb else ""
    lines, form = operation(w, 0, line)
    callee = w.callee("lose", "push {r4, lr}", *lines, "pop {r4, pc}")
    w.add("mov r6, lr", "ldr r5, =d~", f"ldr r4, ={other}{bit}", "str r4, [r5, #28]", "mov r3, r5")
    w.add(*one_line(w, clean=True, invalidate=False), "mov r0, #0", "mov r12, sp", "mov r8, r6")
    w.add("add r4, r5, #32", "mov sp, r4", f"bl {callee}", f"b {on}", f"{other}:", "nop")
    w.spin("r1", w.count())
    w.add(f"{on}:", "mov sp, r12", "bx r8")
    return w.done("dirty_lines", memory=Memory.CACHED, form=f"a stack, {form}")


def store(w: Writer, place: int, value: int) -> None:
    """``value`` to the word, perhaps only if r0 says so."""
    w.add(f"mov r4, #{value}")
    kind = w.draw.randrange(4)
    if kind == 0:
        w.add("cmp r0, #0", f"strne r4, [r5, #{place}]")
    elif kind == 1:
        w.add(f"add r3, r5, #{place}", "stm r3, {r4}")
    elif kind == 2:
        w.add(f"strb r4, [r5, #{place}]")
    else:
        w.add(f"str r4, [r5, #{place}]")


def one_line(w: Writer, *, clean: bool, invalidate: bool, register: str = "r3") -> list[str]:
    """The line at the address in ``register``."""
    crm = 14 if clean and invalidate else 10 if clean else 6
    return [f"mcr p15, 0, {register}, c7, c{crm}, 1"]


def operation(w: Writer, place: int, line: int) -> tuple[list[str], str]:
    """Any operation, mostly one that reaches the line."""
    clean, invalidate = w.draw.choice([(False, True)] * 3 + [(True, False), (True, True)])
    crm = 14 if clean and invalidate else 10 if clean else 6
    name = {14: "clean and invalidate", 10: "clean", 6: "invalidate"}[crm]
    near = w.draw.choice([0, 0, 0, line, -line, place])
    kind = w.draw.randrange(6 if not w.board.armv7 else 4)
    address = [f"add r3, r5, #{near}" if near >= 0 else f"sub r3, r5, #{-near}"]
    if kind == 0:
        lines = [*address, f"ubfx r3, r3, #{line.bit_length() - 1}, #7"] if w.board.armv7 else [
            *address, "mov r3, r3, lsl #20", "mov r3, r3, lsr #25"]  # fmt: skip
        lines += [f"mov r3, r3, lsl #{line.bit_length() - 1}"]
        lines += [f"orr r3, r3, #{w.draw.randrange(4) << 30:#x}"]
        return [*lines, f"mcr p15, 0, r3, c7, c{crm}, 2"], f"{name} by set and way"
    if kind == 1 and not w.board.thumb:
        condition = w.one_of("eq", "ne")
        lines = [*address, "cmp r0, #0", f"mcr{condition} p15, 0, r3, c7, c{crm}, 1"]
        return lines, f"{name} by address, under a condition"
    if kind == 2:
        again = w.label("lines")
        lines = [f"sub r3, r5, #{line}", "mov r2, #3", f"{again}:",
                 f"mcr p15, 0, r3, c7, c{crm}, 1", f"add r3, r3, #{line}", "subs r2, r2, #1",
                 f"bne {again}"]  # fmt: skip
        return lines, f"{name} in a loop"
    if kind == 4:
        return ["mov r3, #0", f"mcr p15, 0, r3, c7, c{w.draw.choice([crm, crm, 7])}, 0"], (
            f"{name} all")  # fmt: skip
    if kind == 5:
        crm = {14: 14, 10: 12, 6: 6}[crm]
        below, above = w.draw.randrange(2) * line, w.draw.randrange(3) * line
        lines = [f"sub r2, r5, #{below}", f"add r3, r5, #{above}"]
        return [*lines, f"mcrr p15, 0, r3, r2, c{crm}"], f"{name} a range"
    return [*address, f"mcr p15, 0, r3, c7, c{crm}, 1"], f"{name} by address"
