"""Programs that contradict assumptions about stores, to constants or into frames, and facts.

A fact about a count or about the cycles of a function is true, or every execution contradicts it.
"""

from __future__ import annotations

from dataclasses import replace

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]


def generate(w: Writer) -> Program:
    """A store that surely or possibly hits memory that an assumption excludes, or a fact."""
    if w.chance(0.3):
        return counted(w) if w.chance(0.6) else lasting(w)
    if w.chance(0.2):
        return saved_words(w)
    return constants(w) if w.chance(0.5) else frame(w)


def constants(w: Writer) -> Program:
    """A store into read-only memory, with all or some of its addresses, and loads."""
    w.add("mov r6, lr", "ldr r5, =d~", "ldr r4, =c~", "and r0, r0, #3", "and r1, r1, #3")
    words = [w.draw.randint(1, 30) for _ in range(8)]
    w.after += [".balign 4", "c~:", *(f"    .word {n}" for n in words)]
    value, place = w.draw.choice([1, 3, 9, 25, 31]), 4 * w.draw.randrange(4)
    sure = w.chance(0.7)
    if not sure:  # r0 decides between the two
        w.add("cmp r0, #2", "movhs r4, r5")
    w.add(f"mov r2, #{value}")
    form = store(w, "r4", place)
    w.add("ldr r4, =c~", f"ldr r3, [r4, #{place + 4 * w.draw.randrange(2)}]")
    if w.chance(0.3):
        w.count_down("r3", "add r12, r12, #1")
    else:
        w.bits("r3", 0, 1, 2, 3)
    w.add("bx r6")
    inputs = tuple((("r0", i), ("r1", j)) for i in range(4) for j in range(4))
    sure = sure and form != "loop"  # which an analysis may not follow to its end
    return w.done("contradictions", inputs=inputs, apart="" if sure else "S2",
                  form=f"{form} to constants{'' if sure else ' perhaps'}")  # fmt: skip


def counted(w: Writer) -> Program:
    """A fact about a place that every execution executes equally often."""
    turns, outer, calls = w.count(), w.draw.choice([1, 1, 2, 5]), w.draw.randint(1, 3)
    inside = Writer(w.draw, w.board, labels=500)
    between(inside)
    inside.spin("r3", turns, "t~:", "    add r5, r5, #1")
    around, name = inside.label("around"), "in a loop" if outer > 1 else "alone"
    lines = [line.strip() for line in inside.lines]
    if outer > 1:
        lines = [f"mov r8, #{outer}", f"{around}:", *lines, "subs r8, r8, #1", f"bne {around}"]
    callee = w.callee("count", "push {r8, lr}", *lines, "pop {r8, pc}")
    w.add("mov r6, lr", "ldr r4, =d~", "and r1, r1, #3")
    for _ in range(calls):
        between(w)
        w.add(f"bl {callee}")
    w.add("bx r6")
    scope, most = w.draw.choice([("", calls), (f" in {callee}", 1), (" in p~", calls)])
    most *= turns * outer
    wrong = w.chance(0.6)
    number = w.draw.randrange(most) if wrong else most + w.draw.choice([0, 0, 1, 9])
    fact = f"t~ executes at most {number} times{scope}\n"
    return judged(w, fact, f"count{scope[:3]}, {name}", wrong=wrong)


def lasting(w: Writer) -> Program:
    """A fact about the cycles of a function, which has a loop or two ways."""
    plain, turns = w.draw.randint(1, 40), w.count()
    ways = ["add r5, r5, #1"] * plain
    either, on = w.label("either"), w.label("on")
    choice = "cmp r0, #2", f"beq {either}"
    forms = {
        "straight": ways,
        "two ways": [*choice, *ways, f"b {on}", f"{either}:", *ways, f"{on}:"],
        "a loop": [f"mov r3, #{turns}", f"{either}:", *ways, "subs r3, r3, #1", f"bne {either}"],
    }  # fmt: skip
    name = w.draw.choice(sorted(forms))
    least = plain * turns if name == "a loop" else plain
    callee = w.callee("last", *forms[name], "bx lr")
    w.add("mov r6, lr", f"bl {callee}", "bx r6")
    least //= 2 if w.board.armv7 else 1
    wrong = least > 1 and w.chance(0.6)
    cycles = w.draw.randrange(1, least) if wrong else 1_000_000
    fact = f"function {callee} takes at most {cycles} cycles\n"
    return replace(judged(w, fact, name, wrong=wrong), inputs=())  # its steps are in no graph


def judged(w: Writer, fact: str, form: str, *, wrong: bool) -> Program:
    """The program with a fact."""
    inputs = tuple((("r0", i), ("r1", j)) for i in range(4) for j in range(2))
    more = {"wrong_facts": fact} if wrong else {"facts": fact}
    form = f"{'wrong' if wrong else 'true'} fact, {form}"
    return w.done("contradictions", inputs=inputs, form=form, **more)


def between(w: Writer) -> None:
    """A branch, a store or nothing, none of which is decided."""
    other = w.label("other")
    forms = (
        (),
        ("cmp r0, #2", f"beq {other}", "nop", f"{other}:"),
        ("str r2, [r4, r1, lsl #2]",),
        ("cmp r1, #1", "addeq r7, r7, #1"),
    )
    w.add(*w.draw.choice(forms))


