"""The data access of an instruction, read from its encoding.

A disassembler's operands are too irregular for this (post-indexed forms, user-bank lists); the
encodings are regular. Sections refer to the ARM Architecture Reference Manual, ARMv7-A and
ARMv7-R edition (ARM DDI 0406C): A5 for ARM, A6 for Thumb, A7.7 for the coprocessor space that
both share.

The functions on instruction words return the access and the transferred general registers, lowest
address first, or None when the encoding accesses no data memory.
"""

from __future__ import annotations

from quoll.arm.insn import PC, SP, AccessKind, Insn, MemoryAccess, ShiftKind

__all__ = [
    "Transfer",
    "arm_access",
    "base_change",
    "is_block_transfer",
    "list_change",
    "thumb_access",
]

Transfer = tuple[MemoryAccess, tuple[int, ...]]

LSL, RRX_OR_ROR = 0, 3
COPROCESSOR_WORDS = 16  # A8.8.55: an ldc or stc may transfer up to 16 words
VFP = (10, 11)
LISTS = ("ldm", "stm", "vldm", "vstm")
UP = 1 << 23  # A5.5, A6.3.5


def is_block_transfer(insn: Insn) -> bool:
    """Whether ``insn`` loads or stores a list; push and pop do."""
    return insn.mnemonic in LISTS


def list_change(insn: Insn, memory: MemoryAccess) -> int:
    """The write-back offset of a list: its size, or the negated size."""
    up = memory.displacement >= 0 if insn.size == 2 else insn.encoding & UP
    size = memory.size * memory.count
    return size if up else -size


def base_change(insn: Insn, memory: MemoryAccess) -> int:
    """The write-back offset of an access without an index register."""
    return list_change(insn, memory) if is_block_transfer(insn) else memory.displacement


def arm_access(word: int) -> Transfer | None:
    """The access of a 32-bit ARM instruction (A5.1)."""
    if word >> 28 == 0xF:
        return _arm_unconditional(word)
    kind = word >> 25 & 7
    if kind == 0 and word & 0x90 == 0x90:
        return _arm_extra(word)
    if kind == 2 or (kind == 3 and not word & 0x10):
        return _arm_single(word)
    if kind == 4:
        return _multiple(word & 0xFFFF, word, user=bool(word & 1 << 22))
    if kind == 6:
        return _coprocessor(word)
    return None


def thumb_access(first: int, second: int | None) -> Transfer | None:
    """The access of a Thumb instruction of one (A6.2) or two (A6.3) halfwords."""
    if second is None:
        return _thumb16(first)
    word = first << 16 | second
    if first & 0xFE40 == 0xE800:
        if first >> 7 & 3 in (0, 3):
            # Thumb says "increment after" with P and U both set, ARM with U alone
            return _exception_state(word & ~(1 << 24) if word & 1 << 23 else word | 1 << 24)
        return _multiple(second, word, user=False)
    if first & 0xFE40 == 0xE840:
        return _thumb_dual(first, second)
    if first & 0xFF10 == 0xF900:
        return _elements(word)
    if first & 0xFE00 == 0xF800:
        return _thumb_single(first, second)
    if first & 0xEE00 == 0xEC00:
        return _coprocessor(word)
    return None


def _memory(
    access: AccessKind,
    size: int,
    base: int | None,
    displacement: int = 0,
    *,
    count: int = 1,
    index: int | None = None,
    subtract: bool = False,
    shift: int = LSL,
    amount: int = 0,
    pre_indexed: bool = True,
    writeback: bool = False,
    exclusive: bool = False,
    user: bool = False,
) -> MemoryAccess:
    # A8.4.3: an amount of 0 is no shift for lsl and rrx for ror; lsr and asr encode 32 as 0
    shifted = bool(amount) or shift != LSL
    return MemoryAccess(
        access=access,
        size=size,
        count=count,
        base=base,
        index=index,
        displacement=displacement,
        subtract=subtract,
        scale_shift=amount if shift == LSL else 0,
        shift=ShiftKind.IMMEDIATE if shifted else ShiftKind.NONE,
        lsl=shifted and shift == LSL,
        pre_indexed=pre_indexed,
        writeback=writeback,
        exclusive=exclusive,
        user=user,
    )


