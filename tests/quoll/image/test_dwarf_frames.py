"""Frame addresses of intact and of damaged sections."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from quoll.image.dwarf_frames import CallFrames, FrameSlot, slot_of
from quoll.image.image import Image
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build

SOURCE = """
int leaf(int x) { int y = x + 1; return y; }
int main(int x) { int held[4] = { x }; return leaf(held[x & 3]) + held[0]; }
"""
SP, FP = 13, 11


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("frames") / "frame"
    copied = ["arm-none-eabi-objcopy", "--dump-section", f".debug_frame={file}"]
    subprocess.run([*copied, program(), file.with_name("copy")], check=True)
    return file.read_bytes()


def program() -> Path:
    return build(SOURCE, optimise="-O0")


def test_the_frame_address_follows_the_prologue(section: bytes) -> None:
    """``main`` saves two registers, and then counts from the frame pointer."""
    frames, main = CallFrames(section), address(Image.load(program()), "main")
    assert frames.frame_address(main) == FrameSlot(SP, 0)
    assert frames.frame_address(main + 4) == FrameSlot(SP, 8)
    assert frames.frame_address(main + 8) == FrameSlot(FP, 4)
    assert frames.frame_address(0x4000) is None


def test_a_damaged_section_tells_nothing_or_something(section: bytes) -> None:
    """No damage is a defect of the program."""
    for seed in range(cases(300)):
        random, damaged = Random(seed), bytearray(section)
        for _ in range(random.randint(1, 6)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        end = random.choice([len(damaged), random.randrange(len(damaged))])
        frames = CallFrames(bytes(damaged[:end]))
        for at in range(0x8000, 0x8080, 4):
            frames.frame_address(at)


def test_slots() -> None:
    assert slot_of(b"\x7d\x04", b"") == FrameSlot(SP, 4)
    assert slot_of(b"\x91\x74", b"\x9c") == FrameSlot(None, -12)
    assert slot_of(b"\x91\x74", b"\x5b") == FrameSlot(FP, -12)
    for other in (b"", b"\x7d", b"\x91\x74\x06", b"\x03\x00"):
        assert slot_of(other, b"\x9c") is None
    assert slot_of(b"\x91\x74", b"") is None
