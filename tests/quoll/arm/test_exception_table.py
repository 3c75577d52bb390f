"""Exception tables of all forms, and code that is none."""

from __future__ import annotations

import pytest

from quoll.arm.exception_table import (
    EXCEPTIONS,
    entered_mode,
    exception_tables,
    microcontroller_tables,
)
from tests.testing.quoll.sketch import assemble

WORDS = ("ldr pc, RESET", "ldr pc, UNDEF", "ldr pc, SWI", "ldr pc, UNDEF", "ldr pc, UNDEF", "nop",
         "ldr pc, IRQ", "ldr pc, UNDEF")  # fmt: skip
BEHIND = """
RESET: .word start
UNDEF: .word stop
SWI:   .word svc
IRQ:   .word irq
 .type start,%function
start: b start
 .type stop,%function
stop: b stop
 .type svc,%function
svc: movs pc, lr
 .type irq,%function
irq: subs pc, lr, #4
"""


def handlers(
    words: tuple[str, ...], before: str = "main: nop\n.balign 32\ntable:", behind: str = BEHIND
) -> dict[str, str]:
    """The name of each handler by exception, of the only table; "itself" for its own words."""
    image = assemble("\n".join((before, *words, behind)), cpu="cortex-a8")
    tables = exception_tables(image)
    if not tables:
        return {}
    (table,) = tables
    named = {}
    for exception, handler in zip(EXCEPTIONS, table.handlers, strict=True):
        if handler is not None:
            symbol = image.symbol_at(handler & ~1)
            assert symbol is not None
            named[exception] = "itself" if symbol[1] else symbol[0].name
    return named


EXPECTED = {
    "reset": "start",
    "undefined instruction": "stop",
    "supervisor call": "svc",
    "prefetch abort": "stop",
    "data abort": "stop",
    "interrupt": "irq",
    "fast interrupt": "stop",
}


def test_literals_that_have_names() -> None:
    assert handlers(WORDS) == EXPECTED
    assert handlers(WORDS, before="main: nop\n.balign 32\nnop\ntable:") == EXPECTED, "at a symbol"


def test_branches_and_empty_words() -> None:
    words = ("b start", "nop", "b svc", "mov r0, r0", ".word 0", ".word 0", "b irq", "b .")
    assert handlers(words) == {
        "reset": "start", "supervisor call": "svc", "interrupt": "irq", "fast interrupt": "itself"
    }  # fmt: skip


def test_a_fast_handler_in_its_place() -> None:
    words = (*(word.replace("ldr pc, ", "b ") for word in WORDS[:7]), "fast: sub lr, lr, #4")
    behind = f"subs pc, lr, #0\n.type fast,%function\n{BEHIND}"
    names = {"RESET": "start", "UNDEF": "stop", "SWI": "svc", "IRQ": "irq"}
    for old, new in names.items():
        words = tuple(word.replace(f"b {old}", f"b {new}") for word in words)
    assert handlers(words, behind=behind) == {**EXPECTED, "fast interrupt": "fast"}


@pytest.mark.parametrize("form", ["b.w {}", "b.n {}\n nop"])
def test_thumb(form: str) -> None:
    names = ("start", "stop", "svc", "stop", "stop", "stop", "irq", "stop")
    words = tuple(form.format(name) for name in names)
    before = "main: nop\n.balign 32\n.thumb\ntable:"
    assert handlers(words, before, BEHIND.replace("movs pc, lr", "subs pc, lr, #0")) == {
        **EXPECTED, "unused vector": "stop"}  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("beq start", *WORDS[1:]),
        (*WORDS[:2], "bl svc", *WORDS[3:]),
        (*WORDS[:6], "add r0, r0, r1", WORDS[7]),
        (*WORDS[:7], ".word 0xffffffff"),
        ("b start", *7 * ["nop"]),
    ],
)
def test_other_code_is_none(words: tuple[str, ...]) -> None:
    assert not handlers(words)


def test_the_branches_of_a_switch_are_none() -> None:
    before = "main: nop\n.balign 32\n.type f,%function\nf: nop\n.balign 32\n"
    words = tuple(f"b {name}" for name in ("start", "stop", "svc", "irq") * 2)
    assert not handlers(words, before, f".size f, . - f\n{BEHIND}")


def test_functions_of_one_branch_are_none() -> None:
    thunk = ".type {0},%function\n{0}: b {1}\n.size {0}, 4\n"
    words = [thunk.format(f"f{n}", "stop" if n % 2 else "svc") for n in range(8)]
    assert not handlers(tuple(words))


def test_the_table_of_the_m_profile() -> None:
    text = """
        .word 0x20001000, reset + 1, stop + 1, stop + 1, 0, 0, 0, 0
        .thumb
        main: reset: b reset
        stop: b stop
    """
    image = assemble(text)
    assert microcontroller_tables(image) == (image.segments[0].addr,)
    assert not exception_tables(image)
    assert not microcontroller_tables(assemble(text.replace("reset + 1", "reset")))


def entered(name: str, *words: str) -> int | None:
    """The mode in which a symbol is entered, by a table of ``words``."""
    image = assemble("\n".join(("main: nop\n.balign 32\ntable:", *words, BEHIND)), cpu="cortex-a8")
    symbol = image.symbol(name)
    assert symbol is not None
    found = entered_mode(image, symbol.addr)
    return None if found is None else found.mode


def test_modes_of_handlers() -> None:
    """Each as its exception; ``stop`` has vectors of several modes, ``main`` none."""
    modes = {name: entered(name, *WORDS) for name in ("start", "stop", "svc", "irq", "main")}
    assert modes == {"start": 0x13, "stop": None, "svc": 0x13, "irq": 0x12, "main": None}
    assert entered("table", *WORDS) == 0x13, "the vector itself"
    one = ("ldr pc, RESET", "b .", "ldr pc, SWI", "b svc", "ldr pc, UNDEF", "nop", "b irq", "b irq")
    assert entered("stop", *one) == 0x17
    assert entered("irq", *one) is None, "interrupts and fast interrupts"


def test_a_table_with_the_vector_of_hyp_mode_tells_no_modes() -> None:
    assert entered("irq", *WORDS[:5], "ldr pc, UNDEF", *WORDS[6:]) is None
    assert entered("irq", *WORDS[:5], "b .", *WORDS[6:]) == 0x12