def store(w: Writer, base: str, place: int) -> str:
    """r2 to ``base``, at ``place`` or within four words from there."""
    again = w.label("again")
    forms = {
        "str": (f"str r2, [{base}, #{place}]",),
        "str, index": (f"add {base}, {base}, #{place}", f"str r2, [{base}, r1, lsl #2]"),
        "str, masked index": ("and r3, r1, #1", f"add {base}, {base}, #{place}",
                              f"str r2, [{base}, r3, lsl #2]"),
        "strb, index": (f"add {base}, {base}, #{place}", f"strb r2, [{base}, r1]"),
        "strh": (f"strh r2, [{base}, #{place}]",),
        "stm": (f"add {base}, {base}, #{place}", "mov r3, r2", f"stm {base}, {{r2, r3}}"),
        "strd": (f"add {base}, {base}, #{place}", f"bic {base}, {base}, #7", "mov r3, r2",
                 f"strd r2, r3, [{base}]"),
        "strex": (f"add {base}, {base}, #{place}", f"ldrex r3, [{base}]",
                  f"strex r3, r2, [{base}]"),
        "loop": (f"add {base}, {base}, #{place}", "add r3, r0, #1", f"{again}:",
                 f"str r2, [{base}], #4", "subs r3, r3, #1", f"bne {again}"),
        "under a condition": ("cmp r1, #2", f"strlo r2, [{base}, #{place}]"),
        "under a condition, index": (f"add {base}, {base}, #{place}", "cmp r1, #2",
                                     f"strlo r2, [{base}, r1, lsl #2]"),
    }  # fmt: skip
    if not w.board.thumb:
        forms["swp"] = (f"add {base}, {base}, #{place}", f"swp r3, r2, [{base}]")
    name = w.draw.choice(sorted(forms))
    w.add(*forms[name])
    return name


def saved_words(w: Writer) -> Program:
    """A store that hits a saved register or the return address, wherever it goes."""
    other, on = w.label("other"), w.label("on")
    bit = "+1" if w.board.thumb else ""
    deep = w.chance(0.5)  # the index selects the two last words only, or all four
    local = w.draw.choice([0, 8])
    base, index = w.draw.choice([("sp", "r1"), ("r3", "r1"), ("r3", "r12")])
    offset = local + (8 if deep else 0)
    lines = [f"sub sp, sp, #{local}"] if local else []
    lines += [f"and {index}, r1, #{1 if deep else 3}", f"ldr r2, ={other}{bit}"]
    if base == "sp" and offset:
        base = "r3"
    lines += [f"add r3, sp, #{offset}"] if base == "r3" else []
    lines += [
        w.one_of(f"str r2, [{base}, {index}, lsl #2]", f"str r2, [{base}, {index}, lsl #2]!")
        if base == "r3" and not w.board.thumb
        else f"str r2, [{base}, {index}, lsl #2]"
    ]
    lines += [f"add sp, sp, #{local}"] if local else []
    callee = w.callee("hit", "push {r4-r6, lr}", *lines, "pop {r4-r6, pc}")
    w.add("mov r7, lr", f"bl {callee}", f"b {on}", f"{other}:", "nop")
    w.spin("r1", w.count())
    w.add(f"{on}:", "bx r7")
    inputs = tuple((("r1", i),) for i in range(4))
    return w.done("contradictions", inputs=inputs, form="saved words, surely")


def frame(w: Writer) -> Program:
    """A stack at a known address, and a store through a pointer whose addresses are all in it."""
    w.add("mov r6, lr", "mov r5, sp", "ldr r4, =d~+64", "and r0, r0, #3", "and r1, r1, #3")
    other, on = w.label("other"), w.label("on")
    bit = "+1" if w.board.thumb else ""
    kind = w.draw.randrange(3)
    switched = w.chance(0.6)
    w.add("ldr sp, =d~+128") if switched else w.add("sub r4, sp, #64")
    small, large = w.draw.sample([1, 2, 7, 12], 2)
    if kind == 0:  # a word of the frame
        w.add(f"mov r2, #{small}", "sub sp, sp, #48", "mov r3, r2", *(
            f"str r2, [sp, #{4 * i}]" for i in range(12)), f"mov r2, #{large}")  # fmt: skip
        form = store(w, "r4", 4 * w.draw.randrange(4))
        w.add(f"ldr r3, [sp, #{4 * w.draw.randrange(12)}]", "add sp, sp, #48")
        w.bits("r3", 0, 1, 2, 3)
    else:  # the return address, or a saved register, of a callee
        depth = w.draw.choice([32, 40, 48, 56])
        name, lines = written(w, "r4")
        callee = w.callee(
            "hit", f"push {{r3, {'r7, ' * (kind - 1)}lr}}", "nop", f"sub sp, sp, #{depth}",
            f"ldr r2, ={other}{bit}" if kind == 1 else f"mov r2, #{large}",
            *lines, f"add sp, sp, #{depth}", f"pop {{r3, {'r7, ' * (kind - 1)}pc}}",
        )  # fmt: skip
        form = f"{name} in a callee"
        w.add(f"mov r7, #{small}", f"bl {callee}", f"b {on}", f"{other}:")
        w.spin("r1", w.count())
        w.add(f"{on}:")
        w.bits("r7", 0, 1, 2, 3)
    w.add("mov sp, r5", "bx r6")
    inputs = tuple((("r0", i), ("r1", j)) for i in range(4) for j in range(4))
    sure = switched and "loop" not in form
    return w.done("contradictions", inputs=inputs, apart="" if sure else "F1 S1",
                  form=f"{form}, to a frame{', stack known' if switched else ''}")  # fmt: skip


def written(w: Writer, base: str) -> tuple[str, list[str]]:
    """The store as lines for a callee, with its name."""
    inside = Writer(w.draw, w.board, labels=500)
    name = store(inside, base, 4 * w.draw.randrange(16))
    return name, [line.strip() for line in inside.lines]
