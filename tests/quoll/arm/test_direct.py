"""Direct branches decoded from one encoding for all distances, against each decoded by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quoll.arm import decode as decoding
from quoll.arm.decode import decode, split_branch
from quoll.arm.insn import Condition, ControlFlow, Insn


def by_itself(raw: bytes, addr: int, thumb: bool, it: tuple[Condition, ...]) -> Insn:
    insn = decoding._at_zero(raw, thumb, it)
    if insn.target is None:
        return insn._replace(addr=addr)
    aligned = thumb and insn.mnemonic == "blx"
    target = (insn.target + (addr & ~3 if aligned else addr)) & 0xFFFFFFFF
    text = f"{insn.text.rpartition('#')[0]}{target:#x}"
    return insn._replace(addr=addr, target=target, text=text)


words = st.integers(0, (1 << 32) - 1)
in_block = st.sampled_from([(), *((cond,) for cond in Condition if cond is not Condition.AL)])


@given(words, words)
def test_arm_branches(word: int, addr: int) -> None:
    raw = (word & 0xF1FFFFFF | 0x0A000000).to_bytes(4, "little")
    assert decode(raw, addr & ~3, False) == by_itself(raw, addr & ~3, False, ())


@given(words, words, in_block)
def test_thumb_branches(word: int, addr: int, it: tuple[Condition, ...]) -> None:
    raw = (word & 0xFFFF07FF | 0x8000F000).to_bytes(4, "little")
    assert decode(raw, addr & ~1, True, it) == by_itself(raw, addr & ~1, True, it)


def test_what_is_split() -> None:
    assert split_branch(bytes.fromhex("fefffffa"), False) is None  # blx
    assert split_branch(bytes.fromhex("feffffea"), False) == (bytes.fromhex("000000ea"), -8)
    assert split_branch(bytes.fromhex("fff7feff"), True) == (bytes.fromhex("00f000f8"), -4)
    assert decode(bytes.fromhex("feffffea"), 0x8000, False).flow is ControlFlow.JUMP
    assert decode(bytes.fromhex("fff7feff"), 0x8000, True).target == 0x8000
