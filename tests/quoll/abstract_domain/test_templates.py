"""Code compiled once for a form and relocated equals code compiled for each instruction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quoll.abstract_domain.abstract_state import entry_state
from quoll.abstract_domain.compiled import compile_block
from quoll.abstract_domain.function_values import environment_of
from quoll.abstract_domain.steps import CompiledBlock, StraightStep
from quoll.abstract_domain.transfer import BlockOutcome, run
from quoll.arm.insn import Insn
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.quoll.building import build

PROGRAM = """
int table[8], other;
long long product(int a, int b) { return (long long)a * b + (a > b ? a : -b); }
int main(int n, char **words) {
    char text[16];
    int sum = 0x12345;
    for (int i = 0; i < n && i < 16; i++) {
        text[i] = words[i][1] | 0x80;
        sum += table[i & 7] - (text[i] << 3) + (int)product(sum, other);
        if ((unsigned)sum > 0xff00 || sum == 77)
            sum = ~sum ^ 0xff0, table[2] = sum;
    }
    return sum % 10 + text[3];
}
"""


@pytest.mark.parametrize(("optimise", "thumb"), [("-O0", False), ("-O2", False), ("-O2", True)])
def test_moved_and_compiled_instructions_give_the_same(optimise: str, thumb: bool) -> None:
    """An instruction with stated words is compiled by itself, also if none is stated of it."""
    image = Image.load(build(PROGRAM, optimise=optimise, thumb=thumb, link=("-lgcc",)))
    moved = own = 0
    for insns in blocks(image):
        shared, alone = compile_block(insns), compile_block(insns, {i.addr: () for i in insns})
        assert count(shared.steps) == count(alone.steps)
        outcomes = [interpreted(image, block) for block in (shared, alone)]
        assert outcomes[0] == outcomes[1], insns
        moved += count(shared.steps)
        own += shared.tail != alone.tail
    assert moved > 100
    assert own  # blocks in which constants stand in other slots


def blocks(image: Image) -> Iterator[tuple[Insn, ...]]:
    entries = [s.addr | s.thumb for s in image.symbols.symbols if s.kind == "func"]
    for cfg in extract(image, entries).functions.values():
        for block in cfg.blocks:
            yield block.insns


def count(steps: tuple[object, ...]) -> int:
    return sum(len(step.micros) for step in steps if isinstance(step, StraightStep))


def interpreted(image: Image, block: CompiledBlock) -> BlockOutcome:
    environment = environment_of(image)
    return run(block, entry_state(environment.names), environment, 0, noting=True)
