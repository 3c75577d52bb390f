"""Symbols of C++ by their paths, and facts that name them."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from quoll.facts.fact_places import find_place
from quoll.facts.read import parse
from quoll.image.elf import RawSymbol
from quoll.image.image import Image
from quoll.image.itanium_names import itanium_name
from quoll.image.symbols import symbol_table
from tests.testing.quoll.building import build

NAMES = {
    "_ZN7Machine4feedEh": "Machine::feed",
    "_ZL10top_staticd": "top_static",
    "_ZN5board12_GLOBAL__N_16hiddenEPNS_3RawES2_": "board::hidden",
    "_ZNK5board3Raw4readEiPc": "board::Raw::read",
    "_ZN5board3RawC2Ev": "board::Raw::Raw",
    "_ZNSt6vectorIiSaIiEE4pushEi": "std::vector::push",
    "_ZThn8_N5board2DD1bEv": "board::DD::b.thunk",
    "_ZZN5board5useitEvENKUliE_clEi": "board::useit::lambda_0",
    "_ZZN5board5useitEvE5count": "board::useit::count",
    "_ZN5board4feedEi.isra.0": "board::feed.isra.0",
    "_ZN5board3RawD1Ev": None,
    "_ZN5board3RawplEi": None,
    "_ZTV7Machine": None,
    "_ZTI7Machine": None,
    "_ZGVZ4feedE1x": None,
    "_Zero": None,
    "on_call": None,
}
LAMBDA = "{lambda(int)#1}::operator()"
SOURCE = """\
namespace std { template <class T> struct vec { void push(T); };
template <class T> void vec<T>::push(T) {} template struct vec<int>; void mv(int *) {} }
namespace board {
struct Raw {
    Raw(); ~Raw(); int read(int, char *) const; static int count; int operator+(int);
    template <class T> T to(T); struct Inner { void go() volatile; };
};
Raw::Raw() {} Raw::~Raw() {} int Raw::read(int, char *) const { return 1; } int Raw::count;
int Raw::operator+(int) { return 2; } void Raw::Inner::go() volatile {}
template <> int Raw::to<int>(int x) { return x; }
namespace { int hidden; struct X { __attribute__((noinline)) void more() { hidden++; } }; }
void use() { X().more(); static int last; auto add = [&](int a) { return last += a; }; add(2); }
int over(int) { return 1; } int over(long) { return 2; }
template <int N, class T> int sized(T (&)[N]) { return N; } template int sized<3>(int (&)[3]);
template <class... A> int pack(A...) { return 0; } template int pack(int, char, Raw *);
template <int (*F)(int)> int through() { return F(1); } template int through<&over>();
enum E { FIRST }; template <E, bool> void by() {} template void by<FIRST, true>();
int many(int Raw::*, int (Raw::*)(int, char *) const, int (*)(void (*)(int)),
         const volatile char *const *, int &&, long long, void *) { return 0; }
struct One { virtual void a(); int x; }; struct Two { virtual void b(); int y; };
struct Both : One, Two { void b() override; }; struct V : virtual One { void a() override; };
void One::a() {} void Two::b() {} void Both::b() {} void V::a() {}
inline namespace v1 { void version() {} }
}
void last(unsigned char, float, ...) {}
"""


@pytest.mark.parametrize(("mangled", "path"), NAMES.items())
def test_paths(mangled: str, path: str | None) -> None:
    assert itanium_name(mangled) == path


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_paths_are_the_names_that_binutils_print(level: str, tmp_path: Path) -> None:
    """Without parameters, template arguments and unnamed namespaces."""
    (tmp_path / "names.cpp").write_text(SOURCE)
    compiled = ("-std=c++17", level, "-c", "names.cpp", "-o", "names.o")
    subprocess.run(["arm-none-eabi-g++", *compiled], cwd=tmp_path, check=True)
    listed = run(["arm-none-eabi-nm", str(tmp_path / "names.o")])
    symbols = sorted({line.split()[-1] for line in listed.splitlines() if " _Z" in line})
    shown = run(["arm-none-eabi-c++filt", "-p", *symbols]).splitlines()
    missing = []
    for symbol, text in zip(symbols, shown, strict=True):
        path = itanium_name(symbol)
        if path is None:
            missing.append(text)
        elif path.endswith(".thunk"):
            assert text.split(" thunk to ")[1] == f"{path.removesuffix('.thunk')}()"
        else:
            plain = path.partition(".")[0].replace("lambda_0", LAMBDA)
            assert without_arguments(text) == without_arguments(plain)
    tables = ("typeinfo", "vtable", "VTT", "construction vtable")
    others = [text for text in missing if not text.startswith(tables)]
    assert sorted({re.sub(r".*::", "", text) for text in others}) == ["operator+", "~Raw"]


def run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def without_arguments(name: str) -> str:
    text = name.replace("(anonymous namespace)::", "")
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", text)) != text:
        text = shorter
    return text


def test_any_text_has_a_path_or_none() -> None:
    """A damaged symbol is no error, and its path names a place in facts."""
    choose = random.Random(51)
    for _ in range(20_000):
        name = choose.choice(list(NAMES))
        at = choose.randrange(len(name))
        damaged = (
            name[:at] + choose.choice("_ZNEISTL.0z9UFADXMC") + name[at + choose.randrange(3) :]
        )
        path = itanium_name(damaged)
        if path is not None:
            assert parse(f"{path} never returns\n", "k.facts"), damaged
    assert itanium_name("_Z1f" + "P" * 5000) is None


def test_two_functions_of_one_path_keep_their_symbols() -> None:
    one, other = "_ZN5board4overEi", "_ZN5board4overEl"
    rows = [RawSymbol(one, 0x100, 4, "STT_FUNC", "STB_LOCAL", True)]
    table = symbol_table(rows)
    assert [s.name for s in table.symbols] == ["board::over"]
    assert table.named("board::over") == table.named(one) == table.symbols
    table = symbol_table([*rows, RawSymbol(other, 0x200, 4, "STT_FUNC", "STB_LOCAL", True)])
    assert [s.name for s in table.symbols] == [one, other]
    assert not table.named("board::over")


def test_a_fact_names_a_path_or_the_symbol() -> None:
    mangled = "_ZN5board4feedEi"
    path = Path(build(f"int main(int n) {{ return n; }} int f(void) __asm__(\"{mangled}\"); "
                      "int f(void) { return 1; }"))  # fmt: skip
    image = Image.load(path)
    for name in ("board::feed", mangled):
        assert find_place(image, f"{name}+0x0").addresses == (image.symbols.named(mangled)[0].addr,)
