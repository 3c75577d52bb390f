"""Accesses at constant distances from one unknown word: no more misses than lines they lie in.

The place of a symbol in its line is unknown, but the bytes 0 to 51 from it always lie in two or
three lines of 32 bytes. A *group* is the set of blocks that loads through one symbol have
accessed and that are all in the cache now, and the misses charged for them.

    Claim: along every path, misses <= charges.
    Potential of a group: its charges, less the lines of its blocks. It is not negative, since its
    charges are at least ``most_lines``. A load adds its blocks to the group, and is charged if
    ``most_lines`` exceeds the charges so far. If its line is one of the group's, it hits; else it
    misses at most once per line that it adds, which the potential and its charge pay.

A group ends when one of its lines may leave the cache, and where paths with different groups meet:
a smaller set of blocks may lie in as few lines as the larger set, with less charged. A word that
has several names after an edge has a group under one of them, so that nothing is paid twice.

Memory of a group may be uncached. Then each of its loads is charged an uncached access, if not a
miss, and the loads of a group transfer equally many words, so that a load of a line that is cached
and one of a line that is not may stand for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from cache.lines import signed
from quoll.abstract_domain.terms import RIGID

__all__ = ["NO_GROUPS", "AccessGroup", "Block", "Groups", "common_groups", "most_lines", "renamed"]

Block = tuple[int, int]  # first byte and byte after the last, from the symbol
REMEMBERED = 1 << 14
MOST_BLOCKS = 64  # blocks of a group; more are a walk, which ``cache.streams`` follows


class AccessGroup(NamedTuple):
    """Blocks in the cache, ascending, and the misses charged for them.

    ``words``: words of each load if the memory may be uncached; 0 if it is surely cached.
    """

    blocks: tuple[Block, ...] = ()
    charged: int = 0
    words: int = 0

    def with_blocks(self, blocks: tuple[Block, ...], line_bytes: int) -> AccessGroup | None:
        """The group with more blocks, charged for them; None if it would be too large."""
        both = tuple(sorted({*self.blocks, *blocks}))
        if len(both) > MOST_BLOCKS:
            return None
        return self._replace(blocks=both, charged=max(self.charged, most_lines(both, line_bytes)))


Groups = Mapping[int, AccessGroup]  # by symbol
NO_GROUPS: Groups = {}


def most_lines(blocks: tuple[Block, ...], line_bytes: int) -> int:
    """The most lines that ``blocks`` lie in, each within one, for any place of the symbol.

    Each block is aligned to its size, a power of two.
    """
    first = blocks[0][0] // line_bytes * line_bytes
    return _most_lines(tuple((low - first, high - first) for low, high in blocks), line_bytes)


@lru_cache(maxsize=REMEMBERED)
def _most_lines(blocks: tuple[Block, ...], line_bytes: int) -> int:
    places = range(line_bytes)
    return max(
        (
            len({(low + at) // line_bytes for low, _ in blocks})
            for at in places
            if all((low + at) % (high - low) == 0 for low, high in blocks)
        ),
        default=len(blocks),
    )


def common_groups(a: Groups, b: Groups) -> Groups:
    """The groups in both states, with the potential that both have."""
    if a is b or not a or not b:
        return a if a is b else NO_GROUPS
    found = {}
    for symbol, group in a.items():
        other = b.get(symbol)
        if other is not None and (other.blocks, other.words) == (group.blocks, group.words):
            found[symbol] = min(group, other)
    return found or NO_GROUPS


def renamed(groups: Groups, aliases: Mapping[int, int]) -> Groups:
    """The groups after renaming symbols; ``aliases``: new symbol -> its equal old term."""
    found = {symbol: group for symbol, group in groups.items() if symbol < RIGID}
    named: set[int] = set()
    for symbol, term in sorted(aliases.items()):
        old = term >> 32
        group = groups.get(old)
        if group is None or old in named or old < RIGID:
            continue
        named.add(old)
        offset = signed(term)
        blocks = tuple((low - offset, high - offset) for low, high in group.blocks)
        found[symbol] = group._replace(blocks=blocks)
    return found or NO_GROUPS
