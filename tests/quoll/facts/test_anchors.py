"""Anchors: a fact about an offset follows no edit silently, and survives another link."""

from __future__ import annotations

import pytest

from quoll.errors import FactsError
from quoll.facts.anchors import anchor_at, anchored
from quoll.facts.fact_places import find_place
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.quoll.building import build

LOOPS = (
    "for (int i = 0; i < n; i++) s += a[i & 63];",
    "for (int i = 0; i < m; i++) s += b[i & 63];",
)
SOURCE = """
{before}
int a[64], b[64]; volatile int n_, m_;
__attribute__((noinline)) int callee(int x) {{ return x + n_; }}
__attribute__((noinline)) int f(void) {{
    int s = 0, n = n_, m = m_;
    {first}
    {second}
    return callee(s); }}
int main(void) {{ return f(); }}
"""
CORES = [("arm1136jf-s", ()), ("cortex-a8", ()), ("cortex-a8", ("-mthumb",))]


def image(
    loops: tuple[str, str], before: str = "", cpu: str = "", flags: tuple[str, ...] = ()
) -> Image:
    source = SOURCE.format(first=loops[0], second=loops[1], before=before)
    return Image.load(build(source, *flags, cpu=cpu))


def at(built: Image, offset: int) -> str:
    symbol = built.symbol("f")
    assert symbol is not None
    text = anchored(built, symbol.addr + offset)
    assert text is not None
    return text


@pytest.mark.parametrize(("cpu", "flags"), CORES)
def test_swapped_loops_are_an_error(cpu: str, flags: tuple[str, ...]) -> None:
    old = image(LOOPS, "", cpu, flags)
    new = image((LOOPS[1], LOOPS[0]), "", cpu, flags)
    place = at(old, 12)
    assert find_place(old, place).addresses == find_place(old, place.split("~")[0]).addresses
    with pytest.raises(FactsError, match=r"around f\+0xc has changed since") as refused:
        find_place(new, place)
    assert refused.value.hint is not None
    assert at(new, 12) in refused.value.hint


@pytest.mark.parametrize(("cpu", "flags"), CORES)
def test_other_places_of_the_same_code_are_the_same(cpu: str, flags: tuple[str, ...]) -> None:
    """Functions and data before it move it, its data and its callee."""
    old = image(LOOPS, "", cpu, flags)
    before = "int more[7] = {1}; __attribute__((noinline)) int other(int x) { return x * more[x]; }"
    new = image(LOOPS, before, cpu, flags)
    assert find_place(new, at(old, 12)).addresses != find_place(old, at(old, 12)).addresses


def test_facts_name_anchored_places() -> None:
    text = "loop f+0x10~01234abc, f+0x20 at most 3\nf+0x4~89abcdef never executes\n"
    facts = parse(text, "k.facts").facts
    assert [name for fact in facts for name in fact.names()] == [
        "f+0x10~01234abc",
        "f+0x20",
        "f+0x4~89abcdef",
    ]


def test_code_without_a_function_has_no_anchor() -> None:
    built = image(LOOPS, cpu="arm1136jf-s")
    assert anchor_at(built, 0x10) is None
    assert anchored(built, 0x10) is None
