"""Tables of offsets and addresses with a base register, two of them in one program."""

from __future__ import annotations

from collections.abc import Callable

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]

Kind = Callable[[Writer, str, str, int], None]  # registers of base and index, number of cases


def generate(w: Writer) -> Program:
    """The same instruction at two places, with tables of its own or of both."""
    w.add("push {r4-r7, lr}")
    kinds = thumb_kinds() if w.board.thumb else arm_kinds()
    kind = w.draw.choice(sorted(kinds))
    base, index = w.draw.sample(["r1", "r2", "r3", "r4"], 2)
    apart = w.chance(0.3)  # each in a function of its own
    forms = [kind]
    for part in range(2):
        if part and w.chance(0.2):
            kind = w.draw.choice(sorted(kinds))
            forms.append(kind)
        count = w.draw.choice([2, 3, 4])
        sub = Writer(w.draw, w.board, labels=100 * (part + 1)) if apart else w
        kinds[kind](sub, base, index, count)
        if apart:
            name = w.callee(f"part{part}", "push {r4, lr}", *(x.strip() for x in sub.lines),
                            "pop {r4, pc}", ".ltorg")  # fmt: skip
            w.after += sub.after
            w.add(f"bl {name}")
    w.add("pop {r4-r7, pc}")
    inputs = tuple((("r0", i),) for i in range(5))
    return w.done("based_tables", inputs=inputs, form="; ".join(dict.fromkeys(forms)))


def checked(w: Writer, index: str, count: int) -> tuple[str, list[str], str]:
    """Check the index against the table; the label of the end, and the labels of the cases."""
    out = w.label("out")
    if w.chance(0.7):
        w.add(f"cmp r0, #{count - 1}", f"bhi {out}", f"mov {index}, r0")
    else:
        w.add(f"and {index}, r0, #{1 if count < 4 else 3}")
    return out, [w.label("case") for _ in range(count)], w.label("table")


def cases(w: Writer, labels: list[str], out: str) -> None:
    """The targets of the table: every case takes a different time."""
    order = list(labels)
    w.draw.shuffle(order)
    for label in order:
        w.add(f"{label}:")
        w.spin("r7", w.draw.randint(2, 9)) if w.chance(0.6) else w.add("nop", "add r5, r5, #1")
        w.add(f"b {out}")
    w.add(f"{out}:")


def offsets(unit: str) -> Kind:
    """``tbb`` or ``tbh`` with a base register."""

    def kind(w: Writer, base: str, index: str, count: int) -> None:
        out, labels, table = checked(w, index, count)
        here = w.label("here")
        w.add(w.one_of(f"ldr {base}, ={table}", f"ldr {base}, ={table}"))
        w.add("nop") if w.chance(0.3) else None
        w.add(f"tbb [{base}, {index}]" if unit == "byte" else f"tbh [{base}, {index}, lsl #1]")
        w.add(f"{here}:")
        cases(w, labels, out)
        size = ".byte" if unit == "byte" else ".hword"
        w.after += [".balign 4", f"{table}:", *(f"{size} ({x}-{here})/2" for x in labels),
                    ".balign 4"]  # fmt: skip

    return kind


def addresses(load: str) -> Kind:
    """Addresses in a table; ``load`` is the way to the pc."""

    def kind(w: Writer, base: str, index: str, count: int) -> None:
        out, labels, table = checked(w, index, count)
        w.add(f"ldr {base}, ={table}")
        if load == "ldr":
            w.add(f"ldr pc, [{base}, {index}, lsl #2]")
        elif load == "bx":
            w.add(f"ldr r12, [{base}, {index}, lsl #2]", "bx r12")
        elif load == "mov":
            w.add(f"ldr r12, [{base}, {index}, lsl #2]", "mov pc, r12")
        elif load == "add":
            w.add(f"add r12, {base}, {index}, lsl #2", "ldr pc, [r12]")
        elif load == "post":
            w.add(f"add {base}, {base}, {index}, lsl #2", f"ldr pc, [{base}], #4")
        else:
            w.add(f"add r12, {base}, {index}, lsl #2", "ldm r12, {r12, pc}")
        cases(w, labels, out)
        bit = "+1" if w.board.thumb else ""
        words = [f".word {x}{bit}" for x in labels]
        if load == "ldm":
            words = [".word 0", *words]
        w.after += [".balign 4", f"{table}:", *words]

    return kind


