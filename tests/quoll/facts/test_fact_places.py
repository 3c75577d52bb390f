"""Existing places are found, and missing ones are refused with similar names."""

from __future__ import annotations

import pytest

from quoll.errors import FactsError
from quoll.facts.fact import FactSource
from quoll.facts.fact_places import find_place
from quoll.image.image import Image
from tests.testing.quoll.building import build

PROGRAM = """
int schedule(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

int main(int n)
{
    return schedule(n) + 1;
}
"""
SOURCE = FactSource("kernel.facts", 7, "loop schedul at most 3")


@pytest.fixture(scope="module")
def image() -> Image:
    return Image.load(build(PROGRAM, optimise="-O0"))


def test_addresses_symbols_and_offsets(image: Image) -> None:
    symbol = image.symbol("schedule")
    assert symbol
    assert find_place(image, "schedule").addresses == (symbol.addr,)
    assert find_place(image, " schedule+0x8 ").addresses == (symbol.addr + 8,)
    assert find_place(image, "schedule+8").addresses == (symbol.addr + 8,)
    assert find_place(image, hex(symbol.addr + 4)).addresses == (symbol.addr + 4,)


def test_a_line_is_all_its_ranges(image: Image) -> None:
    loop = find_place(image, "prog.c:5")
    assert len(loop.addresses) >= 2
    assert list(loop.addresses) == sorted(loop.addresses)
    assert all(str(image.line(addr)) == "prog.c:5" for addr in loop.addresses)
    assert loop.covers(loop.addresses[0] + 4)
    assert not loop.covers(loop.addresses[0] - 4)


def test_an_address_covers_itself_only(image: Image) -> None:
    place = find_place(image, "main")
    assert place.covers(place.addresses[0])
    assert not place.covers(place.addresses[0] + 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schedul", "no symbol schedul .*did you mean schedule"),
        ("nothing_like_it", "no symbol.*write 0xADDRESS"),
        ("0x10", "nothing at 0x10 .*loaded: 0x0000"),
        ("schedule+0x1000", r"schedule\+0x1000 is outside schedule .*0x"),
        ("prog.c:8888", "line 8888 of prog.c has no code .*near lines with code: 13 at 0x"),
        ("prog.c:9", "line 9 of prog.c has no code .*8 at .*<schedule.*; 11 at .*<main"),
        ("porg.c:5", "no code from porg.c .*did you mean prog.c"),
        ("+0x4", "no symbol"),
        ("", "no symbol"),
    ],
)
def test_places_that_do_not_exist(image: Image, text: str, message: str) -> None:
    with pytest.raises(FactsError, match=message) as caught:
        find_place(image, text, SOURCE)
    assert str(caught.value).startswith("kernel.facts:7: ")
