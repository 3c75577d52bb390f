"""One memory at two virtual addresses: stores through one, loads through the other."""

from __future__ import annotations

from campaigns.adversary.program import Input, Program, Writer
from campaigns.adversary.stores import counting, overlapping

__all__ = ["generate"]

BELOW = 0x1000_0000  # from the window to the second one


def generate(w: Writer) -> Program:
    """The platform describes the second window, or does not (rule 34)."""
    windows = w.draw.choice([2, 2, 2, 1])
    apart = "" if windows == 2 else "S3"
    w.add("push {r4-r7, lr}", "and r0, r0, #3", "and r1, r1, #1", "ldr r7, =d~")
    far = w.one_of("computed", "literal")
    if far == "computed":
        w.add(f"sub r12, r7, #{BELOW:#x}")
    else:
        w.add(f"ldr r12, =d~-{BELOW:#x}")
    if w.chance(0.7):
        of = counting if w.chance(0.1) else overlapping
        return of(w, "mappings", "r12", windows=windows, apart=apart)
    place, first, second = 4 * w.draw.randrange(8), w.draw.randint(1, 5), w.draw.choice([6, 9, 31])
    w.add(f"mov r4, #{first}", f"str r4, [r7, #{place}]", f"mov r5, #{second}")
    if w.chance(0.4):
        w.add("cmp r1, #0", f"strne r5, [r12, #{place}]")
    elif w.chance(0.3):
        w.add(f"add r3, r12, #{place}", "stm r3, {r5, r6}")
    else:
        w.add(f"{w.one_of('str', 'strb', 'strh')} r5, [r12, #{place}]")
    w.add(f"ldr r4, [r7, #{place}]")
    w.decide("r4", first, second)
    w.add("pop {r4-r7, pc}")
    inputs: tuple[Input, ...] = tuple((("r0", a), ("r1", b)) for a in range(4) for b in range(2))
    return w.done("mappings", inputs=inputs, enumerated=True, windows=windows, apart=apart)
