"""Lines that fetch may read past an instruction, if a predictor may send it to any successor.

A *wrong path* begins behind a branch that is taken, or at the target of one that is not, and ends
when the branch is resolved. Branches on it are predicted, too: fetch may follow both successors of
each branch that the predictor may take, for ``fetch_ahead`` bytes in all. A folded branch takes no
slot of the pipeline, and so none of the bytes; a branch behind a folded one is not folded (ARM1176
TRM, DDI 0301, 5.2.4). A return on it may go to each address that the return stack may predict.

The lines are in preorder, so that each wrong path fetches a subsequence of them. A cache analysis
that takes each as join(access, no access) covers every wrong path. A wrong path follows one
successor of each branch, so that it fetches fewer lines than all of them have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import NamedTuple

from cache.geometry import CacheGeometry
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.arm.return_stack import EMPTY, UNKNOWN_RETURNS, ReturnStack
from quoll.image.image import Image

__all__ = ["UNKNOWN_CODE", "InsnAt", "WrongLines", "WrongPaths", "constant_code"]

WORD = 4
InsnAt = Callable[[int, bool], Insn | None]  # by address and instruction set; None: unknown
Lines = tuple[int, ...]
UNKNOWN_CODE = -1  # in place of a line: code that is not known may fetch any
MOST = 1000  # lines on the wrong paths from one place; code with more is taken as not known


class WrongLines(NamedTuple):
    """The lines on the wrong paths from one place, and the most that one of these paths fetches.

    ``most`` counts each change of line. Code that is not known may change it with each byte: two
    bytes are an instruction, and a folded branch before it.
    """

    lines: Lines
    most: int


NOWHERE = WrongLines((), 0)


def constant_code(image: Image) -> InsnAt:
    """The instructions of a binary, unknown where they may change."""

    def at(addr: int, thumb: bool) -> Insn | None:
        word = image.constant(addr, WORD)
        return None if word is None else decode(word.to_bytes(WORD, "little"), addr, thumb)

    return at


class WrongPaths:
    """The lines on wrong paths, each sequence computed once. ``code``: the instructions there."""

    def __init__(
        self, geometry: CacheGeometry, fetch_ahead: int, prediction: BranchPrediction, code: InsnAt
    ) -> None:
        self.geometry, self.fetch_ahead = geometry, fetch_ahead
        self.prediction, self.code = prediction, code
        self._known: dict[tuple[int, bool, int, bool, ReturnStack], WrongLines] = {}

    def behind(
        self, insn: Insn, least: int = 0, returns: ReturnStack = UNKNOWN_RETURNS
    ) -> WrongLines:
        """Lines that may be fetched past ``insn``, without a taken branch to its target.

        At least ``least`` bytes are fetched. ``returns``: the return stack before ``insn``.
        """
        ahead = max(self.fetch_ahead, least)
        if self.prediction is BranchPrediction.OFF:
            lines = tuple(self.geometry.lines(insn.next, ahead)) if ahead else ()
            return WrongLines(lines, len(lines))
        return self._from(insn.next, insn.thumb, ahead, returns, folded=False)

    def past(
        self, insn: Insn, returns: ReturnStack = UNKNOWN_RETURNS, *, right: bool = False
    ) -> WrongLines:
        """Lines to fetch after ``insn``, the last one of a block, if it transfers control.

        ``right``: it is a return, and surely predicted right.
        """
        end = self.geometry.line(insn.next - 1)
        early = self.behind(insn, returns=returns)
        if right or not self.prediction.predicts_return(insn):
            return self._first_fetches(end, early)
        there = self._at_returns(returns, self.fetch_ahead)
        lines = (*early.lines, *there.lines)
        return self._first_fetches(end, WrongLines(lines, early.most + there.most))

    def at_target(self, insn: Insn, returns: ReturnStack = UNKNOWN_RETURNS) -> WrongLines:
        """Lines to fetch after ``insn`` if it is a branch that is not taken: at its target.

        Before a branch is decoded, and predicted by its direction, lines behind it may be fetched.
        They are fetched once more afterwards: a miss if others of their set came between.
        """
        if insn.target is None or not insn.conditional or not self.prediction.follows(insn):
            return NOWHERE
        end = self.geometry.line(insn.next - 1)
        by_direction = BranchPrediction.STATIC.follows(insn)
        early = self.behind(insn, returns=returns) if by_direction else NOWHERE
        there = self._from(
            insn.target,
            insn.target_thumb,
            self.fetch_ahead,
            returns.on_wrong_path(insn),
            folded=False,
        )
        competing = self._competing((end, *early.lines, *there.lines))
        lines = (line for line in early.lines if line in competing or line == UNKNOWN_CODE)
        most = early.most + there.most
        return self._first_fetches(end, WrongLines((*lines, *there.lines), most))

    def _first_fetches(self, end: int, wrong: WrongLines) -> WrongLines:
        """``wrong`` without repetitions that hit, when the line ``end`` has been fetched last."""
        competing = self._competing((end, *wrong.lines))
        seen, found = {end}, []
        for line in _changes((end, *wrong.lines))[1:]:
            if line not in seen or line in competing:
                found.append(line)
            seen.add(line)
        return WrongLines(tuple(found), wrong.most - (wrong.lines[:1] == (end,)))

    def _competing(self, lines: Lines) -> frozenset[int]:
        """The lines that share their set; others stay in the cache once they have been fetched."""
        if UNKNOWN_CODE in lines:
            return frozenset(lines)
        of_set: defaultdict[int, set[int]] = defaultdict(set)
        for line in lines:
            of_set[self.geometry.set_of(line)].add(line)
        shared = [found for found in of_set.values() if len(found) > 1]
        return frozenset(line for found in shared for line in found)

    def _at_returns(self, returns: ReturnStack, left: int) -> WrongLines:
        """The lines of ``left`` bytes from the address on that the stack predicts."""
        if left <= 0:
            return NOWHERE
        if returns.top is None:
            return WrongLines((UNKNOWN_CODE,), left)
        popped = returns.popped()
        ways = [
            self._from(address.addr, address.thumb, left, popped, folded=False)
            for address in sorted(returns.top - {EMPTY})
        ]
        lines = _changes(line for way in ways for line in way.lines)
        return WrongLines(lines, max((way.most for way in ways), default=0))

    def _from(
        self, addr: int, thumb: bool, left: int, returns: ReturnStack, *, folded: bool
    ) -> WrongLines:
        """The lines of ``left`` bytes from ``addr`` on; ``folded``: a branch before it may be."""
        if left <= 0:
            return NOWHERE
        known = returns if self.prediction.of_returns else UNKNOWN_RETURNS
        key = addr, thumb, left, folded, known
        found = self._known.get(key)
        if found is None:
            found = self._followed(*key)
            if len(found.lines) > MOST:
                found = found._replace(lines=(UNKNOWN_CODE,))
            self._known[key] = found
        return found

    def _followed(
        self, addr: int, thumb: bool, left: int, folded: bool, returns: ReturnStack
    ) -> WrongLines:
        insn = self.code(addr, thumb)
        if insn is None:
            return WrongLines((*self.geometry.lines(addr, left), UNKNOWN_CODE), left)
        free = self.prediction.folds(insn) and not folded
        after = left if free else left - insn.size
        own = tuple(self.geometry.lines(addr, min(left, insn.size)))
        then = returns.on_wrong_path(insn) if self.prediction.of_returns else returns
        ways = [self._from(insn.next, thumb, after, then.join(returns), folded=free)]
        if insn.target is not None and self.prediction.follows(insn):
            ways.append(self._from(insn.target, insn.target_thumb, after, then, folded=free))
        if self.prediction.predicts_return(insn):
            ways.append(self._at_returns(returns, after))
        lines = _changes((*own, *(line for way in ways for line in way.lines)))
        longest = max(way.most - (way.lines[:1] == own[-1:]) for way in ways)
        return WrongLines(lines, len(own) + longest)


def _changes(lines: Iterable[int]) -> Lines:
    """The sequence without immediate repetitions."""
    return tuple(line for line, _ in groupby(lines))
