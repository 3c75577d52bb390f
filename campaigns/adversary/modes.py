"""Changes of mode and mask: banked stack pointers, srs and rfe, unmasking, waits."""

from __future__ import annotations

from campaigns.adversary.interrupts import acknowledge
from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

SVC, IRQ, UND, SYS = 0x13, 0x12, 0x1B, 0x1F


def generate(w: Writer) -> Program:
    """A program that changes r13, r14 and the masks in one of several ways."""
    return w.draw.choice([banked, banked, spins, spins, endless, srs_rfe, waits, masked_again])(w)


def banked(w: Writer) -> Program:
    """Another word on the stack of another mode."""
    one, two = w.draw.randint(1, 4), w.draw.randint(5, 9)
    mode = w.draw.choice([IRQ, UND, SYS])
    w.add("push {r4-r7, lr}", f"mov r4, #{one}", f"mov r5, #{two}", "mov r7, sp", "ldr r6, =d~+64")
    change(w, mode)
    w.add("mov sp, r6")
    which = w.draw.randrange(4)
    if which == 0:  # a push on one stack, a pop from the other
        w.add("push {r5}")
        change(w, SVC)
        w.add("push {r4}")
        change(w, mode)
        w.add("pop {r0}")
        change(w, SVC)
        w.add("add sp, sp, #4")
    elif which == 1:  # the same sp in both modes
        w.add("mov sp, r7", "push {r5}")
        change(w, SVC)
        w.add("sub sp, sp, #4", "ldr r0, [sp]", "add sp, sp, #4")
    elif which == 2:  # lr is banked
        w.add("mov lr, r5")
        change(w, SVC)
        w.add("mov lr, r4")
        change(w, mode)
        w.add("mov r0, lr")
        change(w, SVC)
    else:
        w.add("str r5, [sp, #8]")
        change(w, SVC)
        w.add("str r4, [sp, #-8]")
        change(w, mode)
        w.add("ldr r0, [sp, #8]")
        change(w, SVC)
    w.decide("r0", one, two)
    w.add("pop {r4-r7, pc}")
    return w.done("modes", enumerated=True)


def change(w: Writer, mode: int) -> None:
    """Change to another privileged mode, with interrupts masked."""
    kind = w.draw.randrange(4)
    if kind == 0:
        w.add(f"cps #{mode:#x}")
    elif kind == 1 and not w.board.thumb:
        w.add(f"msr cpsr_c, #{mode | 0xC0:#x}")
    elif kind == 2:
        w.add(f"mov r3, #{mode | 0xC0:#x}", "msr cpsr_c, r3")
    else:
        w.add(f"cpsid if, #{mode:#x}")


def unmask(w: Writer) -> None:
    """Unmask interrupts."""
    kind = w.draw.randrange(3)
    if kind == 0:
        w.add(w.one_of("cpsie i", "cpsie if"))
    elif kind == 1:
        w.add("mrs r3, cpsr", "bic r3, r3, #0x80", "msr cpsr_c, r3")
    else:
        w.add(f"mov r3, #{SVC | 0x40:#x}", "msr cpsr_c, r3")


def spins(w: Writer) -> Program:
    """A masked path that spins, tests, unmasks and then loops for ever, or ends."""
    w.add("push {r4, lr}", f"ldr r0, ={w.board.controller:#x}")
    again = w.label("again")
    w.add(f"{again}:")
    w.slow(w.draw.choice([60, 150]))
    if w.chance(0.8):
        w.add(f"ldr r2, [r0, #{w.board.offsets[0]}]", "cmp r2, #0", "popne {r4, pc}")
    unmask(w)
    if w.chance(0.5):
        w.add("nop", "cpsid i")
    if w.chance(0.7):
        w.add(f"b {again}")
    else:
        w.add("pop {r4, pc}")
    return w.done("modes", handler=handler(w))


def masked_again(w: Writer) -> Program:
    """Unmasked for a moment, then masked for longer than before."""
    short, long = w.draw.choice([3, 60]), w.draw.choice([60, 150])
    w.add("push {r4, lr}")
    w.slow(short)
    unmask(w)
    w.add(w.one_of("nop", "mov r0, r0"), w.one_of("cpsid i", "cpsid if"))
    w.slow(long)
    unmask(w) if w.chance(0.3) else None
    w.add("pop {r4, pc}")
    return w.done("modes", handler=handler(w))


def endless(w: Writer) -> Program:
    """Code that reaches no end of a path."""
    out, again = w.label("out"), w.label("again")
    w.add("push {r4, lr}", "ands r0, r0, #1", f"beq {out}")
    w.slow(w.draw.choice([60, 150]))
    if w.chance(0.4):
        unmask(w)
    w.add(f"{again}:", w.one_of("nop", "add r1, r1, #1"), f"b {again}", f"{out}:", "pop {r4, pc}")
    inputs = ((("r0", 0),), (("r0", 1),))
    return w.done("modes", inputs=inputs, handler=handler(w) if w.chance(0.5) else ())


def srs_rfe(w: Writer) -> Program:
    """A jump by an exception return whose frame the code has built."""
    on, turns = w.label("on"), w.count()
    target = f"{on}+1" if w.board.thumb else on
    state = SVC | (0xC0 if w.chance(0.7) else 0x40) | (0x20 if w.board.thumb else 0)
    w.add("push {r4-r6, lr}", "mov r6, sp")
    if w.chance(0.5):
        w.add(f"ldr r4, ={on}", f"mov r5, #{state:#x}", "push {r4, r5}")
        w.add("rfeia sp!")
    else:
        w.add(f"mov r5, #{state:#x}", "msr spsr_cxsf, r5", f"ldr lr, ={target}")
        w.add("srsdb sp!, #0x13", "rfeia sp!")
    w.add(f"{on}:")
    w.spin("r1", turns)
    w.add("mov sp, r6", "pop {r4-r6, pc}")
    return w.done("modes")


def waits(w: Writer) -> Program:
    """Waiting for an interrupt has no duration."""
    w.add("push {r4, lr}")
    if w.board.thumb:
        w.add(w.one_of("wfi", "wfe"))
    else:
        w.add("mov r0, #0", "mcr p15, 0, r0, c7, c0, 4")
    w.spin("r1", w.count())
    w.add("pop {r4, pc}")
    return w.done("modes")


def handler(w: Writer) -> tuple[str, ...]:
    """A plain interrupt handler."""
    h = Writer(w.draw, w.board, labels=900)
    h.add("push {r0-r6, r12, lr}")
    acknowledge(h)
    h.slow(w.count())
    h.add("pop {r0-r6, r12, lr}", "subs pc, lr, #4")
    return tuple(h.lines)
