"""Tables of functions in an image whose exception vectors are at 0."""

from __future__ import annotations

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
