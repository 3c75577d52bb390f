"""Loops whose length depends on operations that a library may not model: no exact bounds."""

from __future__ import annotations

from campaigns.adversary.program import Input, Program, Writer

__all__ = ["generate"]


def generate(w: Writer) -> Program:
    """Four bits of input, an operation, a loop; every input is tried."""
    w.add("push {r4-r7, lr}", "and r0, r0, #15", "and r1, r1, #3", "ldr r7, =d~")
    operation(w)
    limit = w.draw.choice([7, 15, 31])
    kind = w.draw.randrange(6)
    turns = w.label("turn")
    if kind == 0:
        w.add(f"and r4, r4, #{limit}")
        w.count_down("r4", "add r5, r5, #1")
    elif kind == 1:  # a bound beside the condition
        out = w.label("out")
        w.add(f"cmp r4, #{limit >> 1}", f"bhi {out}")
        w.count_down("r4", "add r5, r5, #1")
        w.add(f"{out}:")
    elif kind == 2:  # the condition only ends the loop early
        out = w.label("out")
        w.add(f"mov r6, #{limit}", f"{turns}:", f"cmp r6, #{w.draw.randint(1, limit)}")
        w.add(f"cmpeq r4, #{w.draw.randrange(200)}", f"beq {out}", "subs r6, r6, #1")
        w.add(f"bne {turns}", f"{out}:")
    elif kind == 3:  # it decides whether the loop, which another word bounds, is reached
        w.add(f"cmp r4, #{w.draw.randrange(20)}")
        w.add(f"pop{w.one_of('hi', 'ls', 'gt', 'le', 'ne')} {{r4-r7, pc}}")
        w.count_down("r0", "add r5, r5, #1")
    elif kind == 4:  # flags that it sets, or the ones it leaves alone
        w.add("cmp r0, #3", f"{w.one_of('qadd', 'usad8', 'uadd8', 'smulbb')} r4, r0, r1")
        w.add(f"pop{w.one_of('hi', 'ls', 'gt', 'le')} {{r4-r7, pc}}")
        w.count_down("r0", "add r5, r5, #1")
    else:  # a condition that the operation makes impossible, or forces
        w.add("mov r6, #0", f"cmp r4, #{w.draw.randrange(64)}")
        if w.chance(0.5):
            w.add(f"pop{w.one_of('hi', 'lo', 'gt', 'ge')} {{r4-r7, pc}}")
        w.add(f"cmp r4, #{w.draw.randrange(64)}", f"mov{w.one_of('hi', 'ls', 'eq')} r6, #{limit}")
        w.count_down("r6", "add r5, r5, #1")
    w.add("pop {r4-r7, pc}")
    inputs: tuple[Input, ...] = tuple((("r0", a), ("r1", b)) for a in range(16) for b in range(4))
    return w.done("unmodelled", inputs=inputs, enumerated=True)


def operation(w: Writer) -> None:
    """r4 from r0 and r1, of few bits each."""
    forms = [
        ("qadd r4, r0, r1",),
        ("qsub r4, r0, r1", "bic r4, r4, #0x80000000"),
        ("lsl r4, r0, #28", "qadd r4, r4, r4", "lsr r4, r4, #24"),
        ("qdadd r4, r0, r1",),
        ("usad8 r4, r0, r1",),
        ("usada8 r4, r0, r1, r0",),
        ("uadd8 r4, r0, r1", "sel r4, r0, r1"),
        ("usub8 r4, r0, r1", "sel r4, r0, r1"),
        ("ssat r4, #4, r0", "and r4, r4, #255"),
        ("usat r4, #3, r0",),
        ("pkhbt r4, r0, r1, lsl #16", "and r4, r4, #255"),
        ("uxtab r4, r0, r1",),
        ("smulbb r4, r0, r1",),
        ("smlabb r4, r0, r1, r0",),
        ("smuad r4, r0, r1",),
        ("umaal r4, r5, r0, r1", "and r4, r0, r1"),
        ("umull r4, r5, r0, r1",),
        ("rev r4, r0", "lsr r4, r4, #24"),
        ("revsh r4, r0", "and r4, r4, #15"),
        ("clz r4, r0",),
        ("uqadd8 r4, r0, r1",),
        ("uhadd8 r4, r0, r1",),
        ("str r0, [r7]", "ldrex r4, [r7]"),
        ("str r0, [r7]", "ldrex r5, [r7]", "strex r4, r1, [r7]", "add r4, r4, #3"),
        ("strb r0, [r7]", "mov r5, #0", "strb r5, [r7, #1]", "strh r5, [r7, #2]", "ldr r4, [r7]"),
        ("cmp r0, r1", "mrs r4, cpsr", "lsr r4, r4, #28"),
        ("subs r5, r0, r1", "mrs r4, cpsr", "and r4, r4, #31"),
        ("adds r5, r0, r1", "adc r4, r0, r1"),
        ("lsrs r5, r0, #2", "rrx r4, r1", "lsr r4, r4, #27"),
        ("vmov s0, r0", "vmov r4, s0"),
        ("vmov d0, r0, r1", "vmov r5, r4, d0"),
        ("vmov s0, r0", "vcvt.f32.u32 s0, s0", "vcvt.u32.f32 s0, s0", "vmov r4, s0"),
    ]
    if w.board.thumb:
        forms += [
            ("rbit r4, r0", "lsr r4, r4, #28"),
            ("ubfx r4, r0, #1, #2",),
            ("mov r4, #0", "bfi r4, r0, #1, #3"),
            ("movw r4, #3", "and r4, r4, r0"),
        ]
    w.add("mov r5, #0", *w.draw.choice(forms))
