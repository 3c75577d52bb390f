"""Small preemptible kernels: system calls run with interrupts on, except under a lock."""

from __future__ import annotations

from pathlib import Path

from tests.testing.quoll.building import build

CODE = ("-Wl,-Ttext=0xf0010000", "-Wl,--section-start=.vectors=0xffff0000")

FRAME = """
__asm__(
".section .vectors, \\"ax\\"\\n.arm\\n"
"b .\\n"
".global vector_undefined, vector_svc, vector_prefetch_abort, vector_data_abort, vector_irq\\n"
".global exit_to_user_1, exit_to_user_2, exit_to_user_3\\n"
"vector_undefined: exit_to_user_1: movs pc, lr\\n"
"vector_svc: ldr pc, =entry_svc\\n"
"vector_prefetch_abort: exit_to_user_2: movs pc, lr\\n"
"vector_data_abort: exit_to_user_3: movs pc, lr\\n"
"nop\\n"
"vector_irq: ldr pc, =entry_irq\\n"
".ltorg\\n"
".text\\n"
".global exit_to_user, exit_to_user_4\\n"
".type entry_svc, %function\\n.type entry_irq, %function\\n"
"entry_svc: ldr sp, =stack_top\\n"
"push {r4-r11, lr}\\n"
"cpsie i\\n"
"bl main\\n"
"cpsid i\\n"
"pop {r4-r11, lr}\\n"
"exit_to_user: movs pc, lr\\n"
"entry_irq: sub lr, lr, #4\\n"
"ldr sp, =stack_top\\n"
"push {r0-r12, lr}\\n"
"bl handler\\n"
"pop {r0-r12, lr}\\n"
"exit_to_user_4: movs pc, lr\\n"
".ltorg\\n"
".bss\\n.align 3\\n.space 4096\\nstack_top: .space 8\\n.text\\n");
"""
LOCKS = """
static inline unsigned save(void) {
    unsigned flags;
    __asm__ volatile("mrs %0, cpsr\\n cpsid i" : "=r"(flags) : : "memory");
    return flags;
}
static inline void restore(unsigned flags) {
    __asm__ volatile("msr cpsr_c, %0" : : "r"(flags) : "memory");
}
volatile unsigned cells[64], ticks;
void handler(void) { ticks++; }
"""
CALLS = """
__attribute__((noinline)) void add(unsigned n) {
    unsigned flags = save();
    for (unsigned i = 0; i < (n & 15); i++) cells[i]++;
    restore(flags);
}
__attribute__((noinline)) unsigned take(void) { return save(); }
__attribute__((noinline)) void give(unsigned flags) { restore(flags); }
__attribute__((noinline)) void work(void) { for (unsigned i = 0; i < 64; i++) cells[i] ^= i; }
unsigned main(unsigned n) {
    add(n);
    work();
    unsigned flags = take();
    add(n);             /* nested: it stays masked */
    cells[0] = n;
    give(flags);
    work();
    return cells[1];
}
"""


def preemptible(source: str = CALLS, optimise: str = "-O2", *, thumb: bool = False) -> Path:
    """A kernel with ``main`` as its system call, unmasked, and ``handler`` as its interrupt."""
    cpu = "cortex-a8" if thumb else "arm1136jf-s"
    return build(FRAME + LOCKS + source, *CODE, optimise=optimise, thumb=thumb, cpu=cpu)
