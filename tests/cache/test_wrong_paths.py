"""The lines on wrong paths, worked by hand."""

from __future__ import annotations

import pytest

from cache.geometry import CacheGeometry
from cache.wrong_paths import UNKNOWN_CODE, WrongPaths
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import Insn
from quoll.arm.return_stack import EMPTY, ReturnAddress, ReturnStack
from tests.testing.cache.graphs import at, pool

OFF, STATIC, DYNAMIC, RETURNS, ANY_RETURNS = BranchPrediction
WITH_HISTORY = {DYNAMIC, RETURNS, ANY_RETURNS}
LINE = 32
PLAIN, BEQ, ALWAYS, CALL, ALWAYS_CALL, RETURN = pool(
    "add r0, r1, r2\nbeq .\nb .\nbleq .\nbl .\nbx lr\n"
)
HERE, FORWARD, NEAR, OTHER = (LINE * n for n in (100, 300, 102, 100 + 128))


def branch(insn: Insn, addr: int, target: int) -> Insn:
    return at(insn, addr)._replace(target=target)


def paths(
    prediction: BranchPrediction, *branches: Insn, ahead: int = 16, known: bool = True
) -> WrongPaths:
    """Straight code with some branches; unless ``known``, nothing else is known."""
    there = {insn.addr: insn for insn in branches}

    def code(addr: int, thumb: bool) -> Insn | None:
        return there.get(addr) or (at(PLAIN, addr) if known else None)

    return WrongPaths(CacheGeometry(4 * 128 * LINE, 4, LINE), ahead, prediction, code)


@pytest.mark.parametrize(
    ("insn", "target", "followed"),
    [
        (BEQ, HERE + LINE, WITH_HISTORY),
        (BEQ, HERE - LINE, WITH_HISTORY | {STATIC}),
        (BEQ, HERE + 4, WITH_HISTORY | {STATIC}),  # by the sign of the distance
        (ALWAYS, HERE + LINE, WITH_HISTORY | {STATIC}),
        (CALL, HERE + LINE, WITH_HISTORY),
        (PLAIN, None, set()),
    ],
)
def test_branches_that_fetch_may_follow(
    insn: Insn, target: int | None, followed: set[BranchPrediction]
) -> None:
    moved = at(insn, HERE)._replace(target=target)
    assert {kind for kind in BranchPrediction if kind.follows(moved)} == followed


def test_both_sides_of_a_branch() -> None:
    last = branch(BEQ, HERE + 20, FORWARD + 28)
    assert paths(OFF, last).past(last).lines == (101,)
    for kind in (STATIC, DYNAMIC):
        assert paths(kind, last).past(last).lines == (101,)
    assert paths(DYNAMIC, last).at_target(last).lines == (300, 301)
    assert paths(STATIC, last).at_target(last).lines == paths(OFF, last).at_target(last).lines == ()
    assert paths(DYNAMIC, last, ahead=0).at_target(last).lines == ()


def test_branches_on_a_wrong_path_are_predicted() -> None:
    last = branch(BEQ, HERE, FORWARD)
    nested = branch(ALWAYS, FORWARD + 12, NEAR + 28)
    for ahead, lines in ((16, ()), (20, (102,)), (24, (102, 103))):
        found = paths(STATIC, nested, ahead=ahead).past(at(PLAIN, FORWARD - 4))
        assert found.lines == (300, *lines)
    # Folded, the branch takes none of the bytes: the rest is fetched at its target.
    for ahead, lines in ((12, ()), (16, (102,)), (20, (102, 103))):
        assert paths(DYNAMIC, last, nested, ahead=ahead).at_target(last).lines == (300, *lines)


def test_a_line_is_fetched_again_behind_one_of_its_set() -> None:
    last = branch(BEQ, HERE + 24, OTHER)
    assert paths(DYNAMIC, last).at_target(last).lines == (228,)
    back = branch(ALWAYS, OTHER + 4, HERE)
    assert paths(DYNAMIC, last, back, ahead=8).at_target(last).lines == (228, 100)


def test_what_is_not_known_may_fetch_anything() -> None:
    last = branch(BEQ, HERE + 20, FORWARD)
    unknown = paths(DYNAMIC, last, known=False)
    assert unknown.past(last).lines == (101, UNKNOWN_CODE)
    assert UNKNOWN_CODE in unknown.at_target(last).lines
    assert paths(OFF, last, known=False).past(last).lines == (101,)


def test_code_with_many_branches_may_fetch_anything() -> None:
    branches = [branch(BEQ, 4 * n, 4 * (n * 37 % 200)) for n in range(200)]
    assert UNKNOWN_CODE in paths(DYNAMIC, *branches, ahead=100).past(at(PLAIN, 0)).lines


def test_a_wrong_path_follows_one_side_of_each_branch() -> None:
    last = branch(BEQ, HERE, FORWARD)
    nested = branch(BEQ, FORWARD + 24, NEAR + 28)  # to two lines, or on to the next one
    wrong = paths(DYNAMIC, last, nested, ahead=32).at_target(last)
    assert wrong == ((300, 301, 102, 103), 3)


def test_code_that_is_not_known_may_change_the_line_with_each_byte() -> None:
    unknown = paths(DYNAMIC, branch(ALWAYS, FORWARD, HERE), known=False, ahead=12)
    assert unknown.past(at(PLAIN, FORWARD - 4)).most == 1 + 12  # folded, the branch is free
    assert unknown.past(at(PLAIN, NEAR - 4)) == ((102, UNKNOWN_CODE), 12)


BACK = ReturnAddress(OTHER + 4, thumb=False)
KNOWN = ReturnStack((frozenset((BACK,)), None, None))
EITHER = ReturnStack((frozenset((BACK, EMPTY)), None, None))


def test_a_return_goes_to_each_address_that_may_predict_it() -> None:
    last = at(RETURN, HERE + 28)
    found = paths(RETURNS, last)
    assert found.past(last, KNOWN).lines == (101, 228)
    assert found.past(last, EITHER).lines == (101, 228)
    assert found.past(last, KNOWN, right=True).lines == (101,)
    assert paths(DYNAMIC, last).past(last, KNOWN).lines == (101,)
    for unknown in (found.past(last), paths(ANY_RETURNS, last).past(last)):
        assert unknown.lines == (101, UNKNOWN_CODE)


def test_returns_on_a_wrong_path_take_the_entries_in_turn() -> None:
    last, far = branch(BEQ, HERE, FORWARD), ReturnAddress(LINE * 500, thumb=False)
    returns = at(RETURN, FORWARD + 4), at(RETURN, BACK.addr)
    stack = ReturnStack((frozenset((BACK,)), frozenset((far,)), None))
    found = paths(RETURNS, last, *returns, ahead=16).at_target(last, stack)
    assert found.lines == (300, 228, 500)
    assert found.most == 3
    deeper = paths(RETURNS, last, *returns, at(RETURN, far.addr), ahead=20)
    assert deeper.at_target(last, stack).lines[-1] == UNKNOWN_CODE


def test_a_call_on_a_wrong_path_may_not_have_pushed() -> None:
    last, call = branch(BEQ, HERE, FORWARD), branch(ALWAYS_CALL, FORWARD, NEAR)
    returns = at(RETURN, NEAR)
    found = paths(RETURNS, last, call, returns, ahead=12).at_target(last, KNOWN)
    assert set(found.lines) == {300, 102, 228}
