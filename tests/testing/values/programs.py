"""Random C programs that end, with everything that values have to follow."""

from __future__ import annotations

import random

__all__ = ["random_program"]

HEAD = """
unsigned globals[8];
unsigned char bytes[16];
const unsigned constants[8] = {3, 1, 4, 1, 5, 9, 2, 6};
struct pair { unsigned a; short b; unsigned char c; };
struct pair pairs[3];
"""


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.functions = 0
        self.loops = 0

    def program(self, functions: int) -> str:
        text = [HEAD]
        for number in range(functions):
            text.append(self.function(f"f{number}"))
            self.functions = number + 1
        calls = " + ".join(f"f{n}(a + {n}, b, globals + {n % 4})" for n in range(functions))
        text.append(f"unsigned main(unsigned a, unsigned b) {{ return {calls}; }}")
        return "\n".join(text)

    def function(self, name: str) -> str:
        body = "\n".join(self.statement(1) for _ in range(self.rng.randrange(3, 7)))
        local = "unsigned x = a, y = b, t[4] = {1, a, 3, b}; struct pair q = {b, 5, 7};"
        return (
            f"unsigned {name}(unsigned a, unsigned b, unsigned *p)\n"
            f"{{\n {local}\n{body}\n return x ^ y ^ t[1] ^ q.a ^ q.c;\n}}"
        )

    def statement(self, depth: int) -> str:
        pad = " " * depth
        kind = self.rng.randrange(12 if depth < 4 else 7)
        if kind < 3:
            return f"{pad}{self.place()} {self.rng.choice(['=', '+=', '^=', '-='])} {self.value()};"
        if kind == 3:
            return f"{pad}p[{self.index(4)}] = {self.value()};"
        if kind == 4:
            return f"{pad}x = p[{self.index(4)}] + constants[{self.index(8)}];"
        if kind == 5:
            return f"{pad}bytes[{self.index(16)}] = {self.value()}; y += bytes[{self.index(16)}];"
        if kind == 6:
            return self.call(pad)
        inside = "\n".join(self.statement(depth + 1) for _ in range(self.rng.randrange(1, 4)))
        if kind == 7:
            return f"{pad}if ({self.test()}) {{\n{inside}\n{pad}}}"
        if kind == 8:
            other = self.statement(depth + 1)
            return f"{pad}if ({self.test()}) {{\n{inside}\n{pad}}} else {{\n{other}\n{pad}}}"
        if kind == 9:
            return self.switch(pad, depth)
        return self.loop(pad, inside)

    def loop(self, pad: str, inside: str) -> str:
        self.loops += 1
        i = f"i{self.loops}"
        count = self.rng.randrange(1, 6)
        if self.rng.random() < 0.3:
            leave = f"{pad} if ({self.test()}) break;\n"
            return (
                f"{pad}for (unsigned {i} = 0; {i} < (a & 7); {i}++) "
                f"{{ t[{i} & 3] += {i};\n{leave}{inside}\n{pad}}}"
            )
        head = self.rng.choice(
            [
                f"for (int {i} = 0; {i} < {count}; {i}++)",
                f"for (unsigned {i} = {4 * count}; {i} != 0; {i} -= 4)",
                f"for (unsigned *{i} = t; {i} != t + {min(count, 4)}; {i}++)",
            ]
        )
        use = f"*{i} ^= x;" if "*" in head else f"t[{i} & 3] += {i}; x ^= constants[{i} & 7];"
        return f"{pad}{head} {{ {use}\n{inside}\n{pad}}}"

    def switch(self, pad: str, depth: int) -> str:
        cases = "\n".join(
            f"{pad} case {n}: {self.statement(depth + 1).strip()} {self.rng.choice(['break;', ''])}"
            for n in range(self.rng.randrange(4, 8))
        )
        return f"{pad}switch ({self.rng.choice(['x & 7', 'y % 9', 'a'])}) {{\n{cases}\n{pad}}}"

    def call(self, pad: str) -> str:
        if not self.functions:
            return f"{pad}x += 1;"
        pointer = self.rng.choice(["p", "t", "globals", "globals + 2", "&globals[a & 3]"])
        callee = self.rng.randrange(max(0, self.functions - 2), self.functions)
        return f"{pad}y ^= f{callee}({self.value()}, {self.value()}, {pointer});"

    def index(self, size: int) -> str:
        name = self.rng.choice(["x", "y", "a", "b"])
        return self.rng.choice([str(self.rng.randrange(size)), f"{name} & {size - 1}"])

    def place(self) -> str:
        places = ["x", "y", "t[1]", "t[x & 3]", "globals[2]", "q.a", "q.b", "q.c"]
        return self.rng.choice([*places, "pairs[1].a", "pairs[1].b", "pairs[a & 1].c"])

    def value(self) -> str:
        term = ["x", "y", "a", "b", "q.a", "q.b", "q.c", "t[2]", "globals[2]", "pairs[1].b"]
        a, b = self.rng.choice(term), self.rng.choice([*term, str(self.rng.randrange(300))])
        forms = [
            *(
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"({a} & {b})",
                f"({a} >> ({b} & 7))",
            ),
            *(f"((int){a} >> 3)", f"(short){a}", f"({a} / 10)", f"({a} < {b} ? {a} : {b})", a, b),
        ]
        return self.rng.choice(forms)

    def test(self) -> str:
        a = self.rng.choice(["x", "y", "a", "b", "q.c", "(int)x", "(short)y", "globals[2]"])
        relation = self.rng.choice(["<", "<=", "==", "!=", ">", ">="])
        limit = self.rng.choice([str(self.rng.randrange(300)), "(int)b", "-5", "t[2]"])
        both = f"{a} {relation} {limit}"
        if self.rng.random() < 0.2:
            return f"{both} && (x & 1)"
        return both


def random_program(seed: int) -> str:
    """The text of a program whose ``main(a, b)`` ends for all arguments."""
    return _Writer(random.Random(seed)).program(3)
