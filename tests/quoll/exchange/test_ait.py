"""aiT's loop bounds: counts of the header, and counts of the body."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.errors import FactsError
from quoll.exchange.ait import read_ais

TEXT = """\
# one comment
loop "f" + 1 loop max 10 end;
loop "f" + 1 loop max 10 begin ;
loop 0x8260 min 3 max 10;
loop "f" + 0x10 bytes exactly 4 end;
loop "f.L1" { bound: 0..10; }
loop "g.L1" { bound: 2 .. 10 end; }
"""


def test_bounds() -> None:
    assert [(f.line, f.text, f.single_loop) for f in read_ais(TEXT, "a.ais").facts] == [
        (2, "loop f at most 10", "f"),
        (3, "loop f at most 11", "f"),
        (4, "loop 0x8260 at most 11", None),
        (5, "loop f+0x10 at most 4", None),
        (6, "loop f at most 11", "f"),
        (7, "loop g at most 10", "g"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clock 200 MHz;", "'clock 200 MHz' is not read: only loop bounds are"),
        ('recursion "f" max 3;', "only loop bounds are"),
        ('\nloop "f" + 2 loops max 3;', "a.ais:2: "),
        ('loop "f.L2" { bound: 0..3; }', "the first loop of a routine that has no other"),
        ('loop "f" max 3;', "it names no loop"),
        ('loop "f.L1" { takes: 3; }', "only 'bound'"),
        ('loop "f.L1" { bound: 0..3; bound: 1..2; }', "only one 'bound'"),
        ('loop "f" + 1 loop min 3;', "it has no maximum"),
        ('loop "f" + 1 loop max 9 max 3 end;', "its maximum is said twice"),
        ('loop "f" + 1 loop exactly 9 max 3 end;', "its maximum is said twice"),
        ('loop "f" + 1 loop min 9 max 3 end;', "its minimum is above its maximum"),
        ('loop "f" + 1 loop max 3 min 9 end;', "its minimum is above its maximum"),
        ('loop "f.L1" { bound: 9..3; }', "its minimum is above its maximum"),
        ('/* a comment\nloop "f" + 1 loop max 9 end;', "the comment has no end"),
        ('loop "f" + 1 loop max @x;', "a number is expected"),
        ('loop "f" + 1 loop max 3 end takes 4;', "'takes' is not known"),
        ('loop "f" + 1 loop max 3', "the statement has no end"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(FactsError, match=r"a\.ais:\d") as error:
        read_ais(text, "a.ais")
    assert why in str(error.value)


@given(st.text('loop "f.L1"+{}bound:.;0123maxend \n'))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(FactsError):
        read_ais(text, "a.ais")
