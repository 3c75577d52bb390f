"""Symbols of Rust by their paths, and facts that name them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quoll.facts.fact_places import find_place
from quoll.facts.read import parse
from quoll.image.elf import RawSymbol
from quoll.image.image import Image
from quoll.image.rust_names import rust_name
from quoll.image.symbols import symbol_table
from tests.testing.quoll.building import build

NAMES = {
    "_ZN4main8schedule17h46c552153455d20fE": "main::schedule",
    "_ZN4main2AT17h6374fdf29c4fc130E.0": "main::AT.0",
    "_ZN46_$LT$main..Out$u20$as$u20$core..fmt..Write$GT$9write_str17h792b5392db241868E":
        "main::Out::Write::write_str",
    "_ZN4core3fmt5Write10write_char17h4116c70c63acd11bE": "core::fmt::Write::write_char",
    "_ZN4main3run28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE": "main::run::closure",
    "_RNvCsfLfy6EI15iL_7___rustc17rust_begin_unwind": "__rustc::rust_begin_unwind",
    "_RNvMsa_NtCs1M9dR2PfXm1_4core3fmtNtB5_9Formatter12pad_integral":
        "core::fmt::Formatter::pad_integral",
    "_RNvNvMsa_NtCs1M9dR2PfXm1_4core3fmtNtB7_9Formatter12pad_integral12write_prefix":
        "core::fmt::Formatter::pad_integral::write_prefix",
    "_RNvXs8_NtNtNtCs1M9dR2PfXm1_4core3fmt3num3impmNtB9_7Display3fmt": "u32::Display::fmt",
    "_RINvCs1234_7mycrate3foojjE": "mycrate::foo",
    "_RNCNvCs1234_7mycrate3foo0B3_": "mycrate::foo::closure_0",
    "_ZN7Machine4feedEh": None,  # C++
    "_Reset": None,
    "_RNv": None,
    "on_call": None,
}  # fmt: skip


@pytest.mark.parametrize(("mangled", "path"), NAMES.items())
def test_paths(mangled: str, path: str | None) -> None:
    assert rust_name(mangled) == path


def test_any_text_has_a_path_or_none() -> None:
    """A damaged symbol is no error, and its path names a place in facts."""
    choose = random.Random(51)
    for _ in range(20_000):
        name = choose.choice(list(NAMES))
        at = choose.randrange(len(name))
        damaged = name[:at] + choose.choice("_sBNCMXIE$.0z9L") + name[at + choose.randrange(3) :]
        path = rust_name(damaged)
        if path is not None:
            assert parse(f"{path} never returns\n", "k.facts"), damaged


def test_two_functions_of_one_path_keep_their_symbols() -> None:
    one, other = (f"_ZN4main1f17h{digit * 16}E" for digit in "01")
    rows = [RawSymbol(one, 0x100, 4, "STT_FUNC", "STB_LOCAL", True)]
    table = symbol_table(rows)
    assert [s.name for s in table.symbols] == ["main::f"]
    assert table.named("main::f") == table.named(one) == table.symbols
    table = symbol_table([*rows, RawSymbol(other, 0x200, 4, "STT_FUNC", "STB_LOCAL", True)])
    assert [s.name for s in table.symbols] == [one, other]
    assert not table.named("main::f")


def test_a_fact_names_a_path_or_the_symbol() -> None:
    mangled = "_ZN4main1f17h0123456789abcdefE"
    path = Path(build(f"int main(int n) {{ return n; }} int f(void) __asm__(\"{mangled}\"); "
                      "int f(void) { return 1; }"))  # fmt: skip
    image = Image.load(path)
    for name in ("main::f", mangled):
        assert find_place(image, f"{name}+0x0").addresses == (image.symbols.named(mangled)[0].addr,)
