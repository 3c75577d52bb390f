"""The proposed targets of a call through a pointer contain all executed ones (rule 50)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaigns.pointer_calls import examine
from campaigns.virtual_calls import follow, proposed
from quoll.arm.wide_constants import relative_addresses
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.indirect.address_taken import ANY_TAKEN, AddressTaken
from tests.testing.harness.cases import cases
from tests.testing.programs import needs
from tests.testing.quoll.building import build
from tests.testing.quoll.pointer_programs import BUILDS, build_pointers

RUN = needs("qemu-arm", "clang", "arm-none-eabi-g++")
SEEDS = range(1000, 1000 + 2 * len(BUILDS))  # seeds that the campaign does not use


@pytest.mark.slow("compiles random programs and executes them")
@RUN
@pytest.mark.parametrize("seed", SEEDS[: cases(len(BUILDS))])
def test_proposals_contain_what_runs(seed: int) -> None:
    calls, went, given = examine(seed)
    assert given >= went >= calls


CALLBACK = """
struct timer { timer *next; unsigned left; int (*fire)(int); } *timers, one, two;
N static int tick_a(int x) { return x + 1; }
N static int tick_b(int x) { return x + 2; }
struct Shape { virtual int get(int x) = 0; virtual int put(int x) { return x; } };
struct Round : Shape { int get(int x) override { return x + 3; } };
struct Square : Shape { int get(int x) override { return x + 4; } };
Round r; Square s; Shape *volatile shapes[] = {&r, &s};
N int fire(int x) { for (timer *t = timers; t; t = t->next) x += t->fire(x); return x; }
N int draw(int x) { for (auto *volatile &at : shapes) x += at->get(x) + at->put(x); return x; }
extern "C" N void init(void) {
    r = Round(); s = Square();
    one.fire = choice ? tick_a : tick_b; two.fire = tick_b; timers = &one; one.next = &two;
}
extern "C" N int run(int x) { x += fire(x); x += draw(x); return x & 63; }
"""


def address(image: Image, name: str) -> int:
    """The address of a symbol that the program has."""
    symbol = image.symbol(name)
    assert symbol is not None, name
    return symbol.addr


def facts_of(elf: Path) -> dict[str, tuple[str, str]]:
    """By function of the call the fact and why."""
    image = Image.load(elf)
    asked, program = proposed(elf)
    follow(elf, program)
    found = {}
    for question in asked:
        for missing in question.missing:
            symbol = image.symbol_at(missing.addr)
            assert symbol is not None
            found[symbol[0].name] = (missing.fact, missing.why)
    return found


@pytest.mark.slow("compiles and extracts programs")
@RUN
@pytest.mark.parametrize("name", [n for n in BUILDS if n.startswith("C++")])
def test_what_may_be_virtual_adds_and_never_replaces(name: str) -> None:
    """A plain callback is called as the virtual function behind an object's first word is."""
    found = facts_of(build_pointers(CALLBACK, (*BUILDS[name], "-g0")))
    callback, _ = found["fire"]
    assert re.search(r"to .*tick_a, tick_b", callback), callback
    virtual, why = found["draw"]
    assert "any vtable" in virtual
    assert "tick_a" in virtual
    assert "if it is a virtual call" in why


@RUN
def test_what_is_left_out_is_said() -> None:
    """Functions of vtables are left out, unless the call has the form of a virtual call."""
    source = (
        CALLBACK.replace("x += t->fire(x)", "x += t->fire(x)")
        .replace("N int fire", "N int apply(int (*f)(int), int x) { return f(x) + 1; }\nN int fire")
        .replace("N int fire", "function volatile chosen = tick_a;\nN int fire")
        .replace("x += fire(x);", "x += fire(x) + apply(chosen, x);")
    )
    fact, why = facts_of(build_pointers(source, (*BUILDS["C++ gcc -O2"], "-g0")))["apply"]
    assert "any vtable" not in fact
    assert "functions of vtables are left out" in why
    assert "this assumes" in why


MANY = "".join(
    f"int f{i}(int x) {{ return x + {i}; }}\nint (*h{i})(int) = f{i};\n" for i in range(300)
)
HOOK = f"""{MANY}
void *leaked = &h0;
int main(int x) {{ return h0(x) + 1; }}
"""


@pytest.mark.slow("compiles and extracts programs")
def test_more_functions_than_can_be_named_have_a_name_together() -> None:
    """There are candidates, however many functions have their addresses taken."""
    path = build(HOOK, optimise="-O1")
    image = Image.load(path)
    main = image.symbol("main")
    assert main is not None
    (asked,) = extract(image, [main.addr]).unresolved
    assert asked.proposal is not None
    assert asked.proposal.fact == f"calls at PLACE go to {ANY_TAKEN}"
    text = asked.proposal.fact.replace("PLACE", f"{asked.addr:#x}")
    (fact,) = parse(text, "x").facts
    assert str(fact) == text
    program = extract(image, [main.addr], locate(parse(text, "x"), image))
    assert not program.unresolved
    called = {c for b in program.functions[main.addr].blocks for c in b.calls}
    assert len(called) == 300
    assert any(ANY_TAKEN in assumption for assumption in map(str, program.assumptions))


FORMS = """.syntax unified
.text
.global main, near, far
.type main, %function
.type near, %function
.type far, %function
.arm
near: bx lr
main: adr r0, near
adr r1, far
ldr r2, 1f
nop
2: add r2, pc, r2
ldr r3, 3f
nop
nop
4: add r3, r3, pc
bx lr
1: .word far - (2b + 8)
3: .word near - (4b + 8)
.space 64
far: bx lr
.balign 4
"""
THUMB = """.syntax unified
.text
.thumb
.balign 4
.global main, near, far
.type main, %function
.type near, %function
.type far, %function
near: bx lr
.balign 4
main: adr.w r0, near + 1
adr r1, middle
ldr r2, 1f
nop
2: add r2, pc
ldr.w r9, 3f
nop
4: add r9, pc
movw r3, #:lower16:(far - (5f + 4))
movt r3, #:upper16:(far - (5f + 4))
nop
5: add r3, pc
bx lr
.balign 4
middle: bx lr
.balign 4
1: .word far - (2b + 4)
3: .word near - (4b + 4)
.space 64
.balign 4
far: bx lr
.balign 4
"""


@pytest.mark.parametrize("thumb", [False, True])
def test_sums_with_pc_are_addresses_that_code_takes(thumb: bool) -> None:
    """Every form that compilers and assemblers write."""
    cpu = "cortex-a8" if thumb else "arm1136jf-s"
    image = Image.load(build(THUMB if thumb else FORMS, language="S", cpu=cpu))
    taken = {word & ~1 for word in AddressTaken(image).by_code}
    for name in ("near", "far"):
        symbol = image.symbol(name)
        assert symbol is not None
        assert symbol.addr in taken
    (segment,) = (s for s in image.segments if s.executable)
    found = {word & ~1 for word in relative_addresses(segment.data, segment.addr)}
    near, far = (address(image, name) for name in ("near", "far"))
    assert {near, far} <= found


PACKED = """
int f(int x) { return x + 1; }
int g(int x) { return x + 2; }
struct __attribute__((packed)) { char c; int (*f)(int); } a = {1, f}, b = {2, g};
int main(int x) { return (x ? a.f : b.f)(x) + 1; }
"""


def test_a_pointer_may_stand_anywhere() -> None:
    image = Image.load(build(PACKED, optimise="-O1"))
    functions = {word & ~1 for word in AddressTaken(image).functions}
    assert {address(image, name) for name in "fg"} <= functions