def scaled(w: Writer, base: str, index: str, count: int) -> None:
    """A byte or a halfword of a table, added to the pc."""
    out, labels, table = checked(w, index, count)
    here, narrow = w.label("here"), w.chance(0.5)
    w.add(f"ldr {base}, ={table}")
    if narrow:
        w.add(f"ldrb r12, [{base}, {index}]")
    else:
        w.add(f"add {index}, {index}, {index}", f"ldrh r12, [{base}, {index}]")
    w.add("add pc, pc, r12, lsl #2", "nop", f"{here}:")
    cases(w, labels, out)
    w.after += [".balign 4", f"{table}:", *(
        f"{'.byte' if narrow else '.hword'} ({x}-{here})/4" for x in labels), ".balign 4",
    ]  # fmt: skip


def steps(base_pc: str) -> Kind:
    """Branches one after another, and an offset into them: ``add pc``."""

    def kind(w: Writer, base: str, index: str, count: int) -> None:
        out, labels, _ = checked(w, index, count)
        first = w.label("first")
        if base_pc == "pc":
            w.add(f"add pc, pc, {index}, lsl #2", "nop", f"{first}:")
        elif base_pc == "twice":
            w.add(f"adr {base}, {first}", f"add pc, {base}, {index}, lsl #{w.draw.choice([2, 3])}",
                  f"{first}:")  # fmt: skip
        elif base_pc == "sub":
            w.add(f"ldr {base}, ={first}", f"rsb {index}, {index}, #{count - 1}",
                  f"add pc, {base}, {index}, lsl #2", f"{first}:")  # fmt: skip
        else:
            w.add(f"ldr {base}, ={first}", f"add {base}, {base}, {index}, lsl #2",
                  f"mov pc, {base}", f"{first}:")  # fmt: skip
        w.add(*(f"b {x}" for x in labels), *(f"b {labels[-1]}" for _ in labels))
        cases(w, labels, out)

    return kind


def one_table(w: Writer, base: str, index: str, count: int) -> None:
    """The same offsets for two ``tbb``: each is from its own place."""
    table, end = w.label("table"), w.label("end")
    w.add(f"cmp r0, #{count - 1}", f"bhi {end}", f"mov {index}, r0", f"ldr {base}, ={table}")
    for _ in range(2):
        out = w.label("next")
        w.add(f"tbb [{base}, {index}]")
        for case in range(count):
            w.add(f"adds r5, r5, #{case}", f"b.n {out}")
        w.add(f"{out}:")
        w.spin("r7", 3) if w.chance(0.4) else w.add("nop")
    w.add(f"{end}:")
    w.after += [".balign 4", f"{table}:", *(f".byte {2 * case}" for case in range(count)),
                ".balign 4"]  # fmt: skip


def one_base(w: Writer, base: str, index: str, count: int) -> None:
    """Two tables behind one another, found by one register that moves on."""
    table, words = w.label("table"), list[str]()
    w.add(f"and {index}, r0, #{1 if count < 4 else 3}", f"ldr {base}, ={table}")
    for part in range(2):
        out, labels = w.label("out"), [w.label("case") for _ in range(count)]
        if part:
            w.add(f"add {base}, {base}, #{4 * count}")
        w.add(f"ldr pc, [{base}, {index}, lsl #2]")
        cases(w, labels, out)
        words += labels
    bit = "+1" if w.board.thumb else ""
    w.after += [".balign 4", f"{table}:", *(f".word {x}{bit}" for x in words)]


def thumb_kinds() -> dict[str, Kind]:
    """By name."""
    return {
        "tbb": offsets("byte"), "tbh": offsets("half"), "ldr pc": addresses("ldr"),
        "ldr, bx": addresses("bx"), "add, ldr pc": addresses("add"),
        "tbb, one table": one_table, "ldr pc, one base": one_base,
    }  # fmt: skip


def arm_kinds() -> dict[str, Kind]:
    """By name."""
    return {
        "ldr pc": addresses("ldr"), "ldr, bx": addresses("bx"), "ldr, mov pc": addresses("mov"),
        "add, ldr pc": addresses("add"), "post-indexed": addresses("post"),
        "ldm": addresses("ldm"), "add pc, pc": steps("pc"), "add pc, base": steps("twice"),
        "add pc, from the end": steps("sub"), "add, mov pc": steps("mov"),
        "ldr pc, one base": one_base,
        "ldrb, add pc": scaled,
    }  # fmt: skip
