"""The abstract meaning of reads of the registers that identify caches.

The register that selects a cache is followed within a block: its word is in a slot of its own.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from quoll.abstract_domain.abstract_machine import AbstractMachine
from quoll.assumptions import CACHE_REGISTERS
from quoll.image.cache_words import KNOWN_BITS, SELECTOR_BITS
from quoll.intervals.masked_words import Words, masked
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["read_levels", "read_sizes"]

MOST_SELECTORS = 16  # of which each has a word


def read_levels(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Load CLIDR."""
    known = m.environment.cache_words
    if known is None:
        m.v[out] = m.fresh(site, ANY)
        return
    m.environment.used.add(CACHE_REGISTERS.of())
    m.v[out] = m.fresh(site, ValueSet.of(known.levels))


def read_sizes(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Load CCSIDR, behind a write of the word in slot ``a`` to CSSELR."""
    known = m.environment.cache_words
    words = None if known is None else _sizes(m, a, dict(known.sizes))
    if known is None or words is None:
        m.v[out] = m.fresh(site, ANY)
        return
    m.environment.used.add(CACHE_REGISTERS.of())
    m.environment.reads_bits = True
    m.v[out] = m.fresh(site, words)


def _sizes(m: AbstractMachine, slot: int, sizes: dict[int, int]) -> Words | None:
    """The words of all caches that the word in ``slot`` may select; None if one is not known."""
    selectors = m.words(m.v[slot])
    if selectors.size > MOST_SELECTORS:
        return None
    found = [sizes.get(one) for one in selectors if not one & ~SELECTOR_BITS]
    known = [word for word in found if word is not None]
    if len(known) < selectors.size:
        return None
    differing = reduce(lambda bits, word: bits | word ^ known[0], known, 0)
    mask = KNOWN_BITS & ~differing
    return masked(mask, ValueSet.of(known[0] & mask))
