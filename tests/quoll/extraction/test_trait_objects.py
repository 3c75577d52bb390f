"""Calls of methods of Rust's trait objects: the vtables that they may go through.

The code and its debug information are what rustc emits, without the parts that are not read.
"""

from __future__ import annotations

import pytest

from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from tests.testing.quoll.building import build

METHODS = {
    "_RNvXs2_Cs1YoP5fGpeRt_1fNtB5_1ANtB5_6Sensor4read": "ldr r0, [r0]",
    "_RNvXs2_Cs1YoP5fGpeRt_1fNtB5_1ANtB5_6Sensor5scale": "mov r0, #3",
    "_RNvXs3_Cs1YoP5fGpeRt_1fNtB5_1BNtB5_6Sensor4read": "ldr r0, [r0, #4]",
    "_RNvXs3_Cs1YoP5fGpeRt_1fNtB5_1BNtB5_6Sensor5scale": "ldr r0, [r0]",
}
FUNCTIONS = "".join(
    f".type {name}, %function\n{name}: {body}\nbx lr\n.size {name}, .-{name}\n"
    for name, body in METHODS.items()
)
A_READ, A_SCALE, B_READ, B_SCALE = METHODS
FRAMES = "".join(
    f"""
.global {name}
.type {name}, %function
{name}: push {{r4, r5, r6, lr}}
sub sp, #24
ldr r0, =CHOSEN
ldr r1, =.rodata
ldr r2, =.rodata + {other}
str r0, [sp]
str r1, [sp, #4]
str r0, [sp, #8]
str r2, [sp, #12]
str r2, [sp, #16]
mov r4, #0
mov r5, sp
1: add r6, r5, r4, lsl #3
ldrd r0, r1, [r6]
ldr r2, [r1, #12]
blx r2
add r4, #1
cmp r4, #2
bne 1b
add sp, #24
pop {{r4, r5, r6, pc}}
.ltorg
"""
    for name, other in (("by_frame", 20), ("by_inside", 4))
)
SOURCE = f"""
.syntax unified
.text
.global by_static, by_option, by_parameter
.type by_static, %function
by_static: push {{r4, lr}}
ldr r4, =CHOSEN
ldrd r0, r1, [r4]
ldr r1, [r1, #12]
blx r1
pop {{r4, pc}}
.ltorg
.type by_option, %function
by_option: push {{r4, lr}}
ldr r4, =PERHAPS
ldr r1, [r4, #4]
ldr r1, [r1, #12]
blx r1
pop {{r4, pc}}
.ltorg
.type by_parameter, %function
by_parameter: push {{r4, lr}}
ldr r3, [r1, #16]
blx r3
1: pop {{r4, pc}}
{FRAMES}
{FUNCTIONS}
.type plain, %function
plain: bx lr
.type dropped, %function
dropped: bx lr
.section .rodata
.balign 4
.word 0, 4, 4, {A_READ}, {A_SCALE}
.word plain, 8, 4, {B_READ}, {B_SCALE}
.word 0, 4, 3, plain, plain
.word 3, dropped, 12, 4, 3, 0, 8, 4, 0, .rodata, {B_READ}, 1
.data
.type CHOSEN, %object
CHOSEN: .word 0, .rodata
.size CHOSEN, 8
.type PERHAPS, %object
PERHAPS: .word 0, 0
.size PERHAPS, 8
.word plain
.section .debug_abbrev
.uleb128 1, 0x11; .byte 1; .uleb128 0x03, 0x08, 0, 0
.uleb128 2, 0x24; .byte 0; .uleb128 0x03, 0x08, 0x0B, 0x0B, 0x3E, 0x0B, 0, 0
.uleb128 3, 0x01; .byte 1; .uleb128 0x49, 0x13, 0, 0
.uleb128 4, 0x21; .byte 0; .uleb128 0x37, 0x0B, 0, 0
.uleb128 5, 0x0F; .byte 0; .uleb128 0x49, 0x13, 0, 0
.uleb128 6, 0x13; .byte 1; .uleb128 0x03, 0x08, 0x0B, 0x0B, 0, 0
.uleb128 7, 0x0D; .byte 0; .uleb128 0x03, 0x08, 0x49, 0x13, 0x38, 0x0B, 0, 0
.uleb128 8, 0x34; .byte 0; .uleb128 0x49, 0x13, 0x02, 0x18, 0, 0
.uleb128 9, 0x2E; .byte 1; .uleb128 0x11, 0x01, 0, 0
.uleb128 10, 0x05; .byte 0; .uleb128 0x49, 0x13, 0x02, 0x17, 0, 0
.uleb128 11, 0x33; .byte 1; .uleb128 0, 0
.uleb128 12, 0x19; .byte 1; .uleb128 0, 0
.byte 0
.section .debug_loc
held: .word by_parameter, 1b; .short 6; .byte 0x50, 0x93, 4, 0x51, 0x93, 4
.word 0, 0
.section .debug_info
unit: .word over - version
version: .short 4
.word .debug_abbrev
.byte 4
.uleb128 1; .asciz "f.rs"
usize: .uleb128 2; .asciz "usize"; .byte 4, 7
table: .uleb128 3; .word usize - unit
.uleb128 4; .byte 5, 0
pointer: .uleb128 5; .word table - unit
trait: .uleb128 6; .asciz "&dyn f::Sensor"; .byte 8
.uleb128 7; .asciz "pointer"; .word pointer - unit; .byte 0
.uleb128 7; .asciz "vtable"; .word pointer - unit; .byte 4
.byte 0
some: .uleb128 6; .asciz "Some"; .byte 8
.uleb128 7; .asciz "__0"; .word trait - unit; .byte 0
.byte 0
option: .uleb128 6; .asciz "Option<&dyn f::Sensor>"; .byte 8
.uleb128 11
.uleb128 7; .asciz "tag"; .word usize - unit; .byte 4
.uleb128 12
.uleb128 7; .asciz "Some"; .word some - unit; .byte 0
.byte 0, 0, 0
.uleb128 8; .word trait - unit; .byte 5, 3; .word CHOSEN
.uleb128 8; .word option - unit; .byte 5, 3; .word PERHAPS
.uleb128 9; .word by_parameter
.uleb128 10; .word trait - unit, held
.byte 0, 0
over:
"""


