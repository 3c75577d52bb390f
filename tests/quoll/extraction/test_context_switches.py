"""Context switches: a function that leaves for another stack may return."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from quoll.cfg.cfg import Program
from quoll.errors import FactsError
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import Facts, parse
from quoll.image.image import Image
from tests.testing.harness.cases import in_turn
from tests.testing.programs import needs
from tests.testing.quoll.building import address, build
from tests.testing.quoll.switches import (
    ARM,
    COMPILERS,
    HEAD,
    THUMB,
    compiled,
    returning,
    switching,
)

pytestmark = [
    pytest.mark.slow("builds each program with threads"),
    pytest.mark.xdist_group("context switches"),
]

SHAPES = [(shape, False) for shape in ARM] + [(shape, True) for shape in THUMB]
FACT = parse("switch switches context", "test.facts")


@pytest.fixture(autouse=True, scope="module")
def cores_given_back() -> Iterator[None]:
    """Each of Unicorn's takes 1 GiB of addresses, which processes of later tests would inherit."""
    yield
    gc.collect()


def found(image: Image, ends: frozenset[int] | None, *, stated: bool) -> Program:
    entry = address(image, "main")
    return extract(image, [entry], locate(FACT if stated else Facts(), image), ends)


@pytest.mark.parametrize("ends", [None, frozenset()], ids=["no ends", "ends stated"])
@pytest.mark.parametrize(("shape", "thumb"), SHAPES)
def test_what_returns_is_never_called_no_return(
    shape: str, thumb: bool, ends: frozenset[int] | None
) -> None:
    image = Image.load(elf := switching(shape, thumb=thumb))
    back = returning(elf)
    assert back == {address(image, name) for name in ("switch", "after")}
    program = found(image, ends, stated=False)
    assert {entry for entry in back if not program.functions[entry].returns} == set()
    (question,) = program.unresolved
    assert question.where.endswith(image.place(question.addr))
    assert question.addr in range(address(image, "switch"), address(image, "main"))


@pytest.mark.parametrize(("shape", "thumb"), SHAPES)
def test_one_fact_answers(shape: str, thumb: bool) -> None:
    """The path ends in the function, and its calls come back."""
    image = Image.load(switching(shape, thumb=thumb))
    program = found(image, frozenset(), stated=True)
    assert not program.unresolved
    assert address(image, "after") in program.functions
    assert program.functions[address(image, "main")].returns
    assert any("switch switches context" in text for text in map(str, program.assumptions))
    alone = extract(image, [address(image, "switch")], locate(FACT, image), frozenset())
    (cfg,) = alone.functions.values()
    assert not alone.unresolved
    assert [block.exits for block in cfg.blocks] == [True]
    assert not cfg.returns


@pytest.mark.slow("compiles many programs")
@needs("clang")
@pytest.mark.parametrize(
    ("of", "by"), in_turn(SHAPES, [(c, level) for level in ("-O0", "-O2") for c in COMPILERS])
)
def test_in_c_by_two_compilers(of: tuple[str, bool], by: tuple[str, str]) -> None:
    (shape, thumb), (compiler, optimise) = of, by
    image = Image.load(elf := compiled(shape, compiler, optimise, thumb=thumb))
    back = returning(elf)
    assert back == {address(image, name) for name in ("switch_to", "after")}
    program = found(image, frozenset(), stated=False)
    assert {entry for entry in back if not program.functions[entry].returns} == set()
    (question,) = program.unresolved
    assert question.addr in range(*extent(image, "switch_to"))
    fact = parse("switch_to switches context", "test.facts")
    stated = extract(image, [address(image, "main")], locate(fact, image), frozenset())
    assert not stated.unresolved
    assert stated.functions[address(image, "main")].returns


def extent(image: Image, name: str) -> tuple[int, int]:
    symbol = image.symbol(name)
    assert symbol is not None
    return symbol.addr, symbol.addr + symbol.size


LONGJMP = """
#include <setjmp.h>
jmp_buf here, there;
volatile int turns;
__attribute__((noinline)) void after(void) { turns++; }
__attribute__((noinline)) void change(jmp_buf from, jmp_buf to) {
    if (!setjmp(from)) longjmp(to, 1);
}
void main(void) { change(here, there); after(); }
"""


@pytest.mark.parametrize("thumb", [False, True])
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_longjmp_of_a_library(optimise: str, thumb: bool) -> None:
    elf = build(
        LONGJMP, "-march=armv7-a+fp", "-mfloat-abi=softfp", optimise=optimise, thumb=thumb,
        cpu="cortex-a8", link=("-lc", "-lgcc"),
    )  # fmt: skip
    image = Image.load(elf)
    asked = extract(image, [address(image, "main")], exits=frozenset())
    assert address(image, "after") in {entry & ~1 for entry in asked.functions}
    assert asked.functions[address(image, "change")].returns
    (question,) = (u for u in asked.unresolved if "stack pointer" in u.reason)
    assert "FUNCTION switches context" in question.hint
    assert "longjmp" in question.where
    text = f"""setjmp switches context
        longjmp never returns
        path must end at {question.addr:#x}"""
    found = extract(
        image, [address(image, "main")], locate(parse(text, "test.facts"), image), frozenset()
    )
    assert not found.unresolved
    assert address(image, "after") in found.functions


NEVER = """
begin main
    push {r4, lr}
    bl endless
    pop {r4, pc}
begin endless
    b .
"""


def test_an_endless_loop_is_still_known() -> None:
    image = Image.load(build(HEAD + NEVER, language="asm"))
    program = extract(image, [address(image, "main")])
    assert not program.functions[address(image, "endless")].returns
    assert not program.unresolved


@pytest.mark.slow("compiles and extracts programs")
def test_contradictions() -> None:
    with pytest.raises(FactsError):
        parse("f switches context\nf never returns", "test.facts")
