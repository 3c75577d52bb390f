"""Random C programs whose functions return constants by path, and whose callers branch on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

__all__ = ["ResultProgram"]

HEAD = """
#define NOINLINE __attribute__((noinline))
volatile unsigned sink[64], other;
unsigned state;
NOINLINE unsigned tells(unsigned n) { other = n; return n; }
"""
RESULTS = (0, 1, 3, 7, 0xFFFFFFFF)


@dataclass
class ResultProgram:
    """Writes one program: three levels of functions, and ``main(a, b)``."""

    random: Random
    loops: int = 0
    lines: list[str] = field(default_factory=list)

    def source(self) -> str:
        """The text."""
        self.lines = [HEAD]
        for level in range(3):
            self._function(f"static NOINLINE unsigned f{level}", level)
        self._function("unsigned main", 3)
        return "\n".join(self.lines) + "\n"

    def _function(self, head: str, level: int) -> None:
        self.lines.append(f"{head}(unsigned a, unsigned b) {{")
        self.lines.append(f"unsigned r = {self._result()}, kept = {self._result()};")
        for _ in range(self.random.randint(2, 3)):
            self._statement(level)
        if level == 3:
            self._statement(level)
            self.lines.append("r ^= f0(b, a) + f1(b, a) + f2(b, a);")
        self.lines.append(f"if ({self._input()}) return {self._returned()};")
        self.lines.append(f"return {self._returned()}; }}")

    def _statement(self, level: int) -> None:
        """A call with branches on its result, perhaps in a loop, or a return or work by itself."""
        drawn = self.random.random()
        if level and drawn < 0.6:
            self._called(level)
        elif level and drawn < 0.75:
            self.loops += 1
            i = f"i{self.loops}"
            self.lines.append(f"for (unsigned {i} = 0; {i} < 3; {i}++) {{ a += {i};")
            self._called(level)
            leaves = self.random.choice(["break;", f"return {self._result()};", "b ^= r;"])
            self.lines.append(f"if (r == {self._result()}) {leaves} }}")
        elif drawn < 0.85:
            chosen = f"{self.random.choice(['r', 'kept'])} = {self._result()}"
            self.lines.append(f"if ({self._input()}) {{ {self._work()} {chosen}; }}")
        else:
            self.lines.append(f"if ({self._input()}) {{ {self._work()}")
            self.lines.append(f"return {self._result()}; }}")

    def _called(self, level: int) -> None:
        callee = self.random.randrange(level)
        passed = self.random.choice(["a, b", "b, a + 1", "a >> 1, b", "r, a"])
        self.lines.append(f"r = f{callee}({passed});")
        for _ in range(self.random.randint(1, 2)):
            if self.random.random() < 0.3:
                self.lines.append(f"b += tells({self.random.randrange(9)});")
            ends = self.random.choice(["", "", f"return {self._returned()};"])
            self.lines.append(f"if ({self._test()}) {{ {self._work()} {ends} }}")

    def _work(self) -> str:
        """A loop of some length, or a store."""
        self.loops += 1
        i, length = f"i{self.loops}", self.random.choice([0, 2, 7, 15])
        return f"for (unsigned {i} = 0; {i} < {length}; {i}++) sink[{i}] += b;"

    def _input(self) -> str:
        word = self.random.choice(["a", "b", "a ^ b", "state"])
        return f"{word} & {1 << self.random.randrange(4)}"

    def _test(self) -> str:
        how = self.random.choice(["r == {}", "r != {}", "r < {}", "(int)r < (int){}", "r & {}"])
        return how.format(self._result())

    def _result(self) -> str:
        return f"{self.random.choice(RESULTS):#x}"

    def _returned(self) -> str:
        return self.random.choice([self._result(), "r", "r", "kept", "a", "b & 3"])
