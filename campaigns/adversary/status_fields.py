"""Status words that are written field by field: flags, GE, masks, mode, and the SPSR's."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

SVC = 0x13
FIELDS = ("f", "s", "x", "c")


def generate(w: Writer) -> Program:
    """Writes by ``msr``, and code that depends on the bits."""
    w.add("mov r6, lr", "ldr r5, =d~", "and r0, r0, #3", "mov r4, #0")
    if w.chance(0.4):
        form = restored(w)
    else:
        form = written(w)
    w.add("bx r6")
    inputs = tuple((("r0", i),) for i in range(4))
    return w.done("status_fields", inputs=inputs, enumerated=True, form=form,
                  constant_returns=True)  # fmt: skip


def word(w: Writer, fields: str) -> int:
    """A status of Supervisor mode, masked; reserved and execution bits clear, the others any."""
    flags = w.draw.randrange(32) << 27 if "f" in fields else 0
    greater = w.draw.randrange(16) << 16 if "s" in fields else 0
    abort = w.draw.choice([0, 0x100]) if "x" in fields else 0
    control = SVC | 0x80 | w.draw.choice([0, 0x40]) if "c" in fields else 0
    return flags | greater | abort | control


def noise(w: Writer, fields: str) -> int:
    """Bits of unwritten fields, which have no effect."""
    if w.chance(0.5):
        return 0
    found = w.draw.getrandbits(32)
    for field, bits in zip(FIELDS, (0xFF000000, 0x00FF0000, 0x0000FF00, 0xFF), strict=True):
        if field in fields:
            found &= ~bits
    return found


def some_fields(w: Writer) -> str:
    """One to four fields; mostly flags among them, or alone."""
    if w.chance(0.3):
        return w.one_of("f", "s", "c")
    return "".join(field for field in FIELDS if w.chance(0.6)) or "f"


def write(w: Writer, register: str, fields: str, value: int, condition: str = "") -> None:
    """Write by a register, or by an immediate where one exists."""
    single = len(fields) == 1 and not w.board.thumb and register == "cpsr"
    if single and fields in "fc" and w.chance(0.5):
        w.add(f"msr{condition} {register}_{fields}, #{value & 0xFFFFFFFF:#x}")
        return
    value |= noise(w, fields)
    if w.board.armv7 and register == "cpsr" and w.chance(0.3):  # which msr leaves alone there
        value |= w.draw.choice([0x20, 0x0100_0000, 0x0600_FC00, 0x0700_FC20])
    w.add(f"ldr r2, ={value & 0xFFFFFFFF:#x}")
    w.add(f"msr{condition} {register}_{fields}, r2")


def written(w: Writer) -> str:
    """Writes of the CPSR."""
    all_fields = ""
    for _ in range(w.draw.randint(1, 3)):
        fields = some_fields(w)
        all_fields += fields
        condition = ""
        if w.chance(0.25):
            w.add("cmp r0, #1")
            condition = w.one_of("eq", "ne", "hi", "ls")
        value = word(w, fields)
        if "f" in fields and w.chance(0.25) and not condition:  # an unknown value
            w.add("lsl r2, r0, #29", f"orr r2, r2, #{value & 0xFF:#x}")
            w.add(f"msr cpsr_{fields if fields in ('f', 's') else 'f'}, r2")
        else:
            write(w, "cpsr", fields, value, condition)
        if w.chance(0.3):
            w.add(w.one_of("movs r1, #0", "cmp r4, #0", "adds r4, r4, #1", "mov r1, #3"))
    return f"cpsr_{''.join(f for f in FIELDS if f in all_fields)}: {observe(w)}"


def observe(w: Writer) -> str:
    """Read flags by conditions, the word by mrs, GE by sel."""
    kind = w.draw.randrange(4)
    if kind == 0:
        w.add("mov r1, #0xff", "mov r2, #0", "sel r3, r1, r2")
        w.bits("r3", 0, 3)
        return "sel"
    if kind == 1:
        w.add("mrs r3, cpsr")
        if w.chance(0.5):
            w.add("lsr r3, r3, #24")
        w.bits("r3", *w.draw.sample([0, 1, 3, 4, 5, 6, 7], 3))
        return "mrs"
    for condition in w.draw.sample(["eq", "cs", "mi", "vs", "hi", "ge", "gt", "le"], 4):
        other = w.label("if")
        w.add(f"b{condition} {other}", "mov r1, #1", f"{other}:")
    return "conditions"


def restored(w: Writer) -> str:
    """Write the SPSR field by field, and return by an exception return: flags, masks, state."""
    pieces = w.draw.choice([("cxsf",), ("cxsf", "f"), ("cxsf", "s"), ("fsx", "c"), ("c", "fsx"),
                            ("f", "s", "x", "c"), ("cxsf", "c")])  # fmt: skip
    thumb = 0x20 if w.board.thumb else 0
    for fields in pieces:
        write(w, "spsr", fields, word(w, fields) | (thumb if "c" in fields else 0))
    on = w.label("on")
    target = f"{on}+1" if w.board.thumb else on
    w.add(f"ldr r3, ={target}")
    if w.board.thumb:
        w.add("mov lr, r3", f"subs pc, lr, #{w.one_of('0', '0')}")
    else:
        w.add(w.one_of("movs pc, r3", "subs pc, r3, #0"))
    w.add(f"{on}:")
    return f"spsr_{','.join(pieces)}: {observe(w)}"
