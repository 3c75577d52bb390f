"""Depths of recursion in compiled C: no execution goes deeper than is proved."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.recursion import RecursionDepths, find_depths, with_depths
from quoll.arm.decode import decode
from quoll.arm.insn import LR, PC, SP, Insn
from quoll.errors import ControlFlowError, FactsError
from quoll.extraction.extract import extract
from quoll.extraction.functions import function_name
from quoll.facts.located import NO_FACTS, locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.harness.cases import cases, in_turn
from tests.testing.quoll.building import address, build

RETURN = 0xFFFF_0000
STACK = 0x0200_0000
STEPS = 20_000
OPTIONS = BoundOptions(Budget(seconds=20), workers=1)
FLAGS = ("-fno-optimize-sibling-calls", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra", "-fno-ipa-icf",
         "-fno-partial-inlining")  # fmt: skip
LEVELS = ("-O0", "-O1", "-O2", "-Os")
CORNERS = [0, 1, 2, 3, 7, 15, 16, 100, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
FACTORIAL = "unsigned f(unsigned n) { return n < 2 ? 1 : n * f(n - 1); }"
FIBONACCI = "unsigned f(unsigned n) { return n < 2 ? n : f(n - 1) + f(n - 2); }"
EVEN_ODD = """unsigned g(unsigned n);
unsigned f(unsigned n) { return n == 0 ? 1 : g(n - 1) + 1; }
unsigned g(unsigned n) { return n == 0 ? 0 : f(n - 1) + 2; }"""

# name: (functions, body of main(a, b), depth of f and g at each level that bounds them)
PROVED: dict[str, tuple[str, str, dict[str, int]]] = {
    "factorial": (FACTORIAL, "return f(a & 15);", {"f": 15}),
    "two calls": (FACTORIAL, "return f(a & 7) + f(b & 3);", {"f": 7}),
    "from a loop": (
        FACTORIAL,
        "unsigned s = 0; for (unsigned i = 1; i < 9; i++) s += f(i); return s;",
        {"f": 8},
    ),
    "search": (
        "unsigned t[256]; unsigned f(unsigned l, unsigned h, unsigned k) {"
        " unsigned m = (l + h) / 2; if (l >= h) return l;"
        " return t[m] < k ? f(m + 1, h, k) + 1 : f(l, m, k) + 2; }",
        "return f(0, 256, a);",
        {"f": 10},
    ),
    "even and odd": (EVEN_ODD, "return f(a & 15) + g(b & 7);", {"f": 8, "g": 8}),
    "shifting": (
        "unsigned f(unsigned x) { return x == 0 ? 1 : f(x >> 1) + x; }",
        "return f(a);",
        {"f": 33},
    ),
    "on the stack": (
        "unsigned f(unsigned a, unsigned b, unsigned c, unsigned d, unsigned n)"
        " { return n == 0 ? a : f(b, c, d, a + 1, n - 1) + a; }",
        "return f(1, 2, 3, a, b & 15);",
        {"f": 16},
    ),
    "loop inside": (
        "volatile unsigned sink; unsigned f(unsigned n)"
        " { for (unsigned i = 0; i < n; i++) sink = i; return n ? f(n / 2) + 1 : 0; }",
        "return f(a & 255);",
        {"f": 9},
    ),
}
STATED = "recursion of f at most 9"
RETURNED = {  # words live across a call, in callee-saved registers or in the frame
    "fibonacci": (FIBONACCI, "return f(a & 7);", {"f": 7}),
    "tree": (
        "unsigned f(unsigned n) { return n ? f(n >> 1) + f(n >> 2) : 1; }",
        "return f(a & 255);",
        {"f": 9},
    ),
    "halves of a range": (
        "unsigned t[32]; unsigned f(unsigned low, unsigned high) {"
        " if (high - low < 2) return t[low]; unsigned m = (low + high) / 2;"
        " return f(low, m) ^ f(m, high); }",
        "return f(0, 32);",
        {"f": 6},
    ),
}
LOOPS_INSIDE = {  # as compilers make of a second call that returns at once
    "calls in a loop": (
        "unsigned f(unsigned n)"
        " { unsigned s = 1; for (unsigned i = 0; i < 3; i++) if (n > 1) s += f(n / 2); return s; }",
        "return f(a & 63);",
        {"f": 6},
    ),
    "calls on the way down": (
        "unsigned f(unsigned n)"
        " { unsigned s = 0; while (n >= 2) { s += f(n - 1); n -= 2; } return s + n; }",
        "return f(a & 7);",
        {"f": 7},
    ),
}
NOT_BOUNDED = {  # memory decides, or the recursion is endless
    "list": (
        "struct item { struct item *next; unsigned v; } *items;"
        " unsigned f(struct item *p) { return p ? f(p->next) + p->v : 0; }",
        "return f(items);",
    ),
    "endless": ("unsigned f(unsigned n) { return f(n + 1) + 1; }", "return f(a);"),
    "wide": (FACTORIAL, "return f(a);"),
    "through a pointer": (
        "unsigned f(unsigned *n) { if (!*n) return 0; --*n; return f(n) + 1; }",
        "unsigned n = a & 7; return f(&n);",
    ),
    "changed by a callee": (
        "unsigned left; unsigned f(unsigned n)"
        " { if (!left) return 0; left = n; f(n - 1); return f(left) + 1; }",
        "left = a & 7; return f(left);",
    ),
}
OTHERS = ", ".join(f"unsigned x{number}" for number in range(18))
NOUGHTS = ", ".join("0" * 18)
HANDED = {  # callees store into frames of their callers
    "local": (
        "void set(unsigned *p, unsigned n) { *p = n & 3 ? n - 1 : n; }"
        " unsigned f(unsigned n)"
        " { unsigned k = n; if (n == 0 || n > 20) return n; set(&k, n); return f(k) + 1; }",
        "return f(a & 15);",
    ),
    "fifth argument": (
        "unsigned f(unsigned n, unsigned a, unsigned b, unsigned c, unsigned *p)"
        " { unsigned k = n - 1; if (p) *p = 9; if (n == 0 || n > 12) return 0;"
        " if (n & 1) f(0, a, b, c, &k); return f(k - 1, a, b, c, 0) + k; }",
        "return f(a & 7, 1, 2, 3, 0);",
    ),
    "argument behind many others": (
        f"unsigned seen; unsigned f(unsigned low, unsigned high, {OTHERS}, unsigned *p)"
        " { if (high - low < 2) { if (p && seen < 9) { seen++; *p = 0; } return 1; }"
        f" unsigned m = (low + high) / 2; f(low, m, {NOUGHTS}, &m);"
        f" return f(m, high, {NOUGHTS}, 0); }}",
        f"return f(0, 8, {NOUGHTS}, 0);",
    ),
    "set by a deeper activation": (
        "unsigned f(unsigned n, unsigned *p) { unsigned k = 5; if (p) { *p = 16; return 0; }"
        " if (n == 0) return 1; if (n == 8) f(0, &k); else k = n - 1; return f(k, 0) + 1; }",
        "return f(8, 0);",
    ),
    "own frame": (
        "unsigned f(unsigned n, unsigned *p)"
        " { unsigned k = n; *p += 1; if (n == 0) return 0; f(n - 1, &k); return k; }",
        "unsigned k = 0; return f(a & 7, &k);",
    ),
}

EXECUTED = {
    name: (functions, body)
    for name, (functions, body, _) in {**PROVED, **RETURNED, **LOOPS_INSIDE}.items()
}
EXECUTED |= {name: NOT_BOUNDED[name] for name in ("list", "through a pointer")}
EXECUTED |= {name: HANDED[name] for name in ("fifth argument", "own frame")}

ANY_CALLER = {  # functions, body of main, depths where each component is called by any caller
    "last one told": (
        "volatile unsigned sink, more; unsigned drop(unsigned n, unsigned last);"
        " unsigned cancel(unsigned n) { sink = n; return more ? drop(n + 1, 1) : 0; }"
        " unsigned drop(unsigned n, unsigned last)"
        " { sink = n; if (n == 7) return 1; if (last) return 2; return cancel(n) + sink; }",
        "more = b; return drop(a, 0) + drop(a, 1) + cancel(b) + sink;",
        {"drop": 2},
    ),
    "masked": (
        "unsigned f(unsigned n) { n &= 7; return n ? f(n - 1) + n : 0; }",
        "return f(a) + f(b);",
        {"f": 8},
    ),
    "in each other": (
        "unsigned f(unsigned n) { n &= 3; return n ? f(n - 1) + n : 0; }"
        " unsigned g(unsigned n) { n &= 15; return n > 1 ? g(n >> 1) + f(n) : f(n); }",
        "return g(a) + g(b) + f(a) + f(b);",
        {"f": 4, "g": 4},
    ),
    "callers decide": (FACTORIAL, "return f(a & 7) + f(b & 3);", {}),
    "other callers call deeper": (
        "unsigned g(unsigned n);"
        " unsigned f(unsigned n) { if (n > 2) return 0; return n ? g(n - 1) + 1 : 0; }"
        " unsigned g(unsigned n) { return n ? f(n - 1) + 2 : 0; }",
        "return f(a & 3) + f(b & 1) + g(b & 63);",
        {"g": 2},
    ),
}

STATEMENTS = (
    "k = n - 1;", "k = k >> 1;", "set(&k, n);", "set(&m, k);", "*p = n - 1;", "left = k;",
    "k = left & 15;", "k = m & 7;", "m += f(k - 1, &m);", "k = f(k >> 1, &k);", "m = f(n - 1, p);",
    "m += f(k, 0);",
)  # fmt: skip


def random_recursion(chance: random.Random) -> str:
    """Functions that call themselves between stores through pointers into frames."""
    text = " ".join(chance.choices(STATEMENTS, k=chance.randint(1, 4)))
    return (
        "unsigned left; void set(unsigned *p, unsigned n) { *p = n ? n - 1 : 0; }"
        " unsigned f(unsigned n, unsigned *p)"
        f" {{ unsigned k = n, m = 3; if (n == 0 || n > 30 || !p) return n; {text}"
        f" {chance.choice(['return k + m;', 'return f(n - 1, p) + m;'])} }}"
    )


@dataclass(frozen=True)
class Code:
    """A program, its recursion depths, and its executions."""

    image: Image
    found: RecursionDepths
    decoded: dict[int, Insn] = field(default_factory=dict)  # by address, those executed so far

    @staticmethod
    def of(functions: str, body: str, optimise: str, *, loaded: str = "") -> Code:
        """``loaded`` are words of memory that ``main`` begins with, in place of its arguments."""
        given = "void" if loaded else "unsigned a, unsigned b"
        source = f"{functions}\n{loaded}unsigned main({given}) {{ {body} }}\n"
        image = Image.load(build(source, *FLAGS, optimise=optimise))
        if loaded:
            image = image.starting_with(image.loaded_in_place())
        entry = address(image, "main")
        program = extract(image, [entry])
        return Code(image, find_depths(program, entry, image, NO_FACTS, OPTIONS))

    def depths(self) -> dict[str, int]:
        """Proved, by name."""
        return {function_name(self.image, f): d.activations for f, d in self.found.depths.items()}

    def deepest(self, arguments: tuple[int, ...], background: int = 0) -> Mapping[str, int]:
        """Most activations at a time of each function, in the first ``STEPS`` steps."""
        functions = {s.addr: s.name for s in self.image.symbols.symbols if s.kind == "func"}
        machine = ConcreteMachine(ByteMemory(self._content, lambda _: background))
        machine.registers[: len(arguments)] = arguments
        machine.registers[SP], machine.registers[LR] = STACK, RETURN
        machine.registers[PC] = address(self.image, "main")
        active: list[tuple[str, int, int]] = []  # function, where it returns to, its sp
        most: dict[str, int] = {}
        for _ in range(STEPS):
            at, sp = machine.registers[PC], machine.registers[SP]
            if active and active[-1][1:] == (at, sp):
                active.pop()
            if at == RETURN:
                break
            if at in functions:
                active.append((functions[at], machine.registers[LR], sp))
                count = sum(name == functions[at] for name, _, _ in active)
                most[functions[at]] = max(most.get(functions[at], 0), count)
            machine.step(self._insn(at))
        return most

    def _insn(self, at: int) -> Insn:
        if at not in self.decoded:
            self.decoded[at] = decode(self.image.read(at, 4) or b"", at, False)
        return self.decoded[at]

    @cached_property
    def _content(self) -> dict[int, int]:
        return {
            segment.addr + offset: byte
            for segment in self.image.segments
            for offset, byte in enumerate(segment.data)
        }

    def check(self) -> dict[str, int]:
        """Most activations seen; never more than are proved."""
        depths, seen = self.depths(), dict[str, int]()
        chance = random.Random(1)
        pairs = [(a, chance.choice([0, a, 255])) for a in CORNERS]
        for pair in pairs:
            for name, count in self.deepest(pair).items():
                assert count <= depths.get(name, count), (name, pair)
                seen[name] = max(seen.get(name, 0), count)
        return seen


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(PROVED, LEVELS))
def test_depths_are_proved_and_reached(name: str, level: str) -> None:
    """Some execution reaches each depth, except for the search (one less)."""
    functions, body, expected = PROVED[name]
    code = Code.of(functions, body, level)
    assert code.depths() == expected
    seen = code.check()
    assert {f: seen[f] for f in expected} == expected or name == "search"


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(RETURNED, LEVELS))
def test_depths_behind_calls_that_have_returned(name: str, level: str) -> None:
    """After a call all is unknown, except for preserved registers and words of the frame."""
    functions, body, expected = RETURNED[name]
    code = Code.of(functions, body, level)
    assert code.depths() == expected
    code.check()


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(LOOPS_INSIDE, ("-O1", "-Os")))
def test_depths_of_calls_in_loops(name: str, level: str) -> None:
    """The loop inside is bounded, too."""
    functions, body, expected = LOOPS_INSIDE[name]
    code = Code.of(functions, body, level)
    assert code.depths() == expected
    code.check()


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(NOT_BOUNDED, LEVELS))
def test_recursion_without_a_depth(name: str, level: str) -> None:
    """The reason names the unknown word."""
    code = Code.of(*NOT_BOUNDED[name], level)
    assert not code.depths()
    assert code.found.reasons


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(HANDED, LEVELS))
def test_callees_that_store_into_frames(name: str, level: str) -> None:
    """A depth, if there is one, is not exceeded."""
    Code.of(*HANDED[name], level).check()


@pytest.mark.slow("executes many programs to their ends")
@pytest.mark.parametrize(("name", "level"), in_turn(EXECUTED, LEVELS))
def test_the_only_execution(name: str, level: str) -> None:
    """Activations are counted where memory as loaded decides them."""
    functions, body = EXECUTED[name]
    code = Code.of(functions, body, level, loaded="volatile unsigned a = 13, b = 6;\n")
    counted = code.depths()
    assert counted
    assert counted == {f: most for f, most in code.deepest(()).items() if f in counted}
    assert all("concrete execution" in d.evidence for d in code.found.depths.values())


def test_a_stated_depth_below_the_only_execution_is_refuted() -> None:
    code = Code.of(FACTORIAL, "return f(a);", "-O1", loaded="volatile unsigned a = 13;\n")
    entry = address(code.image, "main")
    for stated in (13, 20):
        facts = locate(parse(f"recursion of f at most {stated}", "x"), code.image)
        program = extract(code.image, [entry], facts)
        assert find_depths(program, entry, code.image, facts).depths == code.found.depths
    facts = locate(parse("recursion of f at most 12", "x"), code.image)
    program = extract(code.image, [entry], facts)
    with pytest.raises(FactsError, match="f has 13 activations at a time"):
        find_depths(program, entry, code.image, facts)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(ANY_CALLER, LEVELS[1:]))
def test_depths_for_any_caller_where_the_graph_from_the_entry_is_too_large(
    name: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, nothing was proved then, and a question was asked that the program answers."""
    monkeypatch.setattr("quoll.inlining.recursive_loops.MOST", 2)
    functions, body, expected = ANY_CALLER[name]
    code = Code.of(functions, body, level)
    assert code.depths() == expected
    code.check()


