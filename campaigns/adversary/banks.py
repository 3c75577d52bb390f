"""Shared and banked registers of modes, and state that User mode may not change."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["change_mode", "generate"]

USER, FIQ, IRQ, SVC, ABT, UND, SYS = 0x10, 0x11, 0x12, 0x13, 0x17, 0x1B, 0x1F
PRIVILEGED = (FIQ, IRQ, SVC, ABT, UND, SYS)
VALUES = (1, 2, 5, 12, 30, 77)


def generate(w: Writer) -> Program:
    """A walk through modes that writes banked registers, and then reads one of them."""
    walk = Walk(w)
    w.add("mov r6, lr", "ldr r5, =d~")
    for _ in range(w.draw.randint(1, 3)):
        walk.write()
    for _ in range(w.draw.randint(1, 5)):
        if w.chance(0.5):
            walk.move()
        walk.write()
    form = walk.read()
    w.add("bx r6")
    inputs = tuple((("r0", i),) for i in range(2))
    return w.done("banks", inputs=inputs, enumerated=True, form=form,
                  constant_returns=True)  # fmt: skip


def change_mode(w: Writer, mode: int) -> None:
    """Change the mode, with interrupts masked, by any instruction for it; r3 may change."""
    kind = w.draw.randrange(4)
    if kind == 0:
        w.add(f"cps #{mode:#x}")
    elif kind == 1 and not w.board.thumb:
        w.add(f"msr cpsr_c, #{mode | 0xC0:#x}")
    elif kind == 2:
        w.add(f"cpsid if, #{mode:#x}")
    else:
        w.add(f"mov r3, #{mode | 0xC0:#x}", "msr cpsr_c, r3")


class Walk:
    """The mode at each place, unless a condition decides it."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.mode = SVC
        self.known = True

    def move(self) -> None:
        """Change to any mode; no instruction leaves User mode, but some are tried."""
        w = self.w
        mode = w.draw.choice([*PRIVILEGED, SYS, SYS, USER])
        kind = w.draw.randrange(8)
        if kind == 0 and not w.board.thumb:  # perhaps
            mode = w.draw.choice(PRIVILEGED)
            w.add("cmp r0, #0", f"msr{w.one_of('eq', 'ne')} cpsr_c, #{mode | 0xC0:#x}")
            self.known = self.mode in (mode, USER)
            return
        if kind == 1 and self.known and self.mode not in (USER, SYS):
            on = w.label("on")
            target = f"{on}+1" if w.board.thumb else on
            state = mode | 0xC0 | (0x20 if w.board.thumb else 0)
            w.add(f"mov r3, #{state:#x}", "msr spsr_cxsf, r3", f"ldr lr, ={target}")
            w.add("subs pc, lr, #0" if w.board.thumb else "movs pc, lr", f"{on}:")
        elif kind == 2 and not w.board.thumb and self.known and self.mode not in (USER, SYS):
            on = w.label("on")
            w.add(f"ldr r2, ={on}", f"mov r3, #{mode | 0xC0:#x}", "add r4, r5, #128")
            w.add("stm r4, {r2, r3}", "rfeia r4", f"{on}:")
        else:
            change_mode(w, mode)
            self.known = True
        if self.mode != USER:
            self.mode = mode

    def write(self) -> None:
        """Write a banked register, of this mode or, by ``ldm ^``, of User mode."""
        w = self.w
        value = w.draw.choice(VALUES)
        kind = w.draw.randrange(8)
        if kind < 3:
            w.add(f"mov r1, #{value}", f"mov {w.one_of('sp', 'lr', 'lr')}, r1")
        elif kind == 3:
            w.add(f"mov r{w.draw.randint(8, 12)}, #{value}")
        elif kind == 4 and not w.board.thumb and self.known and self.mode not in (USER, SYS):
            self.load_user()
        elif kind == 5 and not w.board.thumb and self.known and self.mode not in (USER, SYS):
            registers = w.one_of("sp, lr", "lr", "r8-r12", "r4, sp", "r0-r14")
            w.add(f"add r4, r5, #{4 * w.draw.randrange(16)}", f"stm r4, {{{registers}}}^")
        elif kind == 6 and not w.board.thumb:
            w.add(f"mov r1, #{value}", f"add {w.one_of('sp', 'lr')}, r1, #{w.draw.randrange(4)}")
        elif kind == 7 and self.mode == USER and self.known:
            w.add(w.one_of("cpsie i", "cpsie if", "cpsid i"))  # without effect
        elif kind == 7:
            w.add(w.one_of("cpsid i", "cpsid if", "mov r1, sp", "mov r1, lr"))
        else:
            w.add(f"mov r1, #{value}", "mov lr, r1")

    def load_user(self) -> None:
        """Load User mode's registers from known words, by ``ldm ^`` without pc."""
        w = self.w
        registers = w.draw.choice([("sp", "lr"), ("lr",), ("sp",), ("r8", "lr"), ("r1", "sp", "lr"),
                                   ("r8", "r9", "r12"), ("r3", "r4", "lr")])  # fmt: skip
        form, at = w.draw.choice([("ia", 0), ("ib", -4), ("db", 4 * len(registers))])
        values = [w.draw.choice(VALUES) for _ in registers]
        if w.chance(0.5):
            label = w.label("words")
            w.after += [".balign 4", f"{label}:", *(f"    .word {value}" for value in values)]
            w.add(f"ldr r2, ={label}")
        else:
            place = 4 * w.draw.randrange(16)
            for i, value in enumerate(values):
                w.add(f"mov r2, #{value}", f"str r2, [r5, #{place + 4 * i}]")
            w.add(f"add r2, r5, #{place}")
        w.add(f"add r2, r2, #{at}" if at >= 0 else f"sub r2, r2, #{-at}")
        w.add(f"ldm{form} r2, {{{', '.join(registers)}}}^", "nop")

    def read(self) -> str:
        """The form of the decision: by a banked register, or by a branch target."""
        w = self.w
        kind = w.draw.randrange(6)
        if kind == 0:
            self.branch()
            return "branch"
        if kind == 5 and self.known and self.mode not in (USER, SYS):
            self.saved()
            return "srs"
        if kind == 1:
            change_mode(w, w.draw.choice([*PRIVILEGED, USER]))
            w.add(f"mov r0, r{w.draw.randint(8, 12)}")
            w.bits("r0")
            return "FIQ"
        if kind == 2 and not w.board.thumb and self.known and self.mode not in (USER, SYS):
            w.add("add r4, r5, #64", "stm r4, {sp, lr}^", f"ldr r0, [r4, #{w.one_of('0', '4')}]")
            w.bits("r0", 0, 1, 2)
            return "stm"
        if w.chance(0.6):
            mode = w.draw.choice([SYS, SYS, SVC, IRQ, USER])
            change_mode(w, mode)
        w.add(f"mov r0, {w.one_of('sp', 'lr')}")
        w.bits("r0")
        return "value"

    def branch(self) -> None:
        """Branch to one of two addresses in registers of two modes."""
        w = self.w
        one, two = w.label("one"), w.label("two")
        bit = "+1" if w.board.thumb else ""
        w.add(f"ldr r1, ={one}{bit}", f"ldr r2, ={two}{bit}")
        self.go(w.draw.choice([SVC, IRQ, SYS, SYS, SYS]))
        w.add("mov lr, r1")
        self.go(w.draw.choice([SVC, IRQ, SYS]))
        if w.board.thumb or w.chance(0.4) or self.mode in (USER, SYS) or not self.known:
            w.add("mov lr, r2")
        elif w.chance(0.5):
            w.after += [".balign 4", "c~:", f"    .word {two}{bit}"]
            w.add("ldr r4, =c~", "ldm r4, {lr}^", "nop")
        else:
            w.add(f"add r4, r5, #{4 * w.draw.randrange(8)}", "str r2, [r4]", "ldm r4, {lr}^", "nop")
        self.go(w.draw.choice([SVC, SYS, SYS, USER, USER]))
        if w.chance(0.4):
            self.go(w.draw.choice(PRIVILEGED))
        if w.chance(0.3):
            w.add("mov r1, lr", "bx r1")
        else:
            w.add(w.one_of("bx lr", "mov pc, lr"))
        w.add("nop", f"{one}:")
        w.spin("r1", w.count())
        w.add(f"{two}:")

    def saved(self) -> None:
        """Use ``srs`` on the stack of another mode, in the data."""
        w = self.w
        mode = w.draw.choice([IRQ, SVC, ABT, UND, SYS])
        back = w.draw.choice([IRQ, SVC, ABT])
        value = w.draw.choice(VALUES)
        self.go(mode)
        w.add("add r4, r5, #64", "mov sp, r4")
        self.go(back)
        w.add(f"mov r1, #{value}", "mov lr, r1", "mov r2, #0xd3", "msr spsr_cxsf, r2")
        w.add(f"srsdb sp!, #{mode:#x}" if w.chance(0.6) else f"srsia sp, #{mode:#x}")
        w.add(f"ldr r0, [r5, #{w.draw.choice([56, 64])}]")
        w.bits("r0")

    def go(self, mode: int) -> None:
        """Change the mode by an instruction without effect in User mode; r3 may change."""
        change_mode(self.w, mode)
        self.known = True
        if self.mode != USER:
            self.mode = mode
