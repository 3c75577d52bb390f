"""Addresses with a Thumb bit that contradicts the ELF's instruction set."""

from __future__ import annotations

import pytest

from quoll.errors import FactsError, UsageError
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.quoll.building import address, build
from wcet.cli import main

CODE = """
.syntax unified
.arm
.global main
.type main, %function
main: mov r0, #1
    mov r0, #2
    blx r1
    bx lr
.type table, %object
table: .word 17
.thumb
.thumb_func
.type narrow, %function
narrow: movs r0, #1
label: movs r0, #2
    bx lr
"""


@pytest.fixture(scope="module")
def image() -> Image:
    return Image.load(build(CODE, language="asm", cpu="cortex-a8"))


def test_an_odd_address_of_arm_code_is_no_entry(image: Image) -> None:
    """Rubbish was decoded and bounded."""
    with pytest.raises(UsageError, match="stands for Thumb code, but its mapping symbol"):
        extract(image, [address(image, "main") + 5])


def test_an_address_takes_the_state_of_its_code(image: Image) -> None:
    for name in ("narrow", "label"):
        program = extract(image, [address(image, name) & ~1])
        assert all(i.thumb for f in program.functions.values() for b in f.blocks for i in b.insns)


def test_data_is_no_entry(image: Image) -> None:
    with pytest.raises(UsageError, match="data"):
        extract(image, [address(image, "table")])


def test_a_fact_with_an_odd_address_of_arm_code_is_refused(image: Image) -> None:
    main_ = address(image, "main")
    facts = parse(f"targets of {main_ + 8:#x} are {main_ | 1:#x}\n", "k.facts")
    with pytest.raises(FactsError, match="stands for Thumb code"):
        extract(image, [main_], locate(facts, image))


def test_an_odd_address_of_thumb_code_is_that_place(image: Image) -> None:
    narrow = address(image, "narrow") & ~1
    facts = parse(f"path must end at {narrow + 3:#x}\n", "k.facts")
    (function,) = extract(image, [narrow], locate(facts, image)).functions.values()
    assert [b.last.addr for b in function.blocks if b.exits] == [narrow + 2]


@pytest.mark.parametrize(
    ("target", "says"),
    [("ldr pc, =label", "Thumb"), ("ldr pc, =main + 1", "ARM")],
)
def test_a_transfer_to_code_of_the_other_state_is_not_followed(target: str, says: str) -> None:
    source = CODE.replace("main: mov", f"main: cmp r0, #0\n{target}\nmov").replace(
        "label:", ".align 2\nlabel:"
    )
    image = Image.load(build(source, language="asm", cpu="cortex-a8"))
    program = extract(image, [address(image, "main")])
    assert any(f"says that it is {says} code" in u.reason for u in program.unresolved)


def test_the_command_refuses_it(capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(CODE, language="asm", link=("-Wl,-Ttext=0xf0010000",), cpu="cortex-a8")
    arguments = ["analyse", str(elf), "--quiet", "--no-cache", "--entry", "0xf0010001"]
    assert main(arguments) == 2
    assert "stands for Thumb code" in capsys.readouterr().err
