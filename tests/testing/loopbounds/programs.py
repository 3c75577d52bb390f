"""Random C functions with one nest of loops each, of a kind that is asked for."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["FLAGS", "KINDS", "UNCOUNTED", "random_program"]

PRELUDE = """volatile unsigned sink;
unsigned total, table[64];
struct state { unsigned left, index; } shared;
struct item { struct item *next; unsigned value; } *items;
"""


class _Writer:
    """The numbers of one program. ``a`` and ``b`` are arguments of the function, any words."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.step = chance.choice([1, 1, 2, 3, 5])
        self.body = chance.choice(["sink = total;", "total += a;", "table[b & 63] = total;"])

    def mask(self) -> int:
        """Of a few low bits."""
        return self._chance.choice([3, 7, 15, 31])

    def number(self, low: int, high: int) -> int:
        """Any number in between, both included."""
        return self._chance.randint(low, high)

    def amount(self) -> str:
        """A small unsigned number, known or not."""
        known = f"{self._chance.randint(1, 20)}u"
        return self._chance.choice([known, f"(a & {self.mask()})", f"(b >> 3 & {self.mask()})"])

    def one_of(self, *texts: str) -> str:
        """Any of them."""
        return self._chance.choice(texts)

    def up(self, inside: str) -> str:
        """A plain counting loop around ``inside``."""
        return f"for (unsigned i = 0; i < {self.amount()}; i += {self.step}) {{ {inside} }}"


def _nested(w: _Writer) -> str:
    return w.up(f"for (unsigned j = {w.amount()}; j; j--) {{ {w.body} }}")


def _triangular(w: _Writer) -> str:
    return (
        f"for (unsigned i = 0; i < {w.amount()}; i++)"
        f" for (unsigned j = 0; j < i; j++) {{ {w.body} }}"
    )


def _moving_limit(w: _Writer) -> str:
    """An inner loop whose limit doubles, halves, or follows from its last iteration."""
    last, step = w.number(2, 40), w.number(1, 3)
    outer = w.one_of(
        f"for (int g = {step}; g < {last}; g *= 2)", f"for (int g = {last}; g > 0; g /= 2)"
    )
    inner = w.one_of(
        f"int j = g; j < {last}; j++", "int j = 0; j < g; j++", f"int j = {last}; j >= g; j -= g"
    )
    return w.one_of(
        f"{outer} for ({inner}) {{ {w.body} }}",
        f"unsigned end = {last}; for (unsigned i = 0; i < {w.amount()}; i++) {{"
        f" unsigned x = i * {step}; while (x != end) {{ {w.body} x++; }} end = x + {step + 1}; }}",
    )


def _exits(w: _Writer) -> str:
    return w.up(f"if (sink == 77) break; {w.body} if (sink == 78) return 1;")


def _do_while(w: _Writer) -> str:
    return f"unsigned i = 0; do {{ {w.body} }} while (++i < {w.amount()});"


def _compare_first(w: _Writer) -> str:
    return f"unsigned i = 0; do {{ {w.body} }} while (i++ < {w.amount()});"


def _shifting(w: _Writer) -> str:
    return f"for (unsigned x = 1; x < {w.amount()} << 8; x <<= {w.step}) {{ {w.body} }}"


def _leading_zeros(w: _Writer) -> str:
    return (
        f"for (unsigned x = a & 0x{w.mask():x}00ff; x;)"
        f" {{ x &= ~(0x80000000u >> __builtin_clz(x)); {w.body} }}"
    )


def _low_bit(w: _Writer) -> str:
    return f"for (unsigned x = a & 0x{w.mask():x}0f; x; x &= x - 1) {{ {w.body} }}"


def _halving(w: _Writer) -> str:
    return f"for (unsigned x = b & 0x{w.mask():x}fff; x; x /= 2) {{ {w.body} }}"


def _on_the_stack(w: _Writer) -> str:
    return f"volatile unsigned i; for (i = 0; i < {w.amount()}; i += {w.step}) {{ {w.body} }}"


def _global(w: _Writer) -> str:
    return f"shared.left = {w.amount()}; while (shared.left) {{ shared.left--; sink = 1; }}"


def _pointer(w: _Writer) -> str:
    return (
        f"unsigned *end = table + {w.amount()}; for (unsigned *p = table; p != end; p++)"
        f" {{ *p = 1; {w.body} }}"
    )


def _two_compares(w: _Writer) -> str:
    return f"for (unsigned i = 0; i < {w.amount()} && i < {w.amount()}; i++) {{ {w.body} }}"


def _byte(w: _Writer) -> str:
    return f"unsigned char i = {w.amount()}; do {{ {w.body} i += {w.step | 1}; }} while (i != 200);"


def _message(w: _Writer) -> str:
    return (
        f"unsigned n = b & 127; if (n > {w.mask()}) n = {w.mask()};"
        f" for (unsigned i = 0; i < n; i++) {{ {w.body} }}"
    )


