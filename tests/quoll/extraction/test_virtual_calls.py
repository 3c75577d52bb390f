"""Calls through vtables and tables of functions: proposed facts against executions.

Programs are random; QEMU executes each, and every call must be among the proposed ones.
"""

from __future__ import annotations

import re

import pytest

from campaigns.virtual_calls import follow, most_questions, program_of, proposed
from quoll.errors import FactsError
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from tests.testing.harness.cases import spread
from tests.testing.programs import needs
from tests.testing.quoll.building import build
from tests.testing.quoll.virtual_programs import BUILDS, build_virtual, virtual_program

pytestmark = needs("qemu-arm", "clang", "arm-none-eabi-g++")
SEEDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
NO_EXCEPTIONS = "-fno-exceptions"
KNOWN = re.compile(r"(?:each|last)_(?P<root>C\d+)|(?P<own>C\d+)::m\d+_")


@pytest.mark.slow("compiles random programs and executes them")
@pytest.mark.parametrize(("build", "seed"), spread(zip(BUILDS, SEEDS, strict=True), 5))
def test_candidates_contain_what_runs(build: str, seed: int) -> None:
    """One question for all classes, and one for each table; a few where a pointer was spilled."""
    flags = ("-fexceptions", "-fno-rtti") if seed % 2 else (NO_EXCEPTIONS,)
    source = virtual_program(seed)
    elf = build_virtual(source, BUILDS[build], *flags)
    asked, program = proposed(elf)
    follow(elf, program)
    assert len(asked) <= most_questions(source)
    assert sum("any vtable" in q.missing[0].fact for q in asked) <= 2


@pytest.mark.slow("compiles large programs")
@pytest.mark.parametrize("seed", range(3, 5))
def test_a_class_stands_for_all_below_it(seed: int) -> None:
    """Each call is stated to be of the class that the source says, and QEMU agrees."""
    elf = build_virtual(virtual_program(seed), BUILDS["gcc -O2"], NO_EXCEPTIONS)
    image = Image.load(elf)
    asked, _ = proposed(elf)
    facts: list[str] = []
    for question in asked:
        if "any vtable" not in question.missing[0].fact:
            facts += question.facts(image)
            continue
        for missing in question.missing:
            found = image.symbol_at(missing.addr)
            assert found is not None
            known = KNOWN.match(found[0].name)
            tables = f"vtables of {known['root'] or known['own']}" if known else "any vtable"
            facts.append(f"calls at {missing.addr:#x} go through {tables}")
    assert any("vtables of C" in fact for fact in facts)
    text = "".join(f"{fact}\n" for fact in facts)
    program = program_of(elf, text)
    assert not program.unresolved
    follow(elf, program)
    assert any(
        "vtables of C" in a and "have their loaded contents" in a
        for a in map(str, program.assumptions)
    )


HIERARCHY = """
struct A { virtual int f(int x) { return x; } virtual int g(int x) { return x + 1; } };
struct B { virtual int h(int x) { return x + 2; } };
struct C : A { int g(int x) override { return x + 3; } };
namespace deep { struct D : C, B { int h(int x) override { return x + 4; } }; }
template <int> struct T : A { int f(int x) override { return x + 5; } };
deep::D d; T<3> t; C c; B b; A a;
A *volatile as[] = {&d, &t, &c, &a}; B *volatile bs[] = {&d, &b};
N int call_g(A *at) { return at->g(1) + 1; }
N int call_h(B *at) { return at->h(1) + 1; }
extern "C" N int run(int x) {
    for (auto *volatile &at : as) x += call_g(at);
    for (auto *volatile &at : bs) x += call_h(at);
    return x & 31;
}
"""


def names(image: Image, words: tuple[int, ...]) -> set[str]:
    found = (image.symbol_at(word & ~1) for word in words)
    return {symbol.name for symbol, _ in (f for f in found if f is not None)}


