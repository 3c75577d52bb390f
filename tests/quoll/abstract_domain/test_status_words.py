"""Modes and interrupt masks, as values follow them: every execution is covered (rules 45, 46)."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from quoll.abstract_domain.abstract_state import ENTRY_MODE, MODE, entry_state
from quoll.abstract_domain.function_values import BlockCode
from quoll.abstract_domain.terms import entry_symbol
from quoll.abstract_domain.transfer import run
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.values.concretes import MODE_AT_ENTRY, differences, environment
from tests.testing.values.status_words import MODES, SYSTEM, Core, instructions

USER = 0x10


@pytest.mark.slow("many random instruction sequences")
def test_covers_execution() -> None:
    counts: Counter[str] = Counter()
    core = Core()
    for seed in range(cases(300)):
        rng = random.Random(seed)
        insns = instructions(rng)
        mode, masked = rng.choice(MODES), rng.random() < 0.5
        around = environment()
        known_mode = rng.choice([None, None, USER if mode == SYSTEM else mode])
        known_mask = rng.choice([None, masked])
        start = entry_state(around.names, known_mode, known_mask)
        state = run(BlockCode()(insns), start, around, 0).fall
        for _ in range(2):
            done = core.run(insns, rng, mode, masked=masked)
            assert state is not None
            machine = ConcreteMachine()
            machine.registers[:15] = done.end
            machine.registers[16:20] = done.flags
            rigid = {entry_symbol(r): done.start[r] for r in range(15)}
            rigid |= {start.term(r) >> 32: done.start[r] for r in range(15)}
            rigid[MODE_AT_ENTRY] = mode
            assert not differences(state, machine, rigid, around.stacks), seed
            left = USER if done.mode == SYSTEM else done.mode
            if state.registers[MODE] == ENTRY_MODE:
                assert done.mode == mode, seed
                counts["mode at entry"] += 1
            elif state.known_mode is not None:
                assert state.known_mode == left, seed
                counts["known mode"] += 1
            if state.known_mask is not None:
                assert state.known_mask == done.masked, seed
                counts["known mask"] += 1
            changed = any(insn.mnemonic == "msr" for insn in insns)
            counts["sp stays"] += changed and state.term(13) == entry_symbol(13) << 32
    assert min(counts.values()) > cases(20), counts