@pytest.mark.slow("NuSMV proves each bound")
def test_a_stated_depth_holds_where_none_is_proved_for_any_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quoll.inlining.recursive_loops.MOST", 2)
    functions, body, _ = ANY_CALLER["callers decide"]
    image = Code.of(functions, body, "-O1").image
    entry = address(image, "main")
    program = extract(image, [entry], facts := locate(parse(STATED, "x"), image))
    found = find_depths(program, entry, image, facts, OPTIONS)
    (depth,) = with_depths(program, entry, image, found).guidance.depths.values()
    assert depth.activations == 9
    assert depth.facts


@pytest.mark.slow("NuSMV proves each bound")
def test_random_recursion() -> None:
    """A depth, if there is one, is not exceeded; several have one."""
    bounded = 0
    for seed in range(cases(1)):
        chance = random.Random(seed)
        body = "unsigned k = a & 31; left = b; return f(k, &k);"
        code = Code.of(random_recursion(chance), body, chance.choice(LEVELS))
        code.check()
        bounded += "f" in code.depths()
    assert bounded > 0


@pytest.mark.slow("NuSMV proves each bound")
def test_a_depth_too_large_to_tell_contexts_apart_is_none() -> None:
    code = Code.of(FACTORIAL, "return f(a & 0xffff);", "-O1")
    assert not code.depths()
    assert "the proved depth, 65,535, is too large" in next(iter(code.found.reasons.values()))


def test_recursion_without_a_depth_is_an_error_with_its_reason() -> None:
    image = Code.of(*NOT_BOUNDED["list"], "-O1").image
    entry = address(image, "main")
    program = extract(image, [entry])
    depths = find_depths(program, entry, image, NO_FACTS, OPTIONS)
    with pytest.raises(ControlFlowError, match=r"f -> f \(.*nothing bounds the word that 'ldr"):
        with_depths(program, entry, image, depths)