def _direction(load: int) -> AccessKind:
    return AccessKind.LOAD if load else AccessKind.STORE


def _registers(mask: int) -> tuple[int, ...]:
    return tuple(number for number in range(16) if mask >> number & 1)


def _arm_unconditional(word: int) -> Transfer | None:
    """A5.7: preloads, exception state, element loads and stores, coprocessor space."""
    if word & 0x0F100000 == 0x04000000:
        return _elements(word)
    if word & 0x0C100000 == 0x04100000:
        return _arm_preload(word)
    if word & 0x0E000000 == 0x08000000:
        return _exception_state(word)
    if word & 0x0E000000 == 0x0C000000:
        return _coprocessor(word)
    return None


def _arm_preload(word: int) -> Transfer | None:
    """pld, pldw, pli (A5.7.1); barriers and clrex share the space."""
    if word & 0x0FF00000 == 0x05700000:
        return None
    up = bool(word & 1 << 23)
    base = word >> 16 & 15
    if not word & 1 << 25:
        offset = word & 0xFFF
        return _memory(AccessKind.PRELOAD, 1, base, offset if up else -offset), ()
    return (
        _memory(
            AccessKind.PRELOAD,
            1,
            base,
            index=word & 15,
            subtract=not up,
            shift=word >> 5 & 3,
            amount=word >> 7 & 31,
        ),
        (),
    )


def _arm_single(word: int) -> Transfer:
    """ldr, str, ldrb, strb and their unprivileged forms (A5.3)."""
    pre, up, wide = word & 1 << 24, word & 1 << 23, not word & 1 << 22
    write, load = word & 1 << 21, word & 1 << 20
    registered = bool(word & 1 << 25)
    offset = 0 if registered else word & 0xFFF
    memory = _memory(
        _direction(load),
        4 if wide else 1,
        word >> 16 & 15,
        offset if up else -offset,
        index=word & 15 if registered else None,
        subtract=registered and not up,
        shift=word >> 5 & 3 if registered else LSL,
        amount=word >> 7 & 31 if registered else 0,
        pre_indexed=bool(pre),
        writeback=not pre or bool(write),
        user=not pre and bool(write),
    )
    return memory, (word >> 12 & 15,)


def _arm_extra(word: int) -> Transfer | None:
    """Halfwords, signed loads, pairs (A5.2.8); swaps and exclusives (A5.2.10)."""
    form = word >> 5 & 3
    if form == 0:
        return _arm_synchronization(word) if word & 1 << 24 else None
    pre, up, immediate = word & 1 << 24, word & 1 << 23, word & 1 << 22
    write, load = word & 1 << 21, word & 1 << 20
    dual = not load and form != 1
    first = word >> 12 & 15
    offset = (word >> 4 & 0xF0 | word & 15) if immediate else 0
    memory = _memory(
        _direction(load or form == 2),
        4 if dual else (1 if form == 2 else 2),
        word >> 16 & 15,
        offset if up else -offset,
        count=2 if dual else 1,
        index=None if immediate else word & 15,
        subtract=not immediate and not up,
        pre_indexed=bool(pre),
        writeback=not pre or bool(write),
        user=not pre and bool(write) and not dual,
    )
    return memory, (first, first + 1 & 15) if dual else (first,)


def _arm_synchronization(word: int) -> Transfer:
    base, load = word >> 16 & 15, word & 1 << 20
    if not word & 1 << 23:
        size = 1 if word & 1 << 22 else 4
        return _memory(AccessKind.SWAP, size, base), (word >> 12 & 15, word & 15)
    form = word >> 21 & 3
    first = word >> 12 & 15 if load else word & 15
    pair = form == 1
    memory = _memory(
        _direction(load), (4, 4, 1, 2)[form], base, count=2 if pair else 1, exclusive=True
    )
    return memory, (first, first + 1 & 15) if pair else (first,)


