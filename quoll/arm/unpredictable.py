"""The encodings that are UNPREDICTABLE: the manual gives them no meaning, so no bound covers them.

Source: ARM Architecture Reference Manual (DDI 0406C), the decode pseudocode of A8.8 and B9.3; for
the 32-bit Thumb encodings its ``BadReg`` (sp and pc). Each row of ``RULES`` is one of its
statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quoll.arm.addressing import is_block_transfer
from quoll.arm.insn import LR, PC, SP, AccessKind, ControlFlow, Insn, MemoryAccess, ShiftKind

__all__ = ["RULES", "UnpredictableForm", "has_meaning", "unpredictable_form"]


@dataclass(frozen=True, slots=True)
class UnpredictableForm:
    """``applies`` decides whether an instruction has the form that the field ``what`` names."""

    what: str
    section: str
    applies: Callable[[Insn], bool]


def unpredictable_form(insn: Insn) -> UnpredictableForm | None:
    """The first row of ``RULES`` that makes ``insn`` UNPREDICTABLE; None if it has a meaning."""
    key = insn.raw, insn.thumb
    if key not in _found:
        if len(_found) >= CACHED:
            _found.clear()
        known = insn.flow is not ControlFlow.UNDEFINED
        _found[key] = next((rule for rule in RULES if known and rule.applies(insn)), None)
    return _found[key]


def has_meaning(insn: Insn) -> bool:
    """Whether no row of ``RULES`` makes ``insn`` UNPREDICTABLE."""
    return unpredictable_form(insn) is None


CACHED = 1 << 17
_found: dict[tuple[bytes, bool], UnpredictableForm | None] = {}  # by encoding


ARITHMETIC = frozenset(["adc", "add", "rsb", "rsc", "sbc", "sub"])
LOGIC = frozenset(["and", "bic", "cmn", "cmp", "eor", "mov", "mvn", "orn", "orr", "teq", "tst"])
DATA_PROCESSING = ARITHMETIC | LOGIC
WITH_SP = frozenset(["add", "cmn", "cmp", "mov", "sub"])  # 32-bit Thumb forms that may name sp
LONG_PRODUCTS = ("smlal", "smlsld", "smull", "umaal", "umlal", "umull")
BRANCHES = frozenset(["b", "bl", "blx", "bx", "bxj", "cbnz", "cbz"])
STATUS = frozenset(["cps", "it", "mrs", "msr", "setend"])
COPROCESSOR = frozenset(["cdp", "ldc", "mcr", "mcrr", "mrc", "mrrc", "stc"])
BIT_FIELDS = frozenset(["bfc", "bfi"])
RETURN_OF_THUMB = b"\xde\xf3"  # subs pc, lr, #n and eret, first half
ADR = (0xF20F, 0xF2AF)  # first half of adr, without bit i
WIDE_MOVES = (0x30, 0x34)  # bits 27 to 20 of movw and movt of ARM
PAIRS = ("ldrd", "strd", "ldrexd", "strexd")


def _is_vector(insn: Insn) -> bool:
    return insn.mnemonic[0] in "fv"


def _is_long_thumb(insn: Insn) -> bool:
    return insn.thumb and insn.size == 4


def _is_plain(insn: Insn) -> bool:
    """Whether it only computes with general registers: no access, transfer or coprocessor."""
    apart = insn.mnemonic in BRANCHES | STATUS | COPROCESSOR or _is_vector(insn)
    return insn.memory is None and not apart


def _list(insn: Insn) -> MemoryAccess | None:
    """The access of ldm and stm."""
    listed = insn.mnemonic in ("ldm", "stm") and is_block_transfer(insn)
    return insn.memory if listed else None


def _single(insn: Insn) -> MemoryAccess | None:
    """The access of ldr, str and their narrow and double forms."""
    moved = insn.memory is not None and insn.mnemonic.startswith(("ldr", "str"))
    exclusive = insn.memory is not None and insn.memory.exclusive
    return insn.memory if moved and not exclusive and _list(insn) is None else None


def _named(insn: Insn) -> frozenset[int]:
    return insn.reads | insn.writes


def _pc_where_arm_has_none(insn: Insn) -> bool:
    simple = insn.mnemonic in DATA_PROCESSING and insn.shift is not ShiftKind.REGISTER
    return not insn.thumb and _is_plain(insn) and not simple and PC in _named(insn)


def _fields_that_are_zero(insn: Insn) -> bool:
    """Whether register fields of ARM's comparisons and moves that must be 0 are not (A5.2.1)."""
    if insn.thumb or not _is_plain(insn) or insn.encoding >> 26 & 3:
        return False
    word = insn.encoding
    if insn.mnemonic in ("cmn", "cmp", "teq", "tst"):
        return bool(word >> 12 & 15)
    wide = word >> 20 & 0xFF in WIDE_MOVES
    return insn.mnemonic in ("mov", "mvn") and not wide and bool(word >> 16 & 15)


