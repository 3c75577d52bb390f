"""Banked registers: the effect of mode changes on r8 to r14.

sp and lr have one bank per mode (User and System share one), r8 to r12 have two: FIQ and the rest
(ARM ARM B1.3.2). A mode change stores the bank of the old mode, so that a return to the mode finds
it again. It stores the saved status of each mode too, as a word whose lowest byte holds mode, masks
and instruction set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quoll.abstract_domain.abstract_machine import AbstractMachine
from quoll.abstract_domain.abstract_state import MODE
from quoll.abstract_domain.terms import plus

__all__ = [
    "RESTORED",
    "forget_banks",
    "note_restored",
    "read_bank",
    "read_saved_status",
    "save_status",
    "switch_mode",
    "without_saved_status",
    "write_bank",
    "write_user_bank",
]

USER: Final = 0x10
FIQ: Final = 0x11
SYSTEM: Final = 0x1F
BANKED: Final = range(8, 15)
SP: Final = 13
SAVED: Final = 15  # key of the current mode's saved status; other modes use ``_key``
RESTORED: Final = 14  # key of the status word that an exception return has just restored


def _mode(m: AbstractMachine, slot: int) -> int | None:
    """The mode in the low five bits of a slot, if it is known."""
    word = m.words(m.v[slot]).exact
    if word is None:
        return None
    mode = word & 31
    return USER if mode == SYSTEM else mode


def switch_mode(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Set the mode from slot ``a``."""
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
    if current is not None and target is not None:
        _swap(banks, current << 4 | SAVED, target << 4 | SAVED)
    m.banks = banks
    m.v[MODE] = target


def _swap(banks: dict[int, object], left: int, entered: int) -> None:
    """Store the saved status of the mode ``left`` and load the one of the mode ``entered``."""
    saved, other = banks.pop(SAVED, None), banks.pop(entered, None)
    banks.pop(left, None)
    if saved is not None:
        banks[left] = saved
    if other is not None:
        banks[SAVED] = other


def save_status(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Set the saved status of the current mode to slot ``a``; unknown unless ``extra[1]``."""
    site, known = extra
    banks = {key: cell for key, cell in m.banks.items() if key != SAVED}
    if known:
        banks[SAVED] = m.term(m.v[a], site)
    m.banks = banks


def without_saved_status(banks: Mapping[int, object]) -> Mapping[int, object]:
    """The banks after a function that may have changed the saved status of any mode."""
    if not any(key & 15 == SAVED or key == RESTORED for key in banks):
        return banks
    return {key: cell for key, cell in banks.items() if key & 15 != SAVED and key != RESTORED}


def read_saved_status(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Load the saved status of the current mode."""
    known = m.banks.get(SAVED)
    m.v[out] = m.fresh(site) if known is None else known


def note_restored(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Record the status word in slot ``a``, which an exception return has restored."""
    m.banks = {**m.banks, RESTORED: m.term(m.v[a], site)}


def _key(mode: int, register: int) -> int:
    if register < 13 and mode != FIQ:
        mode = USER
    return mode << 4 | register


def read_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Load register ``extra[1]`` of the mode in slot ``a``."""
    site, register = extra
    current, target = m.v[MODE], _mode(m, a)
    known: object = None
    if target is not None and current is not None:
        same = _key(current, register) == _key(target, register)
        known = m.v[register] if same else m.banks.get(_key(target, register))
    m.v[out] = known if known is not None else m.fresh(site)


def write_user_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Set the User register ``extra[1]`` to slot ``a``: ldm of user registers (B9.3.6)."""
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
    """Forget the registers of all other modes: msr to a banked register by name (B9.3.10)."""
    m.banks = {}


def write_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Set sp of the mode in slot ``b`` to its value in slot ``a``, plus ``extra[1]``."""
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