def _multiple(mask: int, word: int, *, user: bool) -> Transfer:
    """ldm and stm in all directions (A5.5, A6.3.5); P, U, W, L and Rn stand alike in both sets."""
    before, up, write, load = word & 1 << 24, word & 1 << 23, word & 1 << 21, word & 1 << 20
    registers = _registers(mask)
    length = 4 * len(registers)
    lowest = (4 if before else 0) if up else (-length if before else 4 - length)
    memory = _memory(
        _direction(load),
        4,
        word >> 16 & 15,
        lowest,
        count=len(registers),
        writeback=bool(write),
        user=user and not (load and PC in registers),
    )
    return memory, registers


def _exception_state(word: int) -> Transfer:
    """rfe and srs (B9.3.13, B9.3.16): return address, then saved status, at the lower address."""
    before, up, write, load = word & 1 << 24, word & 1 << 23, word & 1 << 21, word & 1 << 20
    lowest = (4 if before else 0) if up else (-8 if before else -4)
    if load:
        base = word >> 16 & 15
        return _memory(AccessKind.LOAD, 4, base, lowest, count=2, writeback=bool(write)), (PC,)
    return _memory(AccessKind.STORE, 4, None, lowest, count=2, writeback=bool(write)), ()


def _coprocessor(word: int) -> Transfer | None:
    """ldc, stc (A5.6) and the loads and stores of VFP registers (A7.6)."""
    pre, up, write, load = word & 1 << 24, word & 1 << 23, word & 1 << 21, word & 1 << 20
    if not (pre or up or write):
        return None  # mcrr, mrrc and 64-bit vmov
    vfp = word >> 8 & 15 in VFP
    offset = 4 * (word & 0xFF)
    signed = offset if up else -offset
    if vfp and pre and not write:
        count = 2 if word >> 8 & 1 else 1
    elif vfp:
        count = word & 0xFF
        signed = -offset if pre else 0
    else:
        count = COPROCESSOR_WORDS
        signed = signed if pre or write else 0
    memory = _memory(
        _direction(load),
        4,
        word >> 16 & 15,
        signed,
        count=count,
        pre_indexed=vfp or bool(pre),
        writeback=bool(write),
    )
    return memory, ()


D_REGISTERS = {7: 1, 10: 2, 6: 3, 2: 4, 8: 2, 9: 2, 3: 4, 4: 3, 5: 3, 0: 4, 1: 4}  # A7.7, type


def _elements(word: int) -> Transfer | None:
    """vld1 to vld4 and vst1 to vst4 (A7.7); an index register is an increment after the access."""
    form = word >> 8 & 15
    if not word & 1 << 23:
        if form not in D_REGISTERS:
            return None
        size, count = 4, 2 * D_REGISTERS[form]
    else:
        scale = word >> 6 & 3 if form >> 2 == 3 else form >> 2
        size, count = min(1 << scale, 4), (form & 3) + 1
    increment = word & 15
    index = increment if increment not in (SP, PC) else None
    memory = _memory(
        _direction(word & 1 << 21),
        size,
        word >> 16 & 15,
        size * count if increment == SP else 0,
        count=count,
        index=index,
        pre_indexed=False,
        writeback=increment != PC,
    )
    return memory, ()


THUMB_REGISTER_FORMS = (  # A6.2.4, register offset: (size, load)
    (4, False),
    (2, False),
    (1, False),
    (1, True),
    (4, True),
    (2, True),
    (1, True),
    (2, True),
)


