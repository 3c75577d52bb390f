"""The mode of an entry by the table of exception vectors: whose stack ``srs`` stores to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.wcet.small_programs import COUNTS, Analysed

NO_BOUND, ROUNDS = 6, 4000
VECTORS = """
.balign 32
vectors: b start
{undefined}
b stop
b stop
b stop
nop
b main
b stop
.type start, %function
start: b start
.type stop, %function
stop: b stop
"""
IRQ = VECTORS.format(undefined="b stop")
ALSO_UNDEFINED = VECTORS.format(undefined="b main")
LISTED = "is entered by the exception of the vector at"


def stores(mode: int, distance: int) -> str:
    """Counts to a word that was pushed ``distance`` bytes above sp after srs, then returns."""
    return (
        f"ldr r3, ={ROUNDS}\npush {{r3}}\nsrsdb sp!, #{mode}\nldr r3, [sp, #{distance}]\n"
        f"{COUNTS}add sp, sp, #{distance}\nmov lr, r12\nsubs pc, lr, #4\n"
    )


@pytest.mark.slow("several whole analyses")
def test_a_store_to_the_own_stack_moves_sp(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One to the stack of another mode leaves it; without the mode, both are possible."""
    analysed = Analysed(tmp_path, capsys)
    for mode, distance in ((0x12, 8), (0x13, 0)):
        found = analysed(stores(mode, distance), other=IRQ)
        assert (found.status, found.bound) == (0, ROUNDS), found.error
        assert sum(LISTED in text and "0x12" in text for text in found.assumptions) == 1
    for mode, distance in ((0x12, 0), (0x13, 8)):
        assert analysed(stores(mode, distance), other=IRQ).status == NO_BOUND
    for other in ("", ALSO_UNDEFINED):
        for distance in (0, 8):
            assert analysed(stores(0x12, distance), other=other).status == NO_BOUND


@pytest.mark.slow("a whole analysis")
def test_the_mode_is_listed_only_where_it_matters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Analysed(tmp_path, capsys)(f"mov r3, #5\n{COUNTS}subs pc, lr, #4\n", other=IRQ)
    assert (found.status, found.bound) == (0, 5), found.error
    assert not any(LISTED in text for text in found.assumptions)