def _wide_move_to_pc(insn: Insn) -> bool:
    return not insn.thumb and insn.encoding >> 20 & 0xFF in WIDE_MOVES and PC in insn.writes


def _vector_access_by_pc(insn: Insn) -> bool:
    memory = insn.memory
    if memory is None or memory.base != PC or not _is_vector(insn):
        return False
    listed = insn.mnemonic in ("vldm", "vstm") or insn.mnemonic == "vstr"
    return memory.writeback or insn.mnemonic[3:4].isdigit() or (insn.thumb and listed)


def _vector_transfer(insn: Insn) -> bool:
    bad = {SP, PC} if insn.thumb else {PC}
    moves = insn.mnemonic in ("vmov", "vmsr", "vdup") and insn.memory is None
    return moves and bool(_named(insn) & bad)


def _stack_pointer_is_allowed(insn: Insn) -> bool:
    """Whether it may name sp: add, sub, cmp, mov (A8.8.9, A8.8.225, A8.8.37, A8.8.103)."""
    if insn.mnemonic not in WITH_SP:
        return False
    first = insn.sources[0] if insn.sources else None
    compares = insn.mnemonic in ("cmn", "cmp")
    if insn.mnemonic == "mov":
        second = int.from_bytes(insn.raw[2:], "little")
        plain = insn.raw[:2] == b"\x4f\xea" and not second & 0x70F0
        both = SP in insn.reads and SP in insn.writes
        return plain and not both and PC not in _named(insn)
    if PC in _named(insn) or (SP in insn.sources[1:]):
        return False
    if compares:
        return first == SP
    if SP in insn.writes:
        small = insn.shift is ShiftKind.NONE or _left_shift(insn) <= 3
        return first == SP and small
    return first == SP


def _left_shift(insn: Insn) -> int:
    """The amount of a left shift of the last operand; 32 for other shifts."""
    second = int.from_bytes(insn.raw[2:], "little")
    amount = second >> 10 & 0x1C | second >> 6 & 3
    return amount if not second >> 4 & 3 else 32


def _bad_register_of_thumb(insn: Insn) -> bool:
    if not _is_long_thumb(insn) or not _is_plain(insn) or insn.raw[:2] == RETURN_OF_THUMB:
        return False
    if int.from_bytes(insn.raw[:2], "little") & 0xFBFF in ADR:
        return bool(insn.writes & {SP, PC})
    return bool(_named(insn) & {SP, PC}) and not _stack_pointer_is_allowed(insn)


def _halves_are_one_register(insn: Insn) -> bool:
    return insn.mnemonic.startswith(LONG_PRODUCTS) and len(insn.writes) == 1


def _bit_field_is_inverted(insn: Insn) -> bool:
    word = insn.encoding
    if insn.mnemonic not in BIT_FIELDS | {"sbfx", "ubfx"}:
        return False
    high, low = (
        (word & 31, word >> 10 & 0x1C | word >> 6 & 3)
        if insn.thumb
        else (
            word >> 16 & 31,
            word >> 7 & 31,
        )
    )
    return high < low if insn.mnemonic in BIT_FIELDS else low + high > 31


def _base_is_written_twice(insn: Insn) -> bool:
    """A load or store with write-back whose base is the pc or is transferred."""
    memory = _single(insn)
    return (
        memory is not None
        and memory.writeback
        and (memory.base == PC or memory.base in insn.transfers)
    )


