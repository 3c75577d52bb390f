"""Waits for devices, and loops that are none."""

from __future__ import annotations

import pytest

from quoll.image.image import Image
from quoll.indirect.device_polls import (
    DeviceExits,
    DevicePoll,
    awaited_variable,
    device_exits,
    device_poll,
)
from tests.testing.quoll.building import address, build
from tests.testing.quoll.sketch import assemble, extracted

REGISTER = 0x44E09014
BASE = REGISTER - 0x14
LOOP = "main: ldr r3, =0x44e09000\nloop: {}\n bx lr\n.ltorg\n"
POLLS = [
    ("ldr r2, [r3, #20]\n tst r2, #32\n beq loop", DevicePoll(REGISTER, 5)),
    ("ldr r2, [r3, #20]\n ands r2, r2, #1\n beq loop", DevicePoll(REGISTER, 0)),
    ("ldr r2, [r3, #20]\n lsls r2, r2, #26\n bpl loop", DevicePoll(REGISTER, 5)),
    ("ldr r2, [r3, #20]\n and r2, r2, #32\n cmp r2, #0\n beq loop", DevicePoll(REGISTER, 5)),
    ("ldr r2, [r3, #20]\n and r1, r2, #64\n cmp r1, #64\n bne loop", DevicePoll(REGISTER, 6)),
    ("ldr r2, [r3, #20]\n and r2, r2, #33\n cmp r2, #0\n beq loop", DevicePoll(REGISTER, None)),
    ("ldr r2, [r3, #20]\n and r1, r2, #32\n cmp r2, #0\n beq loop", DevicePoll(REGISTER, None)),
    ("ldrb r2, [r3]\n cmp r2, #3\n bne loop", DevicePoll(BASE, None)),
    ("ldr r2, [r3, #20]\n tst r2, #33\n beq loop", DevicePoll(REGISTER, None)),
    ("ldr r2, [r3, #20]\n str r2, [r1]\n tst r2, #32\n beq loop", None),
    ("ldr r3, [r3, #20]\n tst r3, #32\n beq loop", None),
    ("ldr r2, [r3, r1]\n tst r2, #32\n beq loop", None),
    ("ldr r2, [r1, #20]\n tst r2, #32\n beq loop", None),
    ("subs r0, r0, #1\n bne loop", None),
]


@pytest.mark.parametrize(("body", "expected"), POLLS)
def test_the_register_and_its_bit(body: str, expected: DevicePoll | None) -> None:
    image = assemble(LOOP.format(body))
    cfg = extracted(image).functions[address(image, "main")]
    assert device_poll(image, cfg, address(image, "loop")) == expected


TIMER = 0x48040000
STATUS = "ldr r2, [r3, #20]\n lsls r2, r2, #31\n "
EXITS = [
    # The loop copies words from a queue of the device until the queue is empty.
    ("ldr r2, [r3]\n str r2, [r1], #4\n " + STATUS + "bne loop", (REGISTER,)),
    (STATUS + "bxeq lr\n ldr r2, [r3]\n str r2, [r1], #4\n b loop", (REGISTER,)),
    # It gives up after some time.
    (
        STATUS + "bne out\n ldr r2, [r4]\n sub r2, r2, r5\n cmp r2, #200\n bls loop\nout:",
        (REGISTER, TIMER),
    ),
    # It counts, too; it tests memory; it tests a word that another instruction overwrites.
    (STATUS + "bne out\n subs r0, r0, #1\n bne loop\nout:", None),
    (STATUS + "bne out\n cmp r0, #3\n bxeq lr\n b loop\nout:", None),
    ("ldr r2, [r3]\n ldr r2, [r1]\n cmp r2, #0\n bne loop", None),
    ("ldr r2, [r3]\n mov r2, r1\n cmp r2, #0\n bne loop", None),
]


@pytest.mark.parametrize(("body", "expected"), EXITS)
def test_the_registers_that_end_a_loop(body: str, expected: tuple[int, ...] | None) -> None:
    image = assemble(LOOP.format(body).replace("main:", f"main: ldr r4, ={TIMER}\n ldr r5, [r4]\n"))
    cfg = extracted(image).functions[address(image, "main")]
    found = device_exits(image, cfg, address(image, "loop"))
    assert found == (None if expected is None else DeviceExits(expected))


def test_a_timed_wait_in_thumb_code() -> None:
    source = """
    #define STATUS (*(volatile unsigned *)0x44E09014)
    #define TIMER (*(volatile unsigned *)0x48040000)
    int main(void) {
        for (unsigned start = TIMER; !(STATUS & 1);) if (TIMER - start > 200) return 1;
        return 0;
    }"""
    image = Image.load(build(source, "-mthumb", cpu="cortex-a8", optimise="-Os"))
    cfg = extracted(image).functions[address(image, "main")]
    found = {exits for b in cfg.blocks if (exits := device_exits(image, cfg, b.addr)) is not None}
    assert {str(one) for one in found} == {
        "goes on until one of the device registers at 0x44e09014, 0x48040000 ends it"
    }


@pytest.mark.parametrize(("section", "waits"), [(".data", True), (".text", False)])
def test_a_variable_that_other_code_stores_to(section: str, waits: bool) -> None:
    loop = LOOP.format("ldr r2, [r3]\n cmp r2, #0\n beq loop").replace("0x44e09000", "ready")
    image = assemble(f"{loop}\n.section {section}\nready: .word 0\n")
    cfg = extracted(image).functions[address(image, "main")]
    at = address(image, "ready") if waits else None
    assert awaited_variable(image, cfg, address(image, "loop")) == at


def test_memory_of_the_image_is_no_device() -> None:
    image = assemble(LOOP.format(POLLS[0][0]).replace("0x44e09000", "main"))
    cfg = extracted(image).functions[address(image, "main")]
    assert device_poll(image, cfg, address(image, "loop")) is None


def test_thumb_and_text() -> None:
    source = "int main(void) { while (!(*(volatile unsigned *)0x44E09014 & 0x20)) ; return 0; }"
    image = Image.load(build(source, "-mthumb", cpu="cortex-a8", optimise="-Os"))
    main = address(image, "main")
    cfg = extracted(image).functions[main]
    found = [poll for b in cfg.blocks if (poll := device_poll(image, cfg, b.addr)) is not None]
    assert [str(poll) for poll in found] == ["waits for bit 5 of the device register at 0x44e09014"]
