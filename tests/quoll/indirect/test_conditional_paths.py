"""Instructions that are skipped on the way to an edge, against all executions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoll.arm.decode import decode
from quoll.arm.insn import Condition, Insn
from quoll.cfg.cfg import EdgeKind
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.indirect.local_resolver import on_the_way
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build

ADD, ADDS, BRANCH = 0xE2800001, 0xE2900001, 0xEA000010
CONDITIONS = [
    Condition.EQ,
    Condition.NE,
    Condition.CS,
    Condition.MI,
    Condition.VC,
    Condition.HI,
    Condition.LS,
    Condition.GE,
    Condition.GT,
]
HOLDS: dict[Condition, Callable[[bool, bool, bool, bool], bool]] = {
    Condition.EQ: lambda n, z, c, v: z,
    Condition.NE: lambda n, z, c, v: not z,
    Condition.CS: lambda n, z, c, v: c,
    Condition.MI: lambda n, z, c, v: n,
    Condition.VC: lambda n, z, c, v: not v,
    Condition.HI: lambda n, z, c, v: c and not z,
    Condition.LS: lambda n, z, c, v: z or not c,
    Condition.GE: lambda n, z, c, v: n == v,
    Condition.GT: lambda n, z, c, v: not z and n == v,
    Condition.AL: lambda n, z, c, v: True,
}
STATES = [(bool(s & 8), bool(s & 4), bool(s & 2), bool(s & 1)) for s in range(16)]


def block(kinds: list[tuple[Condition, bool]], last: Condition) -> tuple[Insn, ...]:
    words = [(ADDS if sets else ADD) & 0x0FFFFFFF | cond << 28 for cond, sets in kinds]
    words.append(BRANCH & 0x0FFFFFFF | last << 28)
    insns = (decode(w.to_bytes(4, "little"), 4 * i, False) for i, w in enumerate(words))
    return tuple(insns)


def executed(insns: tuple[Insn, ...], *, taken: bool) -> set[int]:
    """The addresses of instructions in executions that leave the block as ``taken`` says."""
    found: set[int] = set()
    pending = [(0, state, frozenset[int]()) for state in STATES]
    seen = set(pending)
    while pending:
        at, state, before = pending.pop()
        insn = insns[at]
        runs = HOLDS[insn.cond](*state)
        if insn is insns[-1]:
            found |= before if runs == taken else set()
            continue
        after = before | {insn.addr} if runs else before
        for following in STATES if runs and insn.sets_flags else [state]:
            item = (at + 1, following, after)
            if item not in seen:
                seen.add(item)
                pending.append(item)
    return found


KINDS = st.lists(st.tuples(st.sampled_from([*CONDITIONS, Condition.AL]), st.booleans()), max_size=4)


@pytest.mark.slow("many random paths")
@settings(max_examples=cases(16), deadline=None)
@given(KINDS, st.sampled_from(CONDITIONS), st.booleans())
def test_what_is_left_out_is_never_executed_and_nothing_more_could_be(
    kinds: list[tuple[Condition, bool]], last: Condition, taken: bool
) -> None:
    insns = block(kinds, last)
    kept = on_the_way(insns, EdgeKind.TAKEN if taken else EdgeKind.FALLTHROUGH)
    runs = executed(insns, taken=taken)
    for insn in insns[:-1]:
        assert (insn in kept) == (insn.addr in runs or insn.sets_flags)
    assert kept[-1] is insns[-1]


def test_a_block_without_a_branch_says_nothing_of_its_conditions() -> None:
    insns = block([(Condition.EQ, False), (Condition.NE, False)], Condition.EQ)
    assert on_the_way(insns[:-1], EdgeKind.FALLTHROUGH) == insns[:-1]
    assert on_the_way(insns, EdgeKind.ACROSS) == insns


REMAINDERS = """
unsigned __umodsi3(unsigned, unsigned);
int __modsi3(int, int);
int main(unsigned a, unsigned b, int c, int d) { return __umodsi3(a, b) + __modsi3(c, d); }
"""


@pytest.mark.slow("compiles and extracts many programs")
def test_remainders_of_libgcc_for_armv5() -> None:
    """Dividends are masked and cleared under conditions before their leading zeros are counted."""
    image = Image.load(build(REMAINDERS, "-mfloat-abi=softfp", cpu="arm926ej-s", link=("-lgcc",)))
    main = image.symbol("main")
    assert main is not None
    assert image.symbol("__umodsi3") is not None
    program = extract(image, [main.addr])
    assert program.unresolved == ()
    assert sum(len(table.targets) >= 31 for table in program.jump_tables) == 2