def _index_is_pc(insn: Insn) -> bool:
    memory = insn.memory
    bad = (SP, PC) if insn.thumb and insn.size == 4 else (PC,)
    return memory is not None and memory.index in bad and not _is_vector(insn)


def _narrow_pc(insn: Insn) -> bool:
    memory = _single(insn)
    stores = memory is not None and memory.access is AccessKind.STORE
    user = memory is not None and memory.user and not (stores and not insn.thumb)
    narrow = memory is not None and (memory.size < 4 or user or memory.count == 2)
    bad = {SP, PC} if _is_long_thumb(insn) else {PC}
    return narrow and bool(bad & set(insn.transfers))


def _stored_pc_of_thumb(insn: Insn) -> bool:
    memory = _single(insn)
    stores = memory is not None and memory.access is AccessKind.STORE
    return insn.thumb and stores and PC in insn.transfers


def _unprivileged_base(insn: Insn) -> bool:
    memory = _single(insn)
    user = memory is not None and memory.user and not insn.thumb
    return user and memory is not None and (memory.base == PC or memory.base in insn.transfers)


def _pair_is_odd(insn: Insn) -> bool:
    pair = insn.mnemonic in PAIRS and not insn.thumb
    return pair and bool(insn.transfers) and (insn.transfers[0] % 2 == 1 or LR in insn.transfers)


def _pair_is_one_register(insn: Insn) -> bool:
    loads = insn.memory is not None and insn.memory.access is AccessKind.LOAD
    return insn.mnemonic in PAIRS and loads and len(set(insn.transfers)) == 1


def _index_is_loaded(insn: Insn) -> bool:
    memory = _single(insn)
    return (
        memory is not None
        and insn.mnemonic == "ldrd"
        and memory.index is not None
        and memory.index in insn.transfers
    )


def _list_by_pc(insn: Insn) -> bool:
    memory = _list(insn)
    return memory is not None and memory.base == PC


def _listed_base_is_written_back(insn: Insn) -> bool:
    memory = _list(insn)
    if memory is None or not memory.writeback or memory.base not in insn.transfers:
        return False
    if memory.access is AccessKind.LOAD:
        return True
    return _is_long_thumb(insn)


def _list_of_thumb(insn: Insn) -> bool:
    memory = _list(insn)
    if memory is None or not _is_long_thumb(insn):
        return False
    listed = set(insn.transfers)
    if memory.access is AccessKind.STORE:
        return bool(listed & {SP, PC}) or len(listed) < 2
    return SP in listed or {LR, PC} <= listed or len(listed) < 2


def _user_list_with_write_back(insn: Insn) -> bool:
    memory = _list(insn)
    return memory is not None and memory.user and memory.writeback


def _exclusive_overlap(insn: Insn) -> bool:
    memory = insn.memory
    if memory is None or not memory.exclusive:
        return False
    bad = {SP, PC} if insn.thumb else {PC}
    status = insn.writes if memory.access is AccessKind.STORE else frozenset[int]()
    named = {*insn.transfers, *status}
    return bool(named & bad or memory.base == PC or status & {memory.base, *insn.transfers})


def _swap_overlap(insn: Insn) -> bool:
    memory = insn.memory
    if memory is None or memory.access is not AccessKind.SWAP:
        return False
    return memory.base in (PC, *insn.transfers) or PC in insn.transfers


def _pc_of_status(insn: Insn) -> bool:
    bad = {SP, PC} if insn.thumb else {PC}
    return insn.mnemonic in ("mrs", "msr") and bool(_named(insn) & bad)


def _coprocessor_register(insn: Insn) -> bool:
    bad = {SP, PC} if insn.thumb else {PC}
    if insn.mnemonic in ("mcr", "mcrr", "mrrc"):
        named = list(insn.sources) if insn.mnemonic[1] == "c" else sorted(insn.writes)
        same = insn.mnemonic == "mrrc" and len(insn.writes) == 1
        return bool(bad & set(named)) or same
    return insn.mnemonic == "mrc" and insn.thumb and SP in insn.writes


def _call_of_pc(insn: Insn) -> bool:
    return insn.mnemonic in ("blx", "bxj") and PC in insn.sources