def _thumb16(half: int) -> Transfer | None:
    """A6.2: literals, register and immediate offsets, lists."""
    low, base, offset = half & 7, half >> 3 & 7, half >> 6 & 31
    load = half & 0x0800
    match half >> 12:
        case 0x4 if load:
            return _memory(AccessKind.LOAD, 4, PC, 4 * (half & 0xFF)), (half >> 8 & 7,)
        case 0x5:
            size, loads = THUMB_REGISTER_FORMS[half >> 9 & 7]
            return _memory(_direction(loads), size, base, index=offset & 7), (low,)
        case 0x6:
            return _memory(_direction(load), 4, base, 4 * offset), (low,)
        case 0x7:
            return _memory(_direction(load), 1, base, offset), (low,)
        case 0x8:
            return _memory(_direction(load), 2, base, 2 * offset), (low,)
        case 0x9:
            return _memory(_direction(load), 4, SP, 4 * (half & 0xFF)), (half >> 8 & 7,)
        case 0xB if half & 0x0600 == 0x0400:
            return _thumb_push_pop(half)
        case 0xC:
            return _thumb_list(half)
    return None


def _thumb_push_pop(half: int) -> Transfer:
    load = half & 0x0800
    extra = (PC if load else 14,) if half & 0x0100 else ()
    registers = _registers(half & 0xFF) + extra
    lowest = 0 if load else -4 * len(registers)
    count = len(registers)
    return _memory(_direction(load), 4, SP, lowest, count=count, writeback=True), registers


def _thumb_list(half: int) -> Transfer:
    """A8.8.58: ldm writes its base back unless it loads it."""
    load, base = half & 0x0800, half >> 8 & 7
    registers = _registers(half & 0xFF)
    writeback = not (load and base in registers)
    count = len(registers)
    return _memory(_direction(load), 4, base, count=count, writeback=writeback), registers


def _thumb_dual(first: int, second: int) -> Transfer:
    """Pairs, exclusives and table branches (A6.3.6)."""
    pre, up, write, load = first & 0x100, first & 0x80, first & 0x20, first & 0x10
    base, register = first & 15, second >> 12
    offset = 4 * (second & 0xFF)
    if pre or write:
        memory = _memory(
            _direction(load),
            4,
            base,
            offset if up else -offset,
            count=2,
            pre_indexed=bool(pre),
            writeback=bool(write),
        )
        return memory, (register, second >> 8 & 15)
    if not up:
        return _memory(_direction(load), 4, base, offset, exclusive=True), (register,)
    form = second >> 4 & 15
    if load and form < 2:
        scale = form
        return _memory(AccessKind.LOAD, 1 << scale, base, index=second & 15, amount=scale), ()
    pair = form == 7
    size = {4: 1, 5: 2}.get(form, 4)
    memory = _memory(_direction(load), size, base, count=2 if pair else 1, exclusive=True)
    return memory, (register, second >> 8 & 15) if pair else (register,)


def _thumb_single(first: int, second: int) -> Transfer:
    """Single loads and stores, and preloads, which load to the pc (A6.3.7 to A6.3.10)."""
    size = 1 << (first >> 5 & 3)
    base, register = first & 15, second >> 12
    load = first & 0x10
    indexed = base != PC and not first & 0x80 and second & 0x900 == 0x900
    hint = bool(load) and register == PC and size < 4 and not indexed
    access = AccessKind.PRELOAD if hint else _direction(load)
    registers = () if hint else (register,)
    size = 1 if hint else size
    if base == PC:
        offset = second & 0xFFF
        return _memory(access, size, PC, offset if first & 0x80 else -offset), registers
    if first & 0x80:
        return _memory(access, size, base, second & 0xFFF), registers
    if not second & 0x800:
        amount = second >> 4 & 3
        return _memory(access, size, base, index=second & 15, amount=amount), registers
    pre, up, write = second & 0x400, second & 0x200, second & 0x100
    offset = second & 0xFF
    memory = _memory(
        access,
        size,
        base,
        offset if up else -offset,
        pre_indexed=bool(pre),
        writeback=bool(write),
        user=bool(pre and up and not write),
    )
    return memory, registers
