"""Random functions that test for interrupts in every way a kernel may."""

from __future__ import annotations

import random

__all__ = ["HIGH", "LEVELS", "LOW", "program"]

LOW, HIGH = 0xF800_0058, 0xF800_005C
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")

HEAD = f"""
#define LOW (*(volatile unsigned *){LOW:#x}u)
#define HIGH (*(volatile unsigned *){HIGH:#x}u)
unsigned memory[64];
static inline int both(void) {{ return (LOW | HIGH) != 0; }}
static inline int either(void) {{ return LOW || HIGH; }}
__attribute__((noinline)) int called(void) {{ return (HIGH | LOW) != 0; }}
__attribute__((noinline)) void work(unsigned n) {{
    for (unsigned i = 0; i < (n & 7); i++) memory[(n + i) & 63] += i;
}}
"""


def program(seed: int) -> str:
    """C with ``main(a, b)``, which returns 1 when it is preempted."""
    return _Writer(seed).program()


class _Writer:
    """Draws functions that return 1 when they are preempted."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def program(self) -> str:
        parts = [HEAD]
        for number in range(3):
            callees = [f"f{n}" for n in range(number)]
            body = "".join(self.statement(callees, 2) for _ in range(self.draw.randrange(1, 4)))
            parts.append(
                f"__attribute__((noinline)) int f{number}(unsigned a, unsigned b)\n"
                f"{{ unsigned x = a;\n{body} work(x); return 0; }}"
            )
        parts.append("int main(unsigned a, unsigned b) { return f2(a, b); }")
        return "\n".join(parts)

    def statement(self, callees: list[str], depth: int) -> str:
        kind = self.draw.randrange(8 if depth > 0 else 5)
        test = self.draw.choice(["both()", "either()", "called()"])
        if kind == 0:
            return f"if ({test}) return 1;\n"
        if kind == 1 or (kind == 2 and not callees):
            return f"work(b + {self.draw.randrange(9)});\n"
        if kind == 2:
            return f"if ({self.draw.choice(callees)}(b, x)) return 1;\n"
        if kind == 3:
            return f"{{ int flag = {test}; x += memory[b & 63]; if (flag) return 1; }}\n"
        if kind == 4:
            return f"if ((x & {1 << self.draw.randrange(4)}) | {test}) return 1;\nx++;\n"
        inside = "".join(self.statement(callees, depth - 1) for _ in range(2))
        if kind == 5:
            return f"if (b & {1 << self.draw.randrange(4)}) {{ {inside} }}\n"
        if kind == 6:
            return f"do {{ {inside} x += 3; }} while (!{test} && x < 20);\n"
        i = f"i{depth}"
        return f"for (unsigned {i} = 0; {i} < (b & 3) + 1; {i}++) {{ {inside} work({i}); }}\n"
