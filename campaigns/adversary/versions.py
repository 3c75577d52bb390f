"""Differences between ARMv6 and ARMv7: writes to the pc, unaligned accesses, instructions."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]


def generate(w: Writer) -> Program:
    """A transfer whose state depends on the architecture, or an unaligned word."""
    if w.chance(0.15):
        return unaligned(w)
    if w.chance(0.1):
        return refused(w)
    return transfer(w)


def transfer(w: Writer) -> Program:
    """A transfer to code of both states, whose loops show which one runs."""
    w.add("mov r6, lr", "ldr r5, =d~", "and r0, r0, #1")
    both, arm, thumb, out = w.label("both"), w.label("arm"), w.label("thumb"), w.label("out")
    bit = w.draw.choice([1, 1, 0])
    sure = w.chance(0.6)
    w.add(f"ldr r3, ={both}+{bit}" if sure or w.board.thumb else f"ldr r3, ={both}")
    if not sure and not w.board.thumb:
        w.add("cmp r0, #0", f"orr{w.one_of('eq', 'ne')} r3, r3, #1")
    form = thumb_form(w, bit) if w.board.thumb else arm_form(w)
    w.add(".balign 4")
    # As ARM code "mov lr, r2", as Thumb code a branch two instructions on.
    w.add(f"{both}:", ".word 0xe1a0e002", ".arm", f"b {arm}", ".thumb", f"{thumb}:", "movs r1, #5")
    again = w.label("again")
    w.add(f"{again}:", "subs r1, r1, #1", f"bne {again}", ".balign 4", "bx pc", "nop", ".arm")
    w.add(f"b {out}", f"{arm}:", "mov r1, #3")
    w.spin("r2", w.count(), "nop")
    w.add(f"{out}:", "bx r6", ".ltorg")
    if w.board.thumb:
        w.add(".thumb")
    inputs = tuple((("r0", i),) for i in range(2))
    return w.done("versions", inputs=inputs, form=form)


def arm_form(w: Writer) -> str:
    """From ARM state to the address in r3."""
    forms = {
        "mov pc": ("mov pc, r3",),
        "movne pc": ("cmp r6, #0", "movne pc, r3"),
        "add pc": ("sub r3, r3, #4", "mov r2, #4", "add pc, r3, r2"),
        "sub pc": ("add r3, r3, #8", "sub pc, r3, #8"),
        "orr pc": ("mov r2, #0", "orr pc, r3, r2"),
        "bic pc": ("bic pc, r3, #0",),
        "mov pc, shifted": ("lsl r2, r3, #0", "mov pc, r2, lsl #0"),
        "ldr pc": ("str r3, [r5]", "ldr pc, [r5]"),
        "ldr pc, post-indexed": ("str r3, [r5]", "ldr pc, [r5], #4"),
        "ldm pc": ("str r3, [r5, #4]", "ldm r5, {r2, pc}"),
        "pop pc": ("push {r3}", "pop {pc}"),
        "pop r2, pc": ("push {r2, r3}", "pop {r2, pc}"),
        "bx": ("bx r3",),
        "blx": ("blx r3",),
        "mvn pc": ("mvn r3, r3", "mvn pc, r3"),
        "eor pc": ("eor r3, r3, #16", "eor pc, r3, #16"),
        "rsb pc": ("mov r2, #0", "rsb pc, r2, r3"),
    }
    name = w.draw.choice(sorted(forms))
    w.add(*forms[name])
    return f"ARM {name}"


def thumb_form(w: Writer, bit: int) -> str:
    """From Thumb state; bit 0 of r3 says the state where the form heeds it."""
    forms = {
        "mov pc": ("mov pc, r3",),
        "add pc": ("mov r2, pc", "subs r3, r3, r2", "subs r3, #6", "add pc, r3"),
        "ldr pc": ("str r3, [r5]", "ldr pc, [r5]"),
        "ldm pc": ("str r3, [r5, #4]", "ldm r5, {r2, pc}"),
        "pop pc": ("push {r3}", "pop {pc}"),
        "bx": ("bx r3",),
        "blx": ("blx r3",),
    }
    name = w.draw.choice(sorted(forms))
    w.add(*forms[name])
    return f"Thumb {name}, bit 0 {'set' if bit else 'clear'}"


def unaligned(w: Writer) -> Program:
    """Known bytes, and a load or a store across two words."""
    place, shift = 4 * w.draw.randrange(4), w.draw.randint(1, 3)
    w.add("mov r6, lr", "ldr r5, =d~")
    for i in range(3):
        w.add(f"ldr r2, ={w.draw.getrandbits(32):#x}", f"str r2, [r5, #{place + 4 * i}]")
    form = w.one_of("ldr", "ldrh", "ldrsh", "str", "strh")
    w.add(f"{form} {'r4' if form[0] == 'l' else 'r6'}, [r5, #{place + shift}]")
    if form[0] == "s":
        w.lines[-1] = f"    mov r3, #0x5a\n    {form} r3, [r5, #{place + shift}]"
        w.add(f"ldr r4, [r5, #{place + 4 * w.draw.randrange(2)}]")
    w.bits("r4", *w.draw.sample(range(12), 4))
    w.add("bx r6")
    return w.done("versions", form=f"{form} at an odd place")


V7_ONLY = {
    0xE7C40111: "bfi", 0xE7C2009F: "bfc", 0xE7E20151: "ubfx", 0xE7A20151: "sbfx",
    0xE3010234: "movw", 0xE3400001: "movt", 0xE0603291: "mls", 0xE6FF0F31: "rbit",
    0xF57FF05F: "dmb", 0xF57FF04F: "dsb", 0xF57FF06F: "isb",
}  # fmt: skip
LATER = {0xE710F211: "sdiv", 0xE730F211: "udiv", 0xE1910C9F: "lda"}
LATER_THUMB = {0xFB91F0F2: "sdiv", 0xFBB1F0F2: "udiv"}
UNPREDICTABLE = {
    0xE01F0391: "muls pc", 0xE4900004: "ldr r0, [r0], #4", 0xE8B00003: "ldm r0!, {r0, r1}",
    0xE0800192: "umull r0, r0", 0xE1000090: "swp r0, r0, [r0]", 0xE1801F91: "strex r1, r1",
    0x014FF000: "mrseq pc", 0xE1C010D0: "ldrd r1",
}  # fmt: skip
UNPREDICTABLE_THUMB = {
    0xF8500B04: "ldr r0, [r0], #4", 0xE8B00003: "ldm r0!, {r0, r1}", 0xFBA10002: "umull r0, r0",
}  # fmt: skip


def refused(w: Writer) -> Program:
    """An instruction that the core lacks, or whose form the manual gives no meaning."""
    if w.board.thumb:
        forms = LATER_THUMB | UNPREDICTABLE_THUMB
    elif w.board.armv7:
        forms = LATER | UNPREDICTABLE
    else:
        forms = LATER | V7_ONLY | UNPREDICTABLE
    code = w.draw.choice(sorted(forms))
    out = w.label("out")
    w.add("ldr r1, =d~", "cmp r0, #0", f"beq {out}")
    w.add(f".inst{'.w' if w.board.thumb else ''} {code:#x}", f"{out}:", "bx lr")
    return w.done("versions", form=f"refused: {forms[code]}", meaningless=True)
