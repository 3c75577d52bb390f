"""Stores of functions through their arguments, along chains and cycles of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.abstract_domain.function_values import Callees
from quoll.cfg.cfg import Cfg, Program
from quoll.extraction import work_list
from quoll.facts.contract import END, FAR, STANDARD, ByteSpan, CallContract, spans
from quoll.indirect.returns import TIMES
from quoll.indirect.stack_frames import FrameContract, prove_frame
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

FUNCTION = """
.type {name}, %function
{name}: push {{r0, lr}}
 str r1, [r0, #{at}]
 cmp r1, #0
 popeq {{r0, pc}}
 {before}
 bl {callee}
 pop {{r0, pc}}
"""
STORED = st.builds(
    lambda base, low, size: ByteSpan(base, low, low + size),
    st.integers(0, 15), st.integers(-2 * FAR, 2 * FAR), st.integers(1, 300),
)  # fmt: skip
CONTRACTS = st.builds(
    lambda kept, stores, elsewhere: CallContract(kept, spans(stores), elsewhere),
    st.frozensets(st.sampled_from(sorted(STANDARD.preserved))), st.lists(STORED, max_size=5),
    st.booleans(),
)  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each function was asked whether it keeps to its frame."""
    counts: Counter[str] = Counter()

    def counted(cfg: Cfg, returns: Set[int], contracts: Callees) -> FrameContract:
        counts[cfg.name] += 1
        return prove_frame(cfg, returns, contracts)

    monkeypatch.setattr(work_list, "prove_frame", counted)
    return counts


def chain(length: int, last: str, before: str = "") -> str:
    names = ["main", *(f"f{i}" for i in range(1, length))]
    pairs = zip(names, [*names[1:], last], strict=True)
    text = (
        FUNCTION.format(name=name, at=4 * i, before=before, callee=callee)
        for i, (name, callee) in enumerate(pairs)
    )
    return "".join(text) + ".type leaf, %function\nleaf: bx lr\n"


def left(program: Program, name: str, text: str) -> tuple[ByteSpan, ...]:
    return program.left[address(assemble(text), name)].stores


def test_each_function_of_a_chain_is_asked_once(asked: Counter[str]) -> None:
    length = 3 * TIMES
    text = chain(length, "leaf")
    program = extracted(assemble(text))
    assert left(program, "main", text) == (ByteSpan(0, 0, 4 * length),)
    assert left(program, "f9", text) == (ByteSpan(0, 36, 4 * length),)
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("step", ["add r0, r0, #8", "sub r0, r0, #8"])
def test_an_address_that_moves_in_a_cycle_reaches_everything(
    asked: Counter[str], step: str
) -> None:
    text = chain(9, "f1", step)
    program = extracted(assemble(text))
    assert left(program, "f1", text) == (ByteSpan(0, -END, END),)
    assert max(asked.values()) <= 2 * TIMES


def test_a_cycle_that_moves_nothing_stays_exact(asked: Counter[str]) -> None:
    length = 3 * TIMES
    text = chain(length, "f1")
    program = extracted(assemble(text))
    assert left(program, "f5", text) == (ByteSpan(0, 4, 4 * length),)
    assert max(asked.values()) <= 3


@given(st.lists(CONTRACTS, min_size=1, max_size=4))
def test_any_of_contracts_is_weaker_than_each(contracts: list[CallContract]) -> None:
    joined = CallContract.of_any(contracts)
    for one in contracts:
        assert CallContract.of_any((joined, one)) == joined
    assert joined.preserved == frozenset.intersection(*(c.preserved for c in contracts))


@given(CONTRACTS, CONTRACTS)
def test_what_is_widened_covers_what_was_found(before: CallContract, more: CallContract) -> None:
    found = CallContract.of_any((before, more))
    widened = found.widened(before)
    assert CallContract.of_any((widened, found)) == widened
    assert CallContract.of_any((widened, more)).widened(widened) == widened
