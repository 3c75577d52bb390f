"""Random C functions whose loop limits are changed through pointers kept in locals.

All pointers are to objects of the program, and each is used with its object's type, so that every
execution satisfies assumption S1: no pointer of unknown origin points into a frame.
"""

from __future__ import annotations

import random

__all__ = ["aliasing_program"]

PRELUDE = """volatile unsigned sink;
unsigned table[64], *outside = table, *keep = table;
struct pair { unsigned *first, *second; };
"""

OBJECTS = ("&n", "&m", "&spare", "words + 1", "words + (a & 3)", "table + (b & 63)", "outside")
PLACES = ("p", "q", "*pp", "both.first", "both.second", "slots[a & 1]", "slots[1]")


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def place(self) -> str:
        """Something that holds a pointer to a word."""
        return self._chance.choice(PLACES)

    def statement(self) -> str:
        """A copy of a pointer, or a store through one."""
        kind = self._chance.randrange(6)
        if kind == 0:
            return f"{self.place()} = (unsigned *)({self._chance.choice(OBJECTS)});"
        if kind == 1:
            return f"{self.place()} = {self.place()};"
        if kind == 2:
            return f"pp = {self._chance.choice(['&p', '&q', '&slots[b & 1]', '&both.second'])};"
        if kind == 3:
            return f"*outside = {self._chance.randrange(99)};"
        if kind == 4:
            return f"if (b & {1 << self._chance.randrange(4)}) {self.statement()}"
        value = self._chance.choice(["a & 31", "b & 15", "7", "*q & 15"])
        return f"*{self.place()} = {value};"

    def statements(self, most: int) -> str:
        """Some of them."""
        return " ".join(self.statement() for _ in range(self._chance.randint(1, most)))


def aliasing_program(chance: random.Random) -> str:
    """The text of ``main(unsigned a, unsigned b)``, with one loop, or two."""
    w = _Writer(chance)
    inner = f"for (unsigned j = 0; j < m; j++) {{ sink = j; {w.statements(1)} }}"
    body = inner if chance.random() < 0.3 else "sink = i;"
    return f"""{PRELUDE}
int main(unsigned a, unsigned b)
{{
    volatile unsigned n = {chance.randint(2, 9)}, m = {chance.randint(2, 5)};
    unsigned spare = 1, words[4] = {{1, 2, 3, 4}}, *p = &spare, *q = words, *slots[2] = {{p, q}};
    unsigned **pp = &p;
    struct pair both = {{q, p}};
    {w.statements(6)}
    for (unsigned i = 0; i < n; i++) {{ {body} {w.statements(2)} if (i > 40) break; }}
    return spare + words[a & 3];
}}
""".replace("(unsigned *)(&n)", "(unsigned *)&n").replace("(unsigned *)(&m)", "(unsigned *)&m")
