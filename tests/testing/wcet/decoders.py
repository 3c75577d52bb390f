"""A small kernel with a decoder: operations of different lengths, one of them preemptible."""

from __future__ import annotations

from pathlib import Path

from tests.testing.quoll.building import build
from tests.testing.values.preemptible import HIGH, LOW
from tests.testing.wcet.interrupts import CODE, FRAME, REGISTERS

__all__ = ["DECODER", "FINALISING", "decoder"]

DECODER = f"""
#define PENDING ((*(volatile unsigned *){LOW:#x}u | *(volatile unsigned *){HIGH:#x}u) != 0)
unsigned memory[512];
__attribute__((noinline)) void delete_pool(void) {{
    for (unsigned i = 0; i < 400; i++) memory[i] = 0;
}}
__attribute__((noinline)) void copy(unsigned n) {{
    for (unsigned i = 0; i < (n & 63); i++) memory[i] = memory[i + 64];
}}
__attribute__((noinline)) unsigned lookup(unsigned n) {{
    unsigned found = 0;
    for (unsigned i = 0; i < (n & 15); i++) found += memory[i];
    return found;
}}
__attribute__((noinline)) int clear(unsigned n) {{
    for (unsigned i = 0; i < n; i++) {{
        for (unsigned k = 0; k < 24; k++) memory[k] = i;
        if (PENDING) return 1;
    }}
    return 0;
}}
int main(unsigned a, unsigned b) {{
    switch (a) {{
    case 0: if (clear(b)) return 1; break;
    case 1: delete_pool(); break;
    case 2: copy(b); break;
    case 3: return lookup(b) | 2;
    case 4: memory[0] = b; break;
    case 5: memory[1] += b; break;
    default: return 2;
    }}
    return 0;
}}
__attribute__((noinline)) void handler(void) {{ unsigned line = VECTOR; ACKNOWLEDGE = line; }}
"""


FINALISING = (
    DECODER.replace(
        "int main",
        """
__attribute__((noinline)) unsigned finalise(unsigned kind) {
    switch (kind) {
    case 1: delete_pool(); return 4;
    case 2: copy(kind); return 3;
    case 3: return lookup(memory[3]);
    case 4: memory[2] = 1; return 2;
    case 5: memory[3] = 5; return 1;
    default: return 0;
    }
}
int main""",
    )
    .replace("delete_pool(); break", "finalise(b); finalise(memory[7]); break")
    .replace(
        "copy(b); break", "for (unsigned i = 0; i < 3; i++) memory[i] += finalise(b + i); break"
    )
)


def decoder(source: str = DECODER, optimise: str = "-O2", *flags: str) -> Path:
    """The ELF of the kernel."""
    link = (*CODE, "-lgcc")
    return build(REGISTERS + source + FRAME, "-w", *flags, optimise=optimise, link=link)
