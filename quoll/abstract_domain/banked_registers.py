"""The current status: processor mode, interrupt mask, and the banks of r8 to r14.

sp and lr have one bank per mode (User and System share one), r8 to r12 have two: FIQ and the rest
(ARM ARM B1.3.2). A mode change stores the bank of the old mode, so that a return to the mode finds
it again. It stores the saved status of each mode too, as a word whose lowest byte holds mode, masks
and instruction set.

The mode at entry has no number, and is the same mode wherever it is current again: a word that
``mrs`` has read, with other bits set and cleared, restores it (``terms.StatusWord``). It may be the
mode with a given number, so a change between both forgets the banks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quoll.abstract_domain.abstract_machine import AbstractMachine
from quoll.abstract_domain.abstract_state import ENTRY_MODE, MASKED, MODE
from quoll.abstract_domain.terms import Fact, StatusWord, describe, known_bits, plus
from quoll.arm.status import INTERRUPT_MASK, MODE_BITS
from quoll.intervals.masked_words import bit_and, hull, masked
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = [
    "RESTORED",
    "forget_banks",
    "note_restored",
    "read_bank",
    "read_saved_status",
    "read_status",
    "save_status",
    "set_mask",
    "switch_mode",
    "without_saved_status",
    "write_bank",
    "write_mask",
    "write_user_bank",
]

USER: Final = 0x10
FIQ: Final = 0x11
SYSTEM: Final = 0x1F
BANKED: Final = range(8, 15)
SP: Final = 13
SAVED: Final = 15  # key of the current mode's saved status; other modes use ``_key``
RESTORED: Final = 14  # key of the status word that an exception return has just restored


def _fact(m: AbstractMachine, slot: int) -> Fact:
    value = m.v[slot]
    return describe(value, m.facts) if type(value) is int else m.words(value)


def _bits(fact: Fact, mask: int) -> int | None:
    """The bits of ``mask`` in the words of ``fact``, if they are known."""
    return hull(bit_and(known_bits(fact), ValueSet.of(mask))).exact


def _mode(m: AbstractMachine, slot: int) -> int | None:
    """The mode in the low five bits of a slot: its number, or ``ENTRY_MODE``; None if unknown."""
    fact = _fact(m, slot)
    if isinstance(fact, StatusWord):
        return fact.mode
    mode = _bits(fact, MODE_BITS)
    return USER if mode == SYSTEM else mode


def _number(mode: int | None) -> int | None:
    return None if mode == ENTRY_MODE else mode


def read_status(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Load the current status: mrs of the CPSR (B9.3.8)."""
    m.environment.reads_bits = True
    mode, held = m.v[MODE], m.v[MASKED]
    mask = INTERRUPT_MASK if held is not None else 0
    bits = INTERRUPT_MASK if held else 0
    numbered = mode not in (None, ENTRY_MODE, USER)  # User may be System
    if numbered:
        mask, bits = mask | MODE_BITS, bits | mode
    rest = masked(mask, ValueSet.of(bits)) if mask else ANY
    m.v[out] = m.fresh(site, rest if numbered or mode is None else StatusWord(mode, rest))


def write_mask(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Mask interrupts or not, as the status word in slot ``a`` says."""
    bit = _bits(_fact(m, a), INTERRUPT_MASK)
    m.v[MASKED] = None if bit is None else bool(bit)


def set_mask(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Mask interrupts if ``extra[1]``, else unmask them: cps (B9.3.2)."""
    _, m.v[MASKED] = extra


def switch_mode(m: AbstractMachine, out: int, a: int, b: int, site: Any) -> None:
    """Set the mode from slot ``a``."""
    entered = _mode(m, a)
    if entered == m.v[MODE] is not None or (entered is None and m.environment.same_mode):
        return
    current, target = _number(m.v[MODE]), _number(entered)
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
    m.v[MODE] = entered


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
    current, target = _number(m.v[MODE]), _number(_mode(m, a))
    known: object = None
    if target is not None and current is not None:
        same = _key(current, register) == _key(target, register)
        known = m.v[register] if same else m.banks.get(_key(target, register))
    m.v[out] = known if known is not None else m.fresh(site)


def write_user_bank(m: AbstractMachine, out: int, a: int, b: int, extra: Any) -> None:
    """Set the User register ``extra[1]`` to slot ``a``: ldm of user registers (B9.3.6)."""
    site, register = extra
    current = _number(m.v[MODE])
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
    current, target = _number(m.v[MODE]), _number(_mode(m, b))
    if current is None or target is None:
        m.v[SP] = m.fresh((site, SP))
        m.banks = {}
        return
    value = plus(m.term(m.v[a], (site, "a")), change)
    if current == target:
        m.v[SP] = value
    else:
        m.banks = {**m.banks, _key(target, SP): value}
