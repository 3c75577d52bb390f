"""Tables of code and pointers to functions, in memory that can be written."""

from __future__ import annotations

from campaigns.adversary.program import Program, Writer

__all__ = ["generate"]


def generate(w: Writer) -> Program:
    """A transfer through a word that was only initialised, or that the program writes."""
    count = w.draw.randint(2, 4)
    bit = "+1" if w.board.thumb else ""
    w.add("push {r4-r7, lr}", "ldr r7, =d~", f"and r0, r0, #{count - 1 if count != 3 else 1}")
    targets = [
        w.callee(f"t{i}", f"mov r1, #{1 + 3 * i}", "1:", "subs r1, r1, #1", "bne 1b", "bx lr")
        for i in range(count)
    ]
    words = [f"{t}{bit}" if t.startswith(".L") else t for t in targets]
    initialised = w.chance(0.25)
    table = "~table"
    w.after += [".data", ".balign 4", f"t{table}:"]
    w.after += [f"    .word {word}" for word in words[: max(1, count - 1)]]
    w.after += ["    .word 0", ".text"]
    if w.chance(0.25):
        table = "~constants"
        w.after += [".balign 4", f"t{table}:", *(f"    .word {word}" for word in words)]
    if initialised or table == "~constants":
        w.add(f"ldr r6, =t{table}")
    else:
        w.add("add r6, r7, #64")
        for i, word in enumerate(words):
            w.add(f"ldr r2, ={word}", f"str r2, [r6, #{4 * i}]")
    if table != "~constants" and w.chance(0.5):
        change(w, words)
    kind = w.draw.randrange(5)
    back = w.label("back")
    if kind == 0:
        w.add("ldr r3, [r6, r0, lsl #2]", "blx r3")
    elif kind == 1:
        w.add("ldr r3, [r6]", "blx r3")
    elif kind == 2 and not w.board.thumb:
        w.add("mov lr, pc", "ldr pc, [r6, r0, lsl #2]")
    elif kind == 3:
        w.add(f"ldr lr, ={back}{bit}", "ldr r3, [r6, r0, lsl #2]", "bx r3", f"{back}:")
    else:
        w.add("str r0, [r7, #32]")
        if w.chance(0.5):
            w.add("mov r2, #1", w.one_of("strb r2, [r7, #32]", "str r2, [r7, #32]"))
        w.add("ldr r4, [r7, #32]", "ldr r3, [r6, r4, lsl #2]", "blx r3")
    if w.chance(0.5):
        w.spin("r1", w.count())
    w.add("pop {r4-r7, pc}")
    return w.done("tables", inputs=tuple((("r0", i), ("r1", j)) for i in range(4) for j in (0, 1)))


def change(w: Writer, words: list[str]) -> None:
    """Another function in one of the slots, by one of many stores."""
    other = w.draw.choice(words)
    w.add(f"ldr r2, ={other}")
    kind = w.draw.randrange(6)
    if kind == 0:
        w.add("str r2, [r6]")
    elif kind == 1:
        w.add("str r2, [r6, r0, lsl #2]")
    elif kind == 2:
        w.add("and r1, r1, #1", "str r2, [r6, r1, lsl #2]")
    elif kind == 3:
        w.add("mov r3, r2", "stm r6, {r2, r3}")
    elif kind == 4:
        w.add("strb r2, [r6]", "lsr r3, r2, #8", "strb r3, [r6, #1]")
    else:
        w.add("mov r3, r2", "strd r2, r3, [r6]")