def test_the_hierarchy_stands_in_the_type_information() -> None:
    image = Image.load(build_virtual(HIERARCHY, BUILDS["gcc -O2"], NO_EXCEPTIONS))
    tables = Vtables(image)
    assert {"A", "B", "C", "deep::D", "_ZTI1TILi3EE"} <= set(tables.classes())
    of_a, of_b = tables.named("A"), tables.named("B")
    assert len(of_a) == 4
    assert len(of_b) == 2
    assert tables.named("_ZTV1TILi3EE") < of_a
    assert names(image, tables.functions(of_a, 4)) == {"A::g", "C::g"}
    assert "deep::D::h.thunk" in names(image, tables.functions(of_b, 0))
    assert not tables.named("E")


def test_a_function_that_is_missing_has_a_slot() -> None:
    """The slot of a pure virtual function is 0 if ``__cxa_pure_virtual`` is weak and undefined."""
    functions = "".join(
        f".type f{n}, %function\nf{n}: mov r0, #{n}\nbx lr\n.size f{n}, . - f{n}\n"
        for n in range(3)
    )
    words = ".word 0, 0, 0, f0, f1, 0, f2\n.size _ZTV1B, . - _ZTV1B\n"
    table = f".section .rodata\n.type _ZTV1B, %object\n_ZTV1B: {words}"
    main = ".global main\n.text\n.arm\nmain: bx lr\n"
    image = Image.load(build(main + functions + table, language="S"))
    tables = Vtables(image)
    for slot, name in ((4, "f0"), (8, "f1"), (16, "f2")):
        assert name in names(image, tables.functions(None, slot))


def test_the_slot_counts() -> None:
    elf = build_virtual(HIERARCHY, BUILDS["gcc -O2"], NO_EXCEPTIONS)
    (first,) = (q for q in proposed(elf)[0] if "any vtable" in q.missing[0].fact)
    image = Image.load(elf)
    place = {image.symbol_at(m.addr)[0].name: m.addr for m in first.missing}  # type: ignore[index]
    text = f"calls at {place['call_g']:#x} go through vtables of A\n"
    others = [a for name, a in place.items() if name != "call_g"]
    text += "".join(f"calls at {a:#x} go through any vtable\n" for a in others)
    text += "".join(f"{f}\n" for q in proposed(elf)[0] if q != first for f in q.facts(image))
    program = program_of(elf, text)
    (table,) = (t for t in program.jump_tables if t.addr == place["call_g"])
    assert names(image, table.targets) == {"A::g", "C::g"}
    follow(elf, program)


def test_what_is_not_there_is_refused() -> None:
    elf = build_virtual(HIERARCHY, BUILDS["gcc -O2"], NO_EXCEPTIONS)
    bare = build_virtual(HIERARCHY, BUILDS["gcc -O2"], NO_EXCEPTIONS, "-fno-rtti")
    for at, tables, said in (
        (elf, "vtables of deep::DD", "did you mean deep::D"),
        (bare, "vtables of A", "-fno-rtti"),
        (elf, "sink", "sink holds no address of a function"),
    ):
        with pytest.raises(FactsError, match=said):
            program_of(at, f"calls at run go through {tables}")
    with pytest.raises(FactsError, match="is no indirect jump or call"):
        program_of(elf, "calls at run go through any vtable")


@pytest.mark.parametrize(
    "text",
    ["calls at a go", "calls at a go through", "calls at a go or to b", "calls at go to b"],
)
def test_a_fact_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(FactsError, match="expected: calls at PLACE"):
        parse(text, "test.facts")


@pytest.mark.parametrize(
    "text",
    [
        "calls at a, b+0x4 go through any vtable",
        "calls at a.c:3 go through vtables of x::Y, table or to f, g",
        "calls at 0x8000 go to f",
    ],
)
def test_a_fact_reads_back(text: str) -> None:
    (fact,) = parse(text, "test.facts").facts
    assert str(fact) == text
