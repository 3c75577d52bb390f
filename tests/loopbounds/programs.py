"""Random C functions made of loops, in fixed shares of each kind."""

from __future__ import annotations

import random

__all__ = ["KINDS", "random_program"]

KINDS = (
    "up",
    "down",
    "do",
    "pointer",
    "structs",
    "shift",
    "bits",
    "memory",
    "field",
    "exits",
    "signed",
    "wrap",
    "minimum",
    "levels",
    "triangle",
    "skip",
)
PRELUDE = """volatile unsigned sink;
unsigned total, table[64];
struct state { unsigned left, index; } shared;
"""


class _Writer:
    """Writes one function; every loop has variables of its own."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def amount(self) -> str:
        """A small unsigned number, known or not."""
        mask = self._chance.choice([3, 7, 15, 31])
        value = self._chance.randint(0, 20)
        return self._chance.choice([f"{value}u", f"(a & {mask})", f"(b >> 3 & {mask})"])

    def body(self, depth: int) -> str:
        kind = self._chance.randint(0, 5)
        if depth and kind < 2:
            return self.loop(self._chance.choice(KINDS), depth - 1)
        if kind == 2:
            return "total += a;"
        if kind == 3:
            return "table[b & 63] = total;"
        return "sink = total;"

    def loop(self, kind: str, depth: int) -> str:
        i, n, step = self.name(), self.amount(), self._chance.choice([1, 1, 2, 3, 5])
        inside = self.body(depth)
        texts = {
            "up": f"for (unsigned {i} = 0; {i} < {n}; {i} += {step}) {{ {inside} }}",
            "down": f"for (unsigned {i} = {n}; {i} != 0; {i}--) {{ {inside} }}",
            "do": f"unsigned {i} = 0; do {{ {inside} }} while (++{i} < {n});",
            "pointer": f"for (unsigned *{i} = table, *{i}e = table + {n}; {i} != {i}e; {i}++)"
            f" {{ *{i} = 1; {inside} }}",
            "structs": f"struct state *{i} = (struct state *)table; while ({i} <"
            f" (struct state *)table + {n}) {{ {i}->left = 0; {i}++; {inside} }}",
            "shift": f"for (unsigned {i} = {n}; {i}; {i} >>= {step}) {{ {inside} }}",
            "bits": f"for (unsigned {i} = a; {i}; {i} &= {i} - 1) {{ {inside} }}",
            "memory": f"volatile unsigned {i}; for ({i} = 0; {i} < {n}; {i}++) {{ {inside} }}",
            "field": f"shared.left = {n}; while (shared.left) {{ shared.left--; sink = 1; }}",
            "exits": f"for (unsigned {i} = 0; {i} < {n}; {i}++) {{ if (sink == 77) break;"
            f" {inside} }}",
            "signed": f"for (int {i} = -{step}; {i} < (int){n}; {i} += {step}) {{ {inside} }}",
            "wrap": f"unsigned char {i} = a; do {{ {inside} {i} += {step | 1}; }}"
            f" while ({i} != 5);",
            "minimum": f"unsigned {i}n = a < {n} ? a : {n};"
            f"for (unsigned {i} = 0; {i} < {i}n; {i}++) {{ {inside} }}",
            "levels": f"unsigned {i} = 32; while ({i}) {{ unsigned {i}w = (sink & 15) + 1;"
            f" if ({i}w > {i}) break; {i} -= {i}w; }}",
            "triangle": f"for (unsigned {i} = 0; {i} < {n}; {i}++)"
            f" for (unsigned {i}j = 0; {i}j < {i}; {i}j++) {{ {inside} }}",
            "skip": f"for (unsigned {i} = 0; {i} < {n}; {i}++) {{ if ({i} & b & 1) {i} += 2;"
            f" {inside} }}",
        }
        return texts[kind]


def random_program(chance: random.Random) -> str:
    """The text of ``main(unsigned a, unsigned b)``, one or two loops in sequence."""
    writer = _Writer(chance)
    loops = [writer.loop(chance.choice(KINDS), 1) for _ in range(chance.randint(1, 2))]
    text = "\n    ".join(loops)
    return f"{PRELUDE}int main(unsigned a, unsigned b)\n{{\n    {text}\n    return 0;\n}}\n"