def _table_branch_register(insn: Insn) -> bool:
    memory = insn.memory
    named = insn.mnemonic in ("tbb", "tbh") and memory is not None
    return named and memory is not None and (memory.base == SP or memory.index in (SP, PC))


def _change_of_state(insn: Insn) -> bool:
    """Whether a cps has no defined effect (B9.3.2)."""
    if insn.mnemonic != "cps":
        return False
    word = insn.encoding
    if insn.size == 2:
        return not word & 7
    change, masks, mode = (
        (word >> 9 & 3, word >> 5 & 7, word >> 8 & 1)
        if insn.thumb
        else (word >> 18 & 3, word >> 6 & 7, word >> 17 & 1)
    )
    idle = not mode and (word & 31 or not change)
    return change == 1 or bool(idle) or bool(change & 2) != bool(masks)


def _return_from_pc(insn: Insn) -> bool:
    memory = insn.memory
    return insn.mnemonic.startswith("rfe") and memory is not None and memory.base == PC


RULES: tuple[UnpredictableForm, ...] = (
    UnpredictableForm("the pc as an operand", "A8.8, data processing", _pc_where_arm_has_none),
    UnpredictableForm("a register field that has to be 0", "A5.2.1", _fields_that_are_zero),
    UnpredictableForm("a wide move to the pc", "A8.8.102, A8.8.106", _wide_move_to_pc),
    UnpredictableForm("a vector access relative to the pc", "A7.6, A7.7", _vector_access_by_pc),
    UnpredictableForm("the pc as a vector's scalar", "A8.8.341", _vector_transfer),
    UnpredictableForm("sp or pc as an operand", "A6.3, BadReg", _bad_register_of_thumb),
    UnpredictableForm(
        "both halves of a product in one register", "A8.8.189", _halves_are_one_register
    ),
    UnpredictableForm("a bit field of no width", "A8.8.20, A8.8.246", _bit_field_is_inverted),
    UnpredictableForm(
        "write-back to the pc or a register that it transfers", "A8.8.63", _base_is_written_twice
    ),
    UnpredictableForm("the pc as an index", "A8.8.66", _index_is_pc),
    UnpredictableForm("the pc as a narrow or double word", "A8.8.68, A8.8.72", _narrow_pc),
    UnpredictableForm("a store of the pc in Thumb state", "A8.8.203", _stored_pc_of_thumb),
    UnpredictableForm(
        "an unprivileged access whose base is the pc or is transferred",
        "A8.8.92",
        _unprivileged_base,
    ),
    UnpredictableForm(
        "a pair that begins with an odd register or ends with the pc", "A8.8.72", _pair_is_odd
    ),
    UnpredictableForm("one register twice in a pair", "A8.8.72", _pair_is_one_register),
    UnpredictableForm("a pair that contains its index", "A8.8.74", _index_is_loaded),
    UnpredictableForm("a list relative to the pc", "A8.8.58", _list_by_pc),
    UnpredictableForm("write-back to a base in the list", "A8.8.58", _listed_base_is_written_back),
    UnpredictableForm(
        "a list with sp, with lr and pc, or of one register", "A8.8.57", _list_of_thumb
    ),
    UnpredictableForm(
        "write-back with a list of user registers", "B9.3.6", _user_list_with_write_back
    ),
    UnpredictableForm(
        "an exclusive access whose registers overlap", "A8.8.75, A8.8.212", _exclusive_overlap
    ),
    UnpredictableForm("a swap whose registers overlap", "A8.8.229", _swap_overlap),
    UnpredictableForm("the pc as a status word", "B9.3.8, B9.3.11", _pc_of_status),
    UnpredictableForm("the pc as a coprocessor's register", "A8.8.98", _coprocessor_register),
    UnpredictableForm("a call or jump to the pc", "A8.8.26, A8.8.28", _call_of_pc),
    UnpredictableForm("a table branch by sp or pc", "A8.8.238", _table_branch_register),
    UnpredictableForm("a change of state without a meaning", "B9.3.2", _change_of_state),
    UnpredictableForm("a return whose base is the pc", "B9.3.13", _return_from_pc),
)