def _bits_left(w: _Writer) -> str:
    return (
        f"unsigned left = 32; while (left) {{ unsigned bits = (sink & {w.mask()}) + 1;"
        " if (bits > left) break; left -= bits; }"
    )


def _unrolled(w: _Writer) -> str:
    return f"\n#pragma GCC unroll 4\n{w.up('sink = i;')}"


def _copy(w: _Writer) -> str:
    return (
        f"unsigned n = {w.amount()}; unsigned char *to = (unsigned char *)table + (b & 3);"
        " unsigned char *from = (unsigned char *)&shared;"
        " while (n && ((unsigned)to & 3)) { *to++ = *from; n--; }"
        " for (; n >= 4; n -= 4, to += 4) *(unsigned *)to = total;"
        " while (n--) *to++ = *from;"
    )


def _set(w: _Writer) -> str:
    return (
        f"unsigned char *p = (unsigned char *)table + (a & 3), *end = p + {w.amount()};"
        " while (p != end && ((unsigned)p & 3)) *p++ = 0;"
        " for (; end - p >= 4; p += 4) *(unsigned *)p = 0;"
        " while (p != end) *p++ = 0;"
    )


def _division(w: _Writer) -> str:
    """As software divides: by subtraction, bit by bit, or from where the divisor is aligned."""
    by_subtraction = (
        f"unsigned n = a & 255, d = (b & {w.mask()}) + {w.step + 1};"
        " while (n >= d) { n -= d; total++; }"
    )
    bit_by_bit = (
        "unsigned d = b | 1, r = 0; for (int i = 31; i >= 0; i--)"
        " { r = r << 1 | (a >> i & 1); if (r >= d) { r -= d; total |= 1u << i; } }"
    )
    aligned = (
        f"unsigned n = a, d = (b & {w.mask()}) | 1, bit = 1;"
        " while (d < n && !(d & 0x80000000u)) { d <<= 1; bit <<= 1; }"
        " while (bit) { if (n >= d) { n -= d; total |= bit; } d >>= 1; bit >>= 1; }"
    )
    return w.one_of(by_subtraction, bit_by_bit, aligned)


def _soft_float(w: _Writer) -> str:
    """Fractions of 24 bits are aligned to one exponent, or the leading bit of one is looked for."""
    aligned = (
        "unsigned m = a | 0x800000, n = b | 0x800000;"
        f" unsigned e = 64 + (a & {w.mask()}), f = 64 + (b & {w.mask()});"
        " for (; e < f; e++) m >>= 1;"
        " for (; f < e; f++) n >>= 1;"
        " total = m + n + e;"
    )
    normalised = (
        "unsigned m = a & 0x7fffff, e = 1;"
        " while (m && !(m & 0x800000)) { m <<= 1; e--; }"
        " total = m + e;"
    )
    return w.one_of(aligned, normalised)


def _vectorised(w: _Writer) -> str:
    """Elements of at most a word, several at a time; remaining ones singly, without a loop."""
    size = w.one_of("unsigned char", "unsigned short", "unsigned")
    body = w.one_of("u[i] += v[i];", "u[i] = b;", "u[i] ^= v[i] + 3;")
    return (
        f"static {size} u[1024], v[1024]; unsigned n = {w.one_of('a', 'b')} & 1023;"
        f" v[a & 15] = b; for (unsigned i = 0; i < n; i++) {body} sink = u[b & 1023];"
    )


def _list(w: _Writer) -> str:
    return f"for (struct item *i = items; i; i = i->next) {{ total += i->value; {w.body} }}"


_KINDS: dict[str, Callable[[_Writer], str]] = {
    "nested": _nested,
    "triangular": _triangular,
    "several exits": _exits,
    "do/while": _do_while,
    "compare before increment": _compare_first,
    "shifting": _shifting,
    "count leading zeros": _leading_zeros,
    "x &= x - 1": _low_bit,
    "halving": _halving,
    "counter on the stack": _on_the_stack,
    "global counter": _global,
    "moving pointer": _pointer,
    "two compares": _two_compares,
    "byte that wraps": _byte,
    "masked word or constant": _message,
    "bits left": _bits_left,
    "unrolled": _unrolled,
    "copy with prologue": _copy,
    "set with prologue": _set,
    "software division": _division,
    "soft float": _soft_float,
    "vectorised": _vectorised,
    "list": _list,
    "moving limit": _moving_limit,
}
KINDS = tuple(_KINDS)
NEON = ("-O3", "-mcpu=cortex-a8", "-mfpu=neon", "-mfloat-abi=softfp")
FLAGS: dict[str, tuple[str, ...]] = {"vectorised": NEON}  # for programs of a kind
UNCOUNTED = ("list",)  # nothing in the binary bounds them


def random_program(chance: random.Random, kind: str) -> str:
    """The text of ``main(unsigned a, unsigned b)``."""
    text = _KINDS[kind](_Writer(chance))
    return f"{PRELUDE}int main(unsigned a, unsigned b)\n{{\n    {text}\n    return 0;\n}}\n"
