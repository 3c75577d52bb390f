"""Operands that are one register: bases that are loaded, sources that are written.

Every form has letters for its operands; the registers are drawn from few, so that they coincide.
Combinations that the manual calls UNPREDICTABLE are left out (ARM DDI 0406, A8.8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from campaigns.adversary.program import Input, Program, Writer

__all__ = ["FORMS", "Form", "generate"]

Registers = dict[str, int]


def anything(r: Registers) -> bool:
    """No combination is UNPREDICTABLE."""
    return True


@dataclass(frozen=True, slots=True)
class Form:
    """An instruction with letters for registers: letters in ``base`` are addresses."""

    text: str
    letters: str
    allowed: Callable[[Registers], bool] = anything
    base: str = ""  # letters of registers that hold the address of the data
    index: str = ""  # letters of registers that hold a small offset
    state: str = "both"  # or "arm", "thumb"
    pair: str = ""  # the letter of the first register of a pair; the second is the next one


def apart(*pairs: str) -> Callable[[Registers], bool]:
    """The two registers of each pair differ."""
    return lambda r: all(r[pair[0]] != r[pair[1]] for pair in pairs)


FORMS = (
    Form("ldr {d}, [{n}]", "dn", base="n"),
    Form("ldr {d}, [{n}, {m}]", "dnm", apart("nm"), base="n", index="m"),
    Form("ldr {d}, [{n}, {m}, lsl #2]", "dnm", apart("nm"), base="n", index="m"),
    Form("ldr {d}, [{n}, #4]!", "dn", apart("dn"), base="n"),
    Form("ldr {d}, [{n}], #4", "dn", apart("dn"), base="n"),
    Form("ldr {d}, [{n}, {m}]!", "dnm", apart("dn", "nm"), base="n", index="m", state="arm"),
    Form("ldr {d}, [{n}], {m}", "dnm", apart("dn", "nm"), base="n", index="m", state="arm"),
    Form("ldrb {d}, [{n}, {m}]", "dnm", apart("nm"), base="n", index="m"),
    Form("ldrsh {d}, [{n}, {m}]", "dnm", apart("nm"), base="n", index="m"),
    Form("ldrh {d}, [{n}], {m}", "dnm", apart("dn", "nm"), base="n", index="m", state="arm"),
    Form("ldrd {d}, {e}, [{n}]", "dn", base="n", pair="d"),
    Form("ldrd {d}, {e}, [{n}, #8]", "dn", base="n", pair="d"),
    Form("ldrd {d}, {e}, [{n}, {m}]", "dnm",
         lambda r: r["n"] != r["m"] and r["m"] not in (r["d"], r["e"]),
         base="n", index="m", state="arm", pair="d"),
    Form("ldrd {d}, {e}, [{n}], #8", "dn", lambda r: r["n"] not in (r["d"], r["e"]),
         base="n", pair="d"),
    Form("strd {d}, {e}, [{n}]", "dn", base="n", pair="d"),
    Form("strd {d}, {e}, [{n}, #8]!", "dn", lambda r: r["n"] not in (r["d"], r["e"]),
         base="n", pair="d"),
    Form("ldrexd {d}, {e}, [{n}]", "dn", base="n", state="v7", pair="d"),
    Form("ldrex {d}, [{n}]", "dn", base="n"),
    Form("ldrexb {d}, [{n}]", "dn", base="n", state="v7"),
    Form("ldrexh {d}, [{n}]", "dn", base="n", state="v7"),
    Form("strex {d}, {m}, [{n}]", "dmn", apart("dm", "dn"), base="n"),
    Form("strexd {d}, {t}, {u}, [{n}]", "dtn",
         lambda r: r["d"] not in (r["t"], r["u"], r["n"]), base="n", state="v7", pair="t"),
    Form("ldm {n}, {{r0, r1, r2}}", "n", base="n"),
    Form("ldm {n}, {{r2, r3, r4}}", "n", base="n"),
    Form("ldmdb {n}, {{r1, r2, r3, r4}}", "n", base="n"),
    Form("ldmib {n}, {{r0, r2, r4}}", "n", base="n", state="arm"),
    Form("ldmda {n}, {{r0, r1, r4}}", "n", base="n", state="arm"),
    Form("ldm {n}!, {{r5, r8}}", "n", base="n"),
    Form("stm {n}, {{r0, r1, r2, r3}}", "n", base="n"),
    Form("stmib {n}, {{r1, r3, r4}}", "n", base="n", state="arm"),
    Form("stmdb {n}!, {{r5, r8}}", "n", base="n"),
    Form("swp {d}, {m}, [{n}]", "dmn", apart("dn", "mn"), base="n", state="arm"),
    Form("swpb {d}, {m}, [{n}]", "dmn", apart("dn", "mn"), base="n", state="arm"),
    Form("str {d}, [{n}, {m}, lsl #2]", "dnm", apart("nm"), base="n", index="m"),
    Form("str {d}, [{n}], #4", "dn", apart("dn"), base="n"),
    Form("strh {d}, [{n}, {m}]", "dnm", apart("nm"), base="n", index="m"),
    Form("mul {d}, {n}, {m}", "dnm"),
    Form("mla {d}, {n}, {m}, {a}", "dnma"),
    Form("mls {d}, {n}, {m}, {a}", "dnma", state="v7"),
    Form("umull {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("smull {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("umlal {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("smlal {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("umaal {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("smlalbb {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("smlald {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("smlsldx {d}, {a}, {n}, {m}", "danm", apart("da")),
    Form("smlabb {d}, {n}, {m}, {a}", "dnma"),
    Form("smlawt {d}, {n}, {m}, {a}", "dnma"),
    Form("smlad {d}, {n}, {m}, {a}", "dnma"),
    Form("smmla {d}, {n}, {m}, {a}", "dnma"),
    Form("smulbt {d}, {n}, {m}", "dnm"),
    Form("bfi {d}, {n}, #2, #5", "dn", state="v7"),
    Form("bfi {d}, {n}, #0, #3", "dn", state="v7"),
    Form("ubfx {d}, {n}, #1, #4", "dn", state="v7"),
    Form("sxtah {d}, {n}, {m}, ror #8", "dnm"),
    Form("uxtab {d}, {n}, {m}", "dnm"),
    Form("uxtb16 {d}, {n}", "dn"),
    Form("sxth {d}, {n}", "dn"),
    Form("pkhbt {d}, {n}, {m}, lsl #4", "dnm"),
    Form("pkhtb {d}, {n}, {m}, asr #3", "dnm"),
    Form("rev16 {d}, {n}", "dn"),
    Form("revsh {d}, {n}", "dn"),
    Form("rsb {d}, {n}, {m}, lsl #3", "dnm"),
    Form("sub {d}, {n}, {m}, lsr #1", "dnm"),
    Form("add {d}, {n}, {m}, lsl {a}", "dnma", state="arm"),
    Form("bic {d}, {n}, {m}, ror {a}", "dnma", state="arm"),
    Form("lsl {d}, {n}, {m}", "dnm"),
    Form("asr {d}, {n}, {m}", "dnm"),
    Form("ror {d}, {n}, {m}", "dnm"),
    Form("adds {d}, {n}, {m}|adc {m}, {d}, {n}", "dnm"),
    Form("subs {d}, {n}, {m}|sbc {d}, {d}, {n}", "dnm"),
    Form("rrx {d}, {n}", "dn"),
    Form("movs {d}, {n}, lsr #1|adc {d}, {d}, {n}", "dn"),
    Form("lsls {d}, {n}, {m}|sbc {m}, {n}, {d}", "dnm"),
    Form("uadd8 {d}, {n}, {m}|sel {d}, {n}, {d}", "dnm"),
)  # fmt: skip


def possible(form: Form, w: Writer) -> bool:
    """Whether the board has it."""
    if form.state == "v7":
        return w.board.armv7
    return form.state == "both" or form.state == ("thumb" if w.board.thumb else "arm")


def generate(w: Writer) -> Program:
    """Six instructions on known words, each followed by branches on bits of its results."""
    w.add("mov r6, lr", "and r12, r0, #3", "ldr r7, =d~")
    for i in range(6):  # small words, and addresses of such words
        small, near = w.draw.randrange(256), 64 + 8 * w.draw.randrange(3)
        w.add(f"mov r5, #{small}" if w.chance(0.5) else f"add r5, r7, #{near}")
        w.add(f"str r5, [r7, #{64 + 4 * i}]")
    forms = [one(w) for _ in range(6)]
    w.add("bx r6")
    inputs: tuple[Input, ...] = tuple((("r0", i),) for i in range(4))
    return w.done("overlaps", inputs=inputs, enumerated=True, form="; ".join(forms))


def one(w: Writer) -> str:
    """An instruction, mostly with operands that are one register; its form."""
    form = w.draw.choice([form for form in FORMS if possible(form, w)])
    registers = assigned(w, form)
    if len(set(registers.values())) == len(registers):
        registers = assigned(w, form)
    given = w.draw.randrange(12)  # one of the registers may be the input
    for number in range(5):
        w.add(
            f"mov r{number}, r12" if number == given else f"mov r{number}, #{w.draw.randrange(64)}"
        )
    for letter in form.index:
        w.add(f"mov r{registers[letter]}, #{4 * w.draw.randrange(2)}")
    for letter in form.base:
        w.add(f"add r{registers[letter]}, r7, #{64 + 8 * w.draw.randrange(2)}")
    if "strex" in form.text:
        w.add("ldrexd r8, r9, [r7]" if "strexd" in form.text else "ldrex r8, [r7]")
    text = form.text.format(**{letter: f"r{n}" for letter, n in registers.items()})
    text, *more = text.split("|")
    if not more and not w.board.thumb and w.chance(0.15):
        w.add("cmp r12, #1")
        text = conditional(text, w.one_of("eq", "ne"))
    w.add(text, *more)
    for number in sorted(set(registers.values())):
        w.bits(f"r{number}", *w.draw.sample(range(7), 3))
    if form.base:
        w.add(f"ldr r5, [r7, #{64 + 4 * w.draw.randrange(4)}]")
        w.bits("r5", *w.draw.sample(range(6), 2))
    return named(form, registers)


def conditional(text: str, condition: str) -> str:
    """The instruction under a condition, in the unified syntax."""
    name, _, rest = text.partition(" ")
    return f"{name}{condition} {rest}"


def assigned(w: Writer, form: Form) -> Registers:
    """Registers of r0 to r4 that the form allows; even ones where ARM code has a pair."""
    while True:
        found: Registers = {}
        for letter in form.letters:
            found[letter] = w.draw.randrange(5)
            if letter == form.pair:
                found[letter] = 2 * w.draw.randrange(2)
                found["e" if letter == "d" else "u"] = found[letter] + 1
        if form.allowed(found):
            return found


def named(form: Form, registers: Registers) -> str:
    """The name of a form with equal operands: "ldr d=n"."""
    same = [
        f"{a}={b}"
        for i, a in enumerate(registers)
        for b in list(registers)[i + 1 :]
        if registers[a] == registers[b]
    ]
    return " ".join([form.text, *same])