@pytest.fixture(scope="module")
def image() -> Image:
    return Image.load(build(SOURCE, language="S"))


def addresses(image: Image, *names: str) -> set[int]:
    return {symbol.addr for name in names for symbol in image.symbols.named(name)}


@pytest.mark.parametrize("function", ["by_static", "by_option", "by_parameter", "by_frame"])
def test_a_method_is_a_virtual_call(image: Image, function: str) -> None:
    """Beside a function whose address is taken, by the type of the pointer to the object."""
    (call,) = extract(image, sorted(addresses(image, function))).unresolved
    assert call.proposal is not None
    assert call.proposal.fact == "calls at PLACE go through any vtable"


def test_an_address_inside_of_a_vtable_leaves_the_call_open(image: Image) -> None:
    """Its slots are others."""
    (call,) = extract(image, sorted(addresses(image, "by_inside"))).unresolved
    assert call.proposal is not None
    assert "plain" in call.proposal.fact


@pytest.mark.parametrize(
    ("function", "methods"),
    [
        ("by_static", (A_READ, B_READ)),
        ("by_frame", (A_READ, B_READ)),
        ("by_parameter", (*METHODS, "plain", "dropped")),
        ("by_inside", (*METHODS, "plain", "dropped")),
    ],
)
def test_the_call_selects_the_method(image: Image, function: str, methods: tuple[str, ...]) -> None:
    """Any method where the vtable is an argument: a callback may be loaded so, too."""
    entry = sorted(addresses(image, function))
    (call,) = extract(image, entry).unresolved
    facts = locate(parse(f"calls at {call.addr:#x} go through any vtable\n", "f.facts"), image)
    program = extract(image, entry, facts)
    assert not program.unresolved
    assert set(program.functions) - {*entry} == addresses(image, *methods)


def test_vtables_have_their_shape(image: Image) -> None:
    """The third object has an alignment that is none; one trait has no method, one a vacant one."""
    vtables = Vtables(image)
    assert not vtables
    assert set(vtables.functions(None, 12)) == addresses(image, A_READ, B_READ)
    assert set(vtables.functions(None, 0)) >= addresses(image, "plain", "dropped")
    assert set(vtables.functions(None, 20)) >= addresses(image, B_READ)
    assert not vtables.functions(frozenset((1,)), 12)
