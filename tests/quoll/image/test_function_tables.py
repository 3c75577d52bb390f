"""Tables of functions in an image whose exception vectors are at 0."""

from __future__ import annotations

from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.function_tables import function_tables, functions_in
from quoll.image.image import Image
from tests.testing.quoll.building import build

SOURCE = """\
__asm__(".text\\n .arm\\n .global vectors\\nvectors: b main\\n");
int one(int n) { return n + 1; }
int (*const table[4])(int) = { one, 0, one, 0 };
int (*volatile next)(int);
int main(int n) { return table[n & 3](n); }
"""
CHANGING = """\
__asm__(".text\\n .arm\\n .global vectors\\nvectors: b main\\n");
int one(int n) { return n + 1; }
int (*table[4])(int) = { one, 0, one, 0 };
__attribute__((naked)) int main(int n) {
    __asm__("ldr r1, =table; ldr r3, [r1, r0, lsl #2]; bx r3; .ltorg");
}
"""


def test_the_null_pointer_is_no_function() -> None:
    """Code is at 0, and each empty place of a table was a call of it."""
    image = Image.load(build(SOURCE, optimise="-O1", link=("-Wl,-Ttext=0",)))
    vectors, table, one = (image.symbol(name) for name in ("vectors", "table", "one"))
    assert vectors is not None
    assert table is not None
    assert one is not None
    assert image.is_executable(0)
    assert functions_in(image, table.addr, table.addr + table.size) == (one.addr,)
    ((_, words),) = function_tables(image).tables
    assert words == (one.addr,)


def test_a_fact_about_a_table_assumes_that_no_null_pointer_is_called() -> None:
    """An execution that calls 0 executes the vector there: a report says that none does."""
    image = Image.load(build(CHANGING, link=("-Wl,-Ttext=0",)))
    main = image.symbol("main")
    assert main is not None
    facts = locate(parse("calls at main+0x8 go through table\n", "f.facts"), image)
    program = extract(image, [main.addr], facts)
    assert not program.unresolved
    [said] = [f"{a}" for a in program.assumptions if "go through table" in f"{a}"]
    assert "no null pointer is called" in said
