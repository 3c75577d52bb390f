"""What facts say of registers and addresses where an instruction executes.

Evaluators are called as those in ``quoll.domain.evaluators``.
"""

from __future__ import annotations

from typing import Any

from quoll.domain.abstract_machine import AbstractMachine
from quoll.domain.terms import Anchored, describe, plain

__all__ = ["restrict", "restrict_unknown"]


def restrict(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """A fact says that the word in register ``a`` is among those in ``extra``, after the site."""
    site, known = extra
    m.restrict(m.term(m.v[a], site), known)


def restrict_unknown(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """A fact says that the address in slot ``a``, if it is unknown, is among those in ``extra``.

    ``extra`` is the site, the addresses, and the instruction, which is noted if it applies.
    Unknown is an address of which more is possible than half of them.
    """
    site, known, insn = extra
    term = m.term(m.v[a], site)
    fact = describe(term, m.facts)
    if isinstance(fact, Anchored):
        return
    possible = plain(fact)
    if 2 * (possible.high - possible.low) > known.high - known.low:
        m.environment.unknown.add(insn)
        m.restrict(term, known)
