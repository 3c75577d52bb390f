"""Data of the other endianness, however it is switched on."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

E_BIT, SVC = 0x200, 0x13
WORDS = (0x0001_0002, 0x0300_0001, 0x0000_0005, 0x0607_0009)


def generate(w: Writer) -> Program:
    """Words that are stored and loaded before and after bit E changes."""
    w.add("mov r6, lr", "ldr r5, =d~", "and r0, r0, #1")
    place = 8 * w.draw.randrange(8)
    one, two = w.draw.choice(WORDS), w.draw.choice(WORDS)
    w.add(f"ldr r1, ={one:#x}", f"ldr r2, ={two:#x}")
    first = w.chance(0.3)
    form = switch(w) if first else ""
    if w.chance(0.5):  # constants, which nothing else can change
        words = [w.draw.choice(WORDS) for _ in range(18)]
        w.after += [".balign 8", "c~:", *(f"    .word {n:#x}" for n in words)]
        w.add("ldr r5, =c~")
    else:
        w.add(f"add r3, r5, #{place}", w.one_of("stm r3, {r1, r2}", f"str r1, [r5, #{place}]"))
    if not first:
        form = switch(w)
    if w.chance(0.4):
        back(w)
    load(w, place)
    if w.chance(0.3):
        back(w)
    w.bits("r4", *w.draw.sample([0, 1, 2, 3, 8, 24], 4))
    w.add("bx r6")
    inputs = tuple((("r0", i),) for i in range(2))
    return w.done("endianness", inputs=inputs, enumerated=True, form=form, constant_returns=True)


def switch(w: Writer) -> str:
    """Bit E set, or by another way of the same kind left clear; r3 and r4 change."""
    bit = w.draw.choice([E_BIT, E_BIT, E_BIT, 0])
    state = SVC | 0xC0 | bit | (0x20 if w.board.thumb else 0)
    kind = w.draw.randrange(7)
    if kind == 0:
        w.add("setend be" if bit else "setend le")
        return "setend"
    if kind == 1:
        fields = w.one_of("x", "fsxc", "xc", "fx", "sx")
        w.add("mrs r4, cpsr")
        w.add(f"orr r4, r4, #{bit:#x}" if bit else "bic r4, r4, #0x200", f"msr cpsr_{fields}, r4")
        return f"cpsr_{fields} of what was read"
    if kind == 2:
        fields = w.one_of("x", "fsxc", "xc")
        plain = state & ~0x20
        w.add(f"ldr r4, ={plain:#x}", f"msr cpsr_{fields}, r4")
        return f"cpsr_{fields} of a constant"
    if kind == 3 and not w.board.thumb:
        w.add("cmp r0, #0", f"msr{w.one_of('eq', 'ne')} cpsr_x, #{bit:#x}")
        return "cpsr_x of a number, under a condition"
    on = w.label("on")
    target = f"{on}+1" if w.board.thumb else on
    if kind in (4, 5):
        parts = w.draw.choice([("cxsf",), ("fsc", "x"), ("x", "fsc")])
        for part in parts:
            w.add(f"ldr r4, ={state:#x}", f"msr spsr_{part}, r4")
        w.add(f"ldr lr, ={target}", "subs pc, lr, #0" if w.board.thumb else "movs pc, lr", f"{on}:")
        return f"spsr_{','.join(parts)}"
    w.add(f"ldr r3, ={on}", f"ldr r4, ={state:#x}", "ldr r12, =d~+128", "str r3, [r12]",
          "str r4, [r12, #4]", "rfeia r12", f"{on}:")  # fmt: skip
    return "rfe"


def back(w: Writer) -> None:
    """Bit E clear again."""
    kind = w.draw.randrange(3)
    if kind == 0:
        w.add("setend le")
    elif kind == 1 and not w.board.thumb:
        w.add("msr cpsr_x, #0")
    else:
        w.add("mrs r3, cpsr", "bic r3, r3, #0x200", "msr cpsr_x, r3")


def load(w: Writer, place: int) -> None:
    """To r4, by any width."""
    kind = w.draw.randrange(6)
    if kind == 0:
        w.add(f"ldrh r4, [r5, #{place + 2 * w.draw.randrange(2)}]")
    elif kind == 1:
        w.add(f"ldrb r4, [r5, #{place + w.draw.randrange(4)}]")
    elif kind == 2:
        w.add(f"add r3, r5, #{place}", "ldm r3, {r1, r4}" if w.chance(0.5) else "ldrex r4, [r3]")
    elif kind == 3:
        w.add(f"add r12, r5, #{place}", "ldrd r2, r3, [r12]", f"mov r4, {w.one_of('r2', 'r3')}")
    else:
        w.add(f"ldr r4, [r5, #{place}]")
