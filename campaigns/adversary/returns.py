"""Exception returns to places of the kernel: target and status known, or one of a few."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

USER, FIQ, IRQ, SVC, ABT, UND, SYS = 0x10, 0x11, 0x12, 0x13, 0x17, 0x1B, 0x1F


def generate(w: Writer) -> Program:
    """A return to a loop, or to the end of a path."""
    w.add("mov r7, lr", "ldr r5, =d~", "and r0, r0, #1", f"mov r1, #{w.draw.randint(2, 5)}")
    if w.chance(0.3):
        w.slow(w.draw.choice([3, 20]))
    constant = w.chance(0.75)
    mode = w.draw.choice([SVC, SVC, SVC, SYS, IRQ, ABT, UND, USER, USER])
    masked = w.chance(0.8)
    state = mode | (0x80 if masked else 0) | (0x20 if w.board.thumb else 0)
    state |= w.draw.choice([0, 0x40]) | w.draw.choice([0, 0x80000000, 0x60000000])
    on = w.label("on")
    target = f"{on}+1" if w.board.thumb else on
    other = w.label("other") if not constant and w.chance(0.5) else ""
    w.add(f"ldr r3, ={target}", f"ldr r4, ={state:#x}")
    if other:
        aim = f"{other}+1" if w.board.thumb else other
        w.add(f"ldr r2, ={aim}", "cmp r0, #0", "movne r3, r2")
    elif not constant:
        w.add("cmp r0, #0", f"ldrne r4, ={state & ~0x1F | USER:#x}")
    form = leave(w)
    if other:
        w.add(f"{other}:", "nop")
        w.spin("r1", w.count())
    w.add(f"{on}:")
    if w.chance(0.7):
        w.spin("r1", w.count())
    elif w.chance(0.5):
        for condition in w.draw.sample(["eq", "mi", "cs", "vs"], 2):
            label = w.label("if")
            w.add(f"b{condition} {label}", "nop", f"{label}:")
    w.add("bx r7")
    inputs = tuple((("r0", i),) for i in range(2))
    kind = "User" if mode == USER else "masked" if masked else "unmasked"
    known = constant and "srs" not in form  # srs stores to an address that may be unknown
    return w.done("returns", inputs=inputs, constant_returns=known,
                  form=f"{form}, {'constant' if constant else 'one of two'}, {kind}")  # fmt: skip


def leave(w: Writer) -> str:
    """Return to the address in r3, with the status in r4; the name of the form.

    Only by ``mov`` and ``sub``: Unicorn executes other forms, such as ``adds pc``, as plain ones.
    """
    forms = {
        "subs pc, lr": ("mov lr, r3", "msr spsr_cxsf, r4", "subs pc, lr, #0"),
        "subs pc, lr, #4": ("add lr, r3, #4", "msr spsr_cxsf, r4", "subs pc, lr, #4"),
        "rfeia": ("add r12, r5, #128", "str r3, [r12]", "str r4, [r12, #4]", "rfeia r12"),
        "rfedb": ("add r12, r5, #128", "str r3, [r12]", "str r4, [r12, #4]", "add r12, r12, #8",
                  "rfedb r12"),
        "rfeia sp!": ("push {r3, r4}", "rfeia sp!"),
        "srsdb, rfeia": ("mov lr, r3", "msr spsr_cxsf, r4", "srsdb sp!, #0x13", "rfeia sp!"),
    }  # fmt: skip
    if not w.board.thumb:
        forms |= {
            "movs pc, lr": ("mov lr, r3", "msr spsr_cxsf, r4", "movs pc, lr"),
            "movs pc, r3": ("msr spsr_cxsf, r4", "movs pc, r3"),
            "msr in parts": ("mov lr, r3", "msr spsr_fsx, r4", "msr spsr_c, r4", "movs pc, lr"),
            "subs pc, r3": ("msr spsr_cxsf, r4", "add r3, r3, #8", "subs pc, r3, #8"),
            "ldm ^": ("msr spsr_cxsf, r4", "str r3, [r5, #68]", "add r12, r5, #64",
                      "ldm r12, {r2, pc}^"),
            "ldm sp!, ^": ("msr spsr_cxsf, r4", "push {r0, r1, r3}", "ldm sp!, {r0, r1, pc}^"),
            "rfeib": ("add r12, r5, #128", "str r3, [r12, #4]", "str r4, [r12, #8]", "rfeib r12"),
            "movnes pc, lr": ("mov lr, r3", "msr spsr_cxsf, r4", "cmp r12, #0", "movsne pc, lr",
                              "bx r7"),
            "spsr by the other mode": ("cps #0x12", "mov lr, r3", "msr spsr_cxsf, r4", "cps #0x13",
                                       "mov r12, #0xd3", "msr spsr_cxsf, r12", "cps #0x12",
                                       "movs pc, lr"),
        }  # fmt: skip
    name = w.draw.choice(sorted(forms))
    w.add(*forms[name])
    return name
