"""Types of functions and of the pointers to them, from ``.debug_info`` (DWARF 5, chapter 5).

A type says which functions a pointer may lead to, unless the source casts one to another: so it
filters only proposals, never a result. Types compare by their shape: the sizes of numbers, and the
names of structures; a pointer to void fits any pointer, and a pointer to a structure fits one to a
structure that begins with it (C11, 6.7.2.1). Several typedefs may name a structure without a tag,
and each file may use another one: such structures compare by their members (C11, 6.2.7).

Debug information may contradict the code. Assemblers describe functions without any type. GCC
changes functions whose new names have a dot (``set.isra.0``), and Clang changes functions that are
not external: these need not take the parameters of the source.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from quoll.image.byte_stream import EndOfBytes
from quoll.image.debug_sections import DebugSections
from quoll.image.dwarf_entries import (
    HIGH_PC,
    LOW_PC,
    UNIT_REFERENCES,
    DebugEntry,
    DebugUnit,
    Value,
    address_of,
    code_range,
    text_of,
    units,
)
from quoll.image.dwarf_frames import CallFrames, FrameSlot, slot_of
from quoll.image.dwarf_locations import LIST_BASE, HeldRange, registers_held
from quoll.image.symbols import SymbolTable

__all__ = ["VIRTUAL_CALL", "DebugTypes", "Signature", "TypeRef"]

ARRAY, ENUM, PARAMETER, MEMBER, POINTER, STRUCTURE = 0x01, 0x04, 0x05, 0x0D, 0x0F, 0x13
SUBROUTINE, TYPEDEF, UNION, OPEN, INHERITED, BASE = 0x15, 0x16, 0x17, 0x18, 0x1C, 0x24
CLASS, CONST, SUBPROGRAM, VARIABLE, VOLATILE = 0x02, 0x26, 0x2E, 0x34, 0x35
REFERENCE, RVALUE, RESTRICT, ATOMIC, RANGE = 0x10, 0x42, 0x37, 0x47, 0x21
VARIANT, VARIANTS = 0x19, 0x33  # DW_TAG
NAME, LOCATION, SIZE, LANGUAGE, PROTOTYPED = 0x03, 0x02, 0x0B, 0x13, 0x27
ORIGIN, MEMBER_AT, EXTERNAL, SPECIFICATION, TYPE = 0x31, 0x38, 0x3F, 0x47, 0x49
PRODUCER, UPPER, COUNT, FRAME_BASE, RANGES = 0x25, 0x2F, 0x37, 0x40, 0x55  # DW_AT
WANTED = frozenset((NAME, LOCATION, SIZE, LOW_PC, LANGUAGE, PROTOTYPED, ORIGIN, MEMBER_AT, EXTERNAL,
                    SPECIFICATION, TYPE, PRODUCER, UPPER, COUNT, FRAME_BASE, RANGES, HIGH_PC,
                    LIST_BASE))  # fmt: skip
OTHER_NAMES = frozenset((TYPEDEF, CONST, VOLATILE, RESTRICT, ATOMIC))
POINTERS = frozenset((POINTER, REFERENCE, RVALUE))
STRUCTURES = frozenset((STRUCTURE, UNION, CLASS))
# DW_LANG of C++ and Rust: in others, such as C, a function without a prototype has any parameters.
PROTOTYPES = frozenset((0x04, 0x1A, 0x1C, 0x21, 0x2B, 0x3A))
ASSEMBLER = 0x8001  # DW_LANG_Mips_Assembler, of every assembler
DEEPEST = 16  # types inside of types
STEPS = 4096  # members that are examined for one offset
WORD = 4  # bytes
UNKNOWN = "?"  # the shape of a type that is not in the section, as of -fdebug-types-section
RESULT = -1  # index in ``begins``
REGISTERS = 4  # of arguments (AAPCS, 6.1.1)
TAG = re.compile(r"struct [^{]*\{")  # of a structure that its members name
MEMBERS = re.compile(r"(struct [^ {]+) \{[^}]*\}")  # behind the name of a typedef
NARROW = re.compile(r"(?:int|float)(?:8|16|32)|void|.*\*")  # shapes that fit one register
VTABLE_WORDS = ("__vtbl_ptr_type", "usize")  # the type of a vtable's words, in C++ and in Rust

TypeRef = int  # the offset of an entry in .debug_info


@dataclass(frozen=True, slots=True)
class Signature:
    """The shapes of result and parameters; ``parameters`` is None if they may be any.

    ``begins``: for each parameter that points to a structure, and last for the result, pointers to
    the structures that it begins with, or is in another language.
    """

    result: str
    parameters: tuple[str, ...] | None
    more: bool = False  # further parameters may follow
    begins: tuple[frozenset[str], ...] = field(default=(), compare=False)

    def fits(self, other: Signature) -> bool:
        """Whether a function of one type may be called through a pointer to the other."""
        results = self._begins(RESULT, other.result) or other._begins(RESULT, self.result)
        if not (results or _same(self.result, other.result)):
            return False
        if self.parameters is None or other.parameters is None:
            return True
        if not (self.more or other.more) and len(self.parameters) != len(other.parameters):
            return False
        return all(
            _same(one, two) or self._begins(n, two) or other._begins(n, one)
            for n, (one, two) in enumerate(zip(self.parameters, other.parameters, strict=False))
        )

    def _begins(self, number: int, shape: str) -> bool:
        """Whether ``shape`` points to the first member of the structure of a parameter."""
        return any(_untagged(shape) in first for first in self.begins[number:][:1])

    def __str__(self) -> str:
        texts = ("...",) if self.parameters is None else self.parameters
        return MEMBERS.sub(r"\1", f"{self.result} ({', '.join(texts) or 'void'})")

    @property
    def narrow(self) -> bool:
        """Whether the result and each of the parameters fit one register."""
        return all(map(NARROW.fullmatch, (self.result, *(self.parameters or ()))))

    @property
    def narrow_result(self) -> bool:
        """Whether the result fits one register."""
        return NARROW.fullmatch(self.result) is not None


VIRTUAL_CALL = Signature("virtual", None)


def _same(one: str, other: str) -> bool:
    if UNKNOWN in (one[:1], other[:1]):
        return True
    pointers = one.endswith("*") and other.endswith("*")
    return _untagged(one) == _untagged(other) or (pointers and "void *" in (one, other))


def _untagged(shape: str) -> str:
    """A shape without the typedefs of a structure that compares by its members."""
    return TAG.sub("struct {", shape)


@dataclass(slots=True)
class _Entry:
    """An entry with its unit, the offsets of the entries inside of it, and the one around it."""

    unit: DebugUnit
    entry: DebugEntry
    inside: list[TypeRef]
    around: _Entry | None

    @property
    def tag(self) -> int:
        return self.entry.tag

    def value(self, attribute: int) -> Value | None:
        return self.entry.attributes.get(attribute)


class DebugTypes:
    """The types of one image; offsets name entries of the whole section."""

    def __init__(self, debug: DebugSections, symbols: SymbolTable) -> None:
        self._debug, self._symbols = debug, symbols
        self._frames: dict[int, list[tuple[FrameSlot, TypeRef]]] = {}  # by function

    @cached_property
    def _entries(self) -> dict[TypeRef, _Entry]:
        found: dict[TypeRef, _Entry] = {}
        for unit, entries in units(self._debug, WANTED):
            open_entries: list[_Entry] = []
            try:
                for entry in entries:
                    del open_entries[max(entry.depth - 1, 0) :]
                    made = _Entry(unit, entry, [], open_entries[-1] if open_entries else None)
                    if open_entries:
                        open_entries[-1].inside.append(unit.start + entry.offset)
                    open_entries.append(made)
                    found[unit.start + entry.offset] = made
            except EndOfBytes:
                continue
        return found

    @cached_property
    def _functions(self) -> dict[int, TypeRef]:
        """The functions by address."""
        found: dict[int, TypeRef] = {}
        for at, one in self._entries.items():
            low = one.value(LOW_PC)
            if one.tag == SUBPROGRAM and low is not None and _language(one) != ASSEMBLER:
                addr = address_of(self._debug, one.unit, low)
                if addr:
                    found.setdefault(addr & ~1, at)
        return found

    @cached_property
    def _variables(self) -> list[tuple[int, TypeRef]]:
        """The addresses and types of variables with a fixed place, ascending."""
        found: dict[int, TypeRef] = {}
        for at, one in self._entries.items():
            place = one.value(LOCATION)
            if one.tag == VARIABLE and place is not None and isinstance(place[1], bytes):
                addr, kind = address_of(self._debug, one.unit, place), self._type_of(at)
                if addr and kind is not None:
                    found.setdefault(addr, kind)
        return sorted(found.items())

    @cached_property
    def _held(self) -> list[tuple[HeldRange, TypeRef]]:
        """The variables and parameters in registers."""
        found: list[tuple[HeldRange, TypeRef]] = []
        for at, one in self._entries.items():
            location = one.value(LOCATION) if one.tag in (VARIABLE, PARAMETER) else None
            kind = None if location is None else self._type_of(at)
            if location is not None and kind is not None:
                held = registers_held(self._debug, one.unit, location, self._scope(one))
                found += ((span, kind) for span in held)
        return found

    def _scope(self, one: _Entry) -> tuple[int, int] | None:
        """The code of the innermost block or function around an entry, if it is one range."""
        around = one.around
        while around is not None and around.value(LOW_PC) is None and around.value(RANGES) is None:
            around = around.around
        return code_range(self._debug, one.unit, around.entry.attributes) if around else None

    def held_in(self, register: int, addr: int) -> tuple[TypeRef, ...]:
        """The types of variables that a register holds before the instruction at ``addr``."""
        spans = (
            (span, kind)
            for span, kind in self._held
            if span.register == register and span.low <= addr < span.high
        )
        return tuple(
            part
            for span, kind in spans
            for part in ((kind,) if span.part is None else self.words_at(kind, span.part))
        )

    def in_frame(self, function: int, register: int, offset: int, addr: int) -> tuple[TypeRef, ...]:
        """The types of the word ``offset`` bytes above a register before the instruction at
        ``addr``, if a variable of ``function`` is in its frame there.
        """
        found: list[TypeRef] = []
        for slot, kind in self._frame(function):
            if slot.register is None:
                above = self._call_frames.frame_address(addr)
                if above is None:
                    continue
                slot = FrameSlot(above.register, above.offset + slot.offset)
            distance = offset - slot.offset
            if slot.register == register and 0 <= distance < (self._size(kind) or 0):
                found += self.words_at(kind, distance)
        return tuple(found)

    @cached_property
    def _call_frames(self) -> CallFrames:
        return CallFrames(self._debug.frame)

    def _frame(self, function: int) -> list[tuple[FrameSlot, TypeRef]]:
        """The variables and parameters of a function in its frame."""
        if function in self._frames or function not in self._functions:
            return self._frames.get(function, [])
        found = self._frames[function] = []
        top = self._entries[self._functions[function]]
        base = top.value(FRAME_BASE)
        expression = base[1] if base is not None and isinstance(base[1], bytes) else b""
        pending = list(top.inside)
        while pending:
            at = pending.pop()
            one = self._entries[at]
            pending += one.inside
            place = one.value(LOCATION) if one.tag in (VARIABLE, PARAMETER) else None
            if place is not None and isinstance(place[1], bytes):
                slot, kind = slot_of(place[1], expression), self._type_of(at)
                if slot is not None and kind is not None:
                    found.append((slot, kind))
        return found

    def signature(self, function: int) -> Signature | None:
        """The type of the function at an address; None if it is unknown.

        A linker may give equal functions of different types one address.
        """
        at = self._functions.get(function)
        named = {s.name for s in self._symbols.at(function) if s.kind == "func"}
        return None if at is None or len(named) > 1 else self._signature(at)

    def takes_parameters(self, function: int) -> bool:
        """Whether the function at an address surely takes the parameters of its type."""
        at = self._functions.get(function)
        named = [s for s in self._symbols.at(function) if s.kind == "func"]
        if at is None or any(not symbol.local for symbol in named):
            return at is not None
        unit = self._entries[at].unit
        producer = unit.root.get(PRODUCER)
        text = "" if producer is None else text_of(self._debug, unit, producer) or ""
        return bool(named) and text.startswith("GNU") and all("." not in s.name for s in named)

    def result(self, function: int) -> TypeRef | None:
        """The type of the result of the function at an address; None for void, or if unknown."""
        at = self._functions.get(function)
        return None if at is None else self._type_of(at)

    def result_word(self, function: int) -> TypeRef | None:
        """The type of the result, or of the only word of a structure that is returned in a
        register; None if there is none.
        """
        kind = self.result(function)
        if kind is None or (self._size(kind) or WORD) > WORD:
            return kind
        words = tuple(self.words_at(kind, 0))
        return words[0] if len(words) == 1 else kind

    def parameter(self, function: int, register: int) -> TypeRef | None:
        """The type of the parameter in a register where a function begins; None if unknown.

        Only if each parameter before it takes one register.
        """
        at = self._functions.get(function)
        if at is None or register >= REGISTERS or not self.takes_parameters(function):
            return None
        kinds = [self._type_of(p) for p in self._parameters(at)]
        alone = all(map(self._fits_register, kinds[: register + 1]))
        return kinds[register] if alone and register < len(kinds) else None

    def variables_near(self, addr: int) -> tuple[tuple[int, TypeRef], ...]:
        """The address and type of the variable at ``addr``, and of those before and behind it."""
        at = bisect_right(self._variables, (addr, 1 << 64))
        return tuple(self._variables[max(at - 2, 0) : at + 1])

    def variable(self, addr: int) -> tuple[int, TypeRef] | None:
        """The address and type of the variable that holds the byte at ``addr``."""
        at = bisect_right(self._variables, (addr, 1 << 64)) - 1
        if at < 0:
            return None
        start, kind = self._variables[at]
        return (start, kind) if addr < start + max(self._size(kind) or 0, 1) else None

    def held_functions(self, addr: int) -> Iterator[Signature]:
        """The types of functions to which the word at ``addr`` of a variable points."""
        variable = self.variable(addr)
        if variable is not None:
            for word in self.words_at(variable[1], addr - variable[0]):
                if signature := self.pointed_function(word):
                    yield signature

    def is_number(self, kind: TypeRef) -> bool:
        """Whether a word of this type is no address."""
        one = self._entries.get(self._bare(kind))
        return one is not None and one.tag in (BASE, ENUM)

    def pointee(self, kind: TypeRef) -> TypeRef | None:
        """The type behind a pointer; None for void, or if it is none."""
        one = self._entries.get(self._bare(kind))
        return self._type_of(self._bare(kind)) if one and one.tag in POINTERS else None

    def words_at(self, kind: TypeRef, offset: int | None) -> Iterator[TypeRef]:
        """The types of the words at ``offset`` in an object; None: at any offset."""
        pending = [(kind, offset)]
        for _ in range(STEPS):
            if not pending:
                return
            kind, offset = pending.pop()
            bare = self._bare(kind)
            one = self._entries.get(bare)
            if one is None:
                continue
            if one.tag == ARRAY:
                pending += self._element(bare, offset)
            elif one.tag in STRUCTURES:
                members = (self._member(at, offset) for at in self._members(one))
                pending += [member for member in members if member is not None]
            elif offset in (0, None) or self._name(bare) in VTABLE_WORDS:
                yield bare

    def pointed_function(self, kind: TypeRef) -> Signature | None:
        """The type of the functions that a pointer leads to; None if it is no such pointer.

        ``VIRTUAL_CALL`` for a word of a vtable.
        """
        if self._name(kind) in VTABLE_WORDS:
            return VIRTUAL_CALL
        to = self.pointee(kind)
        bare = None if to is None else self._bare(to)
        one = None if bare is None else self._entries.get(bare)
        return self._signature(bare) if bare is not None and one and one.tag == SUBROUTINE else None

    def _element(self, at: TypeRef, offset: int | None) -> list[tuple[TypeRef, int | None]]:
        """The element of an array, and the offset in it."""
        element = self._type_of(at)
        size = self._size(element)
        if element is None or not size:
            return []
        return [(element, None if offset is None else offset % size)]

    def _members(self, one: _Entry) -> Iterator[TypeRef]:
        """Entries inside a structure, or inside a variant of it; no tag that selects a variant."""
        for at in one.inside:
            inner = self._entries[at]
            if inner.tag == VARIANTS:
                for variant in map(self._entries.__getitem__, inner.inside):
                    yield from variant.inside if variant.tag == VARIANT else ()
            else:
                yield at

    def _member(self, at: TypeRef, offset: int | None) -> tuple[TypeRef, int | None] | None:
        """A member that is at ``offset`` of its structure, and the offset in it."""
        one = self._entries[at]
        kind = self._type_of(at)
        if one.tag not in (MEMBER, INHERITED) or kind is None or one.value(EXTERNAL):
            return None
        place = one.value(MEMBER_AT)
        start = place[1] if place is not None else 0
        if not isinstance(start, int):
            return None
        if offset is None:
            return kind, None
        inside = start <= offset < start + (self._size(kind) or 0)
        return (kind, offset - start) if inside else None

    def _signature(self, at: TypeRef) -> Signature:
        types = [self._type_of(p) for p in self._parameters(at)]
        kinds = tuple(map(self._shape, types))
        inside = [self._entries[a] for d in self._declarations(at) for a in self._entries[d].inside]
        stated = any(self._entries[a].value(PROTOTYPED) for a in self._declarations(at))
        unknown = not stated and _language(self._entries[at]) not in PROTOTYPES
        more = any(one.tag == OPEN for one in inside)
        result = self._type_of(at)
        begins = tuple(frozenset(self._smaller(kind)) for kind in (*types, result))
        return Signature(self._shape(result), None if unknown else kinds, more, begins)

    def _smaller(self, kind: TypeRef | None) -> Iterator[str]:
        """The shapes of pointers to the structures that the pointed structure begins with."""
        inner = None if kind is None else self.pointee(kind)
        if inner is not None and self._is_named_by_typedef(self._bare(inner)):
            yield f"{self._by_members(self._bare(inner))} *"
        for _ in range(DEEPEST):
            one = None if inner is None else self._entries.get(self._bare(inner))
            if one is None or one.tag not in STRUCTURES:
                return
            first = (self._member(at, 0) for at in self._members(one))
            inner = next((member[0] for member in first if member is not None), None)
            if inner is not None and self._entries[self._bare(inner)].tag in STRUCTURES:
                yield _untagged(f"{self._shape(inner)} *")

    def _is_named_by_typedef(self, at: TypeRef) -> bool:
        """Whether a structure may have its name from a typedef, as in C++ (C++17, 10.1.3)."""
        one = self._entries.get(at)
        return one is not None and one.tag in STRUCTURES and _language(one) in PROTOTYPES

    def _by_members(self, at: TypeRef) -> str:
        """The shape of a structure by its members."""
        inside = (a for a in self._entries[at].inside if self._entries[a].tag == MEMBER)
        return f"struct {{{', '.join(map(self._name, inside))}}}"

    def _parameters(self, at: TypeRef) -> list[TypeRef]:
        """The parameters, in the first declaration that lists any."""
        for declared in self._declarations(at):
            inside = self._entries[declared].inside
            found = [a for a in inside if self._entries[a].tag == PARAMETER]
            if found:
                return found
        return []

    def _declarations(self, at: TypeRef) -> Iterator[TypeRef]:
        """An entry, and those that it completes."""
        current: TypeRef | None = at
        for _ in range(DEEPEST):
            if current is None or current not in self._entries:
                return
            yield current
            one = self._entries[current]
            current = _reference(one, ORIGIN) or _reference(one, SPECIFICATION)

    def _type_of(self, at: TypeRef) -> TypeRef | None:
        found = (_reference(self._entries[a], TYPE) for a in self._declarations(at))
        return next((kind for kind in found if kind is not None), None)

    def _name(self, at: TypeRef) -> str:
        one = self._entries.get(at)
        value = None if one is None else one.value(NAME)
        if one is None or value is None:
            return ""
        return text_of(self._debug, one.unit, value) or ""

    def _other_name(self, kind: TypeRef) -> str:
        """The name of the innermost typedef, which a structure without a tag has."""
        name = ""
        for _ in range(DEEPEST):
            one = self._entries.get(kind)
            inner = None if one is None or one.tag not in OTHER_NAMES else _reference(one, TYPE)
            if one is None or inner is None:
                return name
            name = self._name(kind) if one.tag == TYPEDEF else name
            kind = inner
        return name

    def _bare(self, kind: TypeRef) -> TypeRef:
        """The type without typedefs and qualifiers."""
        for _ in range(DEEPEST):
            one = self._entries.get(kind)
            inner = None if one is None or one.tag not in OTHER_NAMES else _reference(one, TYPE)
            if inner is None:
                return kind
            kind = inner
        return kind

    def _fits_register(self, kind: TypeRef | None) -> bool:
        bare = None if kind is None else self._bare(kind)
        one = None if bare is None else self._entries.get(bare)
        if one is None or one.tag in STRUCTURES or one.tag == ARRAY:
            return False
        return (self._size(kind) or WORD) <= WORD

    def _size(self, kind: TypeRef | None) -> int | None:
        """Bytes of a type; None if they are not stated."""
        count = 1
        for _ in range(DEEPEST):
            bare = None if kind is None else self._bare(kind)
            one = None if bare is None else self._entries.get(bare)
            if one is None or bare is None:
                return None
            if one.tag != ARRAY:
                size = WORD if one.tag in POINTERS else _number(one, SIZE)
                return None if size is None else size * count
            count *= self._length(one)
            kind = self._type_of(bare)
        return None

    def _length(self, array: _Entry) -> int:
        """The number of elements of an array; 0 if it is not stated."""
        length = 1
        for found in map(self._entries.__getitem__, array.inside):
            if found.tag == RANGE:
                count, upper = _number(found, COUNT), _number(found, UPPER)
                last = upper + 1 if upper is not None else 0
                length *= last if count is None else count
        return length

    def _shape(self, kind: TypeRef | None) -> str:
        """The shape of a parameter or a result, as text."""
        stars = ""
        for _ in range(DEEPEST):
            bare = None if kind is None else self._bare(kind)
            one = None if bare is None else self._entries.get(bare)
            if bare is not None and one is None:  # in another section or file
                return f"{UNKNOWN}{stars}"
            if one is None or bare is None or one.tag in OTHER_NAMES:
                return f"void{stars}"
            if one.tag not in POINTERS:
                assert kind is not None
                return f"{self._plain_shape(kind, bare, one)}{stars}"
            stars = stars or " "
            stars += "*"
            kind = self._type_of(bare)
        return f"{UNKNOWN}{stars}"

    def _plain_shape(self, kind: TypeRef, at: TypeRef, one: _Entry) -> str:
        if one.tag == SUBROUTINE:
            return "function"
        name = self._name(at)
        if one.tag in STRUCTURES:
            members = self._by_members(at)
            if name or "{}" in members:  # a declaration without a name stands for a type elsewhere
                return f"struct {name}" if name else UNKNOWN
            return " ".join(
                members.replace("struct", f"struct {self._other_name(kind)}", 1).split()
            )
        bits = _number(one, SIZE) or 0
        real = name in ("float", "double", "long double")
        return f"{'float' if real else 'int'}{8 * bits}"


def _language(one: _Entry) -> int:
    """DW_AT_language of the unit of an entry; 0 if it is not stated."""
    found = one.unit.root.get(LANGUAGE, (0, 0))[1]
    return found if isinstance(found, int) else 0


def _number(one: _Entry, attribute: int) -> int | None:
    found = one.value(attribute)
    return found[1] if found is not None and isinstance(found[1], int) else None


def _reference(one: _Entry, attribute: int) -> TypeRef | None:
    found = one.value(attribute)
    if found is None or not isinstance(found[1], int):
        return None
    return found[1] + (one.unit.start if found[0] in UNIT_REFERENCES else 0)
