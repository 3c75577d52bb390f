"""Banked registers: what a change of processor mode does to r8 to r14.

sp and lr have one bank per mode (User and System share theirs), r8 to r12 have two: FIQ and the
rest (ARM ARM B1.3.2). The bank that is left is remembered, so that coming back finds it.
"""

from __future__ import annotations

from typing import Any, Final

from quoll.domain.abstract_machine import AbstractMachine
from quoll.domain.abstract_state import MODE
from quoll.domain.terms import plus

__all__ = ["forget_banks", "read_bank", "switch_mode", "write_bank", "write_user_bank"]

USER: Final = 0x10
FIQ: Final = 0x11
SYSTEM: Final = 0x1F
BANKED: Final = range(8, 15)
SP: Final = 13


def _mode(m: AbstractMachine, slot: int) -> int | None:
    """The mode in the low five bits of a slot, if it is known."""
    word = m.words(m.v[slot]).exact
    if word is None:
        return None
    mode = word & 31
    return USER if mode == SYSTEM else mode


def switch_mode(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """From now on the mode is that of slot ``a``."""
    current, target = m.v[MODE], _mode(m, a)
    if target is not None and target == current:
        return
    banks = dict(m.banks) if current is not None and target is not None else {}
    for register in BANKED:
        if register < 13 and current not in (None, FIQ) and target not in (None, FIQ):
            continue
        if current is not None and target is not None:
            banks[_key(current, register)] = m.v[register]
            known = banks.get(_key(target, register))
        else:
            known = None
        m.v[register] = known if known is not None else m.fresh((site, register))
    m.banks = banks
    m.v[MODE] = target


def _key(mode: int, register: int) -> int:
    if register < 13 and mode != FIQ:
        mode = USER
    return mode << 4 | register


def read_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Register ``extra[1]`` of the mode in slot ``a``."""
    site, register = extra
    current, target = m.v[MODE], _mode(m, a)
    known: object = None
    if target is not None and current is not None:
        same = _key(current, register) == _key(target, register)
        known = m.v[register] if same else m.banks.get(_key(target, register))
    m.v[out] = known if known is not None else m.fresh(site)


def write_user_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """The User register ``extra[1]`` becomes slot ``a``: ldm of user registers (B9.3.6)."""
    site, register = extra
    current = m.v[MODE]
    if current is None:
        m.banks = {}
    elif _key(current, register) == _key(USER, register):
        m.v[register] = m.fresh((site, register))
    else:
        value = m.term(m.v[a], (site, "a"))
        m.banks = {**m.banks, _key(USER, register): value}


def forget_banks(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Registers of any other mode may have been written: msr by name (B9.3.10)."""
    m.banks = {}


def write_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """sp of the mode in slot ``b`` becomes what it was, slot ``a``, plus ``extra[1]``."""
    site, change = extra
    current, target = m.v[MODE], _mode(m, b)
    if current is None or target is None:
        m.v[SP] = m.fresh((site, SP))
        m.banks = {}
        return
    value = plus(m.term(m.v[a], (site, "a")), change)
    if current == target:
        m.v[SP] = value
    else:
        m.banks = {**m.banks, _key(target, SP): value}
