"""Words that interrupt handlers store to are unknown on paths that they interrupt (rule 49)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

KERNEL = """
.syntax unified
.arm
.text
.global main
.type main, %function
main:
    ldr r0, =limit
    mov r1, #3
    str r1, [r0]
    {unmasked}
    cpsid i
    {masked}
    ldr r2, [r0]
1:  subs r2, r2, #1
    bne 1b
    cpsie i
    bx lr
.size main, . - main
.type vector_irq, %function
vector_irq:
    sub lr, lr, #4
    push {{r0, r1, r2, lr}}
    ldr r0, =limit
    mov r1, #1000
    {handler}
    ldm sp!, {{r0, r1, r2, pc}}^
.size vector_irq, . - vector_irq
.type vector_svc, %function
vector_svc:
    {system_call}
    movs pc, lr
.size vector_svc, . - vector_svc
.ltorg
.data
.balign 64
limit: .word 3
other: .word 3, 3, 3, 3
"""
LINK = ("-Wl,-Ttext=0xf0010000", "-Wl,-Tdata=0xf0020000")
BEGINS = "main begins unmasked\n"


def regions(
    folder: Path,
    handler: str,
    *options: str,
    masked: str = "",
    unmasked: str = "",
    system_call: str = "",
    entry: str = "main",
    stated: str = "",
) -> dict[str, Any]:
    """The JSON document of ``wcet masked`` for a kernel with this handler."""
    body = KERNEL.format(handler=handler, masked=masked, unmasked=unmasked, system_call=system_call)
    facts, out = folder / "k.facts", folder / "m.json"
    facts.write_text(BEGINS + stated)
    where = options or ("--entry", entry)
    elf = build(body, language="asm", link=LINK)
    main([
        *("masked", str(elf), *where, "--facts", str(facts), "--json", str(out)),
        *("--quiet", "--no-cache", "--platform", "kzm"),
    ])  # fmt: skip
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def is_bounded(document: dict[str, Any], start: str = "main") -> bool:
    """Whether the region in ``start`` has a bound."""
    said = [one["start"] for one in (*document["regions"], *document["not_bounded"])]
    assert any(start in one for one in said)
    return not any(start in one["start"] for one in document["not_bounded"])


def assumed(document: dict[str, Any], kind: str) -> list[str]:
    return [one["text"] for one in document["assumption_kinds"] if one["kind"] == kind]


STORES = {
    "word": "str r1, [r0]",
    "byte": "strb r1, [r0, #1]",
    "array": "and r2, r2, #3\nstr r1, [r0, r2, lsl #2]",
    "pair": "sub r0, r0, #4\nstm r0, {r1, r2}",
}
UNKNOWN = "str r1, [r2]"


@pytest.mark.slow("searches for the bound of a loop that has none")
@pytest.mark.parametrize("store", STORES)
def test_a_word_that_the_handler_stores_to_is_unknown(store: str, tmp_path: Path) -> None:
    assert not is_bounded(regions(tmp_path, STORES[store]))


@pytest.mark.slow("searches for the bound of a loop that has none")
@pytest.mark.parametrize(
    "read",
    [
        "ldr r3, =other\nsub r0, r3, #4",  # another base
        "and r3, r3, #4\nadd r0, r0, r3",  # a word that may be it
    ],
)
def test_it_is_unknown_by_every_address(read: str, tmp_path: Path) -> None:
    stores = "str r1, [r0, #4]"
    assert is_bounded(
        regions(tmp_path, "str r1, [r0, #8]", masked="ldr r3, =other\nsub r0, r3, #4")
    )
    assert not is_bounded(regions(tmp_path, STORES["word"], unmasked=stores, masked=read))


@pytest.mark.slow("analyses two kernels")
def test_it_is_unknown_in_memory_that_a_fact_describes(tmp_path: Path) -> None:
    """A branch that the word decides may go both ways, and one of them is longer."""
    fact = "region heap from 0xf0028000 to 0xf0028fff is cached\n"
    store = "ldr r3, =0xf0028000\nstr r1, [r3]"
    branch = "beq 2f\nldr r3, [r0, #4]\nldr r3, [r0, #8]\n2:"
    cycles = []
    for handler in ("str r1, [r0, #4]", store):
        before = f"{store}\nldr r3, [r3]\ncmp r3, #3"
        found = regions(tmp_path, handler, unmasked=before, masked=branch, stated=fact)
        cycles.append(found["regions"][0]["cycles"])
    assert cycles[0] < cycles[1]


@pytest.mark.slow("analyses a kernel")
@pytest.mark.parametrize("handler", ["str r1, [r0, #4]", "ldr r1, [r0]", UNKNOWN])
def test_other_words_stay_known(handler: str, tmp_path: Path) -> None:
    found = regions(tmp_path, handler)
    assert is_bounded(found)
    assert len(assumed(found, "undisturbed")) == 1
    named = assumed(found, "handler stores")
    assert len(named) == (handler is UNKNOWN)
    assert all("vector_irq+" in one for one in named)


@pytest.mark.slow("analyses a kernel")
def test_a_path_that_stays_masked_is_not_interrupted(tmp_path: Path) -> None:
    call = "ldr r0, =limit\nmov r1, #3\nstr r1, [r0]\nldr r2, [r0]\n1: subs r2, r2, #1\nbne 1b"
    found = regions(tmp_path, STORES["word"], system_call=call, entry="syscall")
    assert is_bounded(found, "vector_svc")
    assert not assumed(found, "undisturbed")


@pytest.mark.slow("searches for the bound of a loop that has none")
def test_functions_are_followed_with_the_stores_of_the_handler(tmp_path: Path) -> None:
    options = "--everywhere", "--entry", "main"
    assert is_bounded(regions(tmp_path, "str r1, [r0, #4]", *options))
    assert not is_bounded(regions(tmp_path, STORES["word"], *options))
    found = regions(tmp_path, STORES["word"], *options, "--budget", "3")
    assert any("not analysed" in one for one in assumed(found, "handler stores"))
