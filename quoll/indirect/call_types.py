"""The types of an indirect call, from the types of the pointers that its target is loaded from.

If the target is a member that is loaded through a register, and a variable in that register, or in
the frame, points to such a structure, the member has the type. Else each origin of the target is
followed from a variable, a parameter or a result, whose type the debug information has, through the
members that are loaded. One origin without a known type leaves the call without types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from quoll.image.dwarf_types import DebugTypes, Signature, TypeRef
from quoll.indirect.load_origins import LoadOrigin, LoadRoot

__all__ = ["call_types"]

# constant of the root, offsets of all loads but the first -> variable
Entered = dict[tuple[int, tuple[int | None, ...]], TypeRef]


def call_types(
    types: DebugTypes, function: int, origins: Iterable[LoadOrigin]
) -> Set[Signature] | None:
    """The types that a call in ``function`` may have; None if they are not known."""
    found: set[Signature] = set()
    origins = tuple(origins)
    entered = _entered(types, origins)
    for origin in origins:
        if held := _of_variable(types, function, origin):
            found |= held
            continue
        if origin.root in (LoadRoot.LOADED, LoadRoot.NUMBER) or _is_index(types, function, origin):
            continue  # further along a list, or added to an address, which is another origin
        signatures = _signatures(types, function, origin, entered)
        if not signatures:
            return None
        found |= signatures
    return found or None


def _of_variable(types: DebugTypes, function: int, origin: LoadOrigin) -> set[Signature]:
    """The types of the target, if it is a variable or a member behind one."""
    if origin.offsets[0] != 0:
        return set()
    known = map(types.pointed_function, _words_behind(types, function, origin, 1))
    return {signature for signature in known if signature is not None}


def _words_behind(
    types: DebugTypes, function: int, origin: LoadOrigin, level: int
) -> list[TypeRef]:
    """The types of the word that is loaded at ``level``, if variables lead to it.

    A variable is in a register or in the frame of ``function``, perhaps with further members
    between, at the offsets of the loads.
    """
    words: list[TypeRef] = []
    for at in range(len(origin.bases), level - 1, -1):
        base = origin.bases[at - 1]
        if base.offset is not None:
            framed = types.in_frame(function, base.register, base.offset, base.places[0])
            if framed:
                words = list(framed)
                continue
        held = [kind for addr in base.places for kind in types.held_in(base.register, addr)]
        offset = base.offset if held else origin.offsets[at]
        objects = [to for kind in held or words if (to := types.pointee(kind)) is not None]
        exact = objects if offset is not None else []
        words = [word for to in exact for word in types.words_at(to, offset)]
    return words


def _entered(types: DebugTypes, origins: Iterable[LoadOrigin]) -> Entered:
    """The variables in which pointers are at a known place first.

    A pointer that a loop advances stays in the variable (C11, 6.5.6).
    """
    found: Entered = {}
    for origin in origins:
        last = origin.offsets[-1]
        if origin.root is LoadRoot.CONSTANT and origin.levels and last is not None:
            variable = types.variable(origin.constant + last & 0xFFFFFFFF)
            if variable is not None:
                found[origin.constant, origin.offsets[:-1]] = variable[1]
    return found


def _signatures(
    types: DebugTypes, function: int, origin: LoadOrigin, entered: Entered
) -> set[Signature]:
    """The types of the functions that one origin leads to; empty if they are not known."""
    if origin.root is LoadRoot.CONSTANT and not origin.levels:
        own = types.signature(origin.constant & ~1) if origin.offsets[0] == 0 else None
        return set() if own is None else {own}
    words, exact = _loaded_words(types, function, origin, origin.offsets[1:], entered)
    known = [types.pointed_function(word) for word in words]
    if origin.offsets[0] != 0 or (exact and None in known):
        return set()
    return {signature for signature in known if signature is not None}


def _loaded_words(
    types: DebugTypes,
    function: int,
    origin: LoadOrigin,
    offsets: Sequence[int | None],
    entered: Entered,
) -> tuple[list[TypeRef], bool]:
    """The types of the word behind the loads at ``offsets``, the last one first.

    Whether it is one of exactly these; no types where a word on the way is no pointer.
    """
    words, exact = _root_words(types, function, origin, entered)
    for offset in reversed(offsets if origin.root is LoadRoot.WORD else offsets[:-1]):
        pointees = [to for word in words if (to := types.pointee(word)) is not None]
        if exact and len(pointees) < len(words):
            return [], True
        exact = exact and offset is not None
        words = [inner for to in pointees for inner in types.words_at(to, offset)]
    return words, exact


def _is_index(types: DebugTypes, function: int, origin: LoadOrigin) -> bool:
    """Whether the origin is a number that code adds to an address: the root, or a loaded word."""
    kind = _word_type(types, function, origin)
    if bool(origin.levels) and kind is not None and types.is_number(kind):
        return True
    for level in range(2, origin.levels + 1):
        if origin.offsets[level - 1] is not None:
            continue
        words = _words_behind(types, function, origin, level)
        if not words:
            words, _ = _loaded_words(types, function, origin, origin.offsets[level:], {})
        if words and all(map(types.is_number, words)):
            return True
    return False


def _word_type(types: DebugTypes, function: int, origin: LoadOrigin) -> TypeRef | None:
    """The type of a parameter or a result at the root; None if it is unknown, or neither."""
    if origin.callee is not None:
        return types.result(origin.callee)
    return None if origin.register is None else types.parameter(function, origin.register)


def _root_words(
    types: DebugTypes, function: int, origin: LoadOrigin, entered: Entered
) -> tuple[list[TypeRef], bool]:
    """The types of the word at the root; whether its place is known exactly."""
    if origin.root is LoadRoot.WORD:
        kind = _word_type(types, function, origin)
        return ([] if kind is None else [kind]), True
    if origin.root is not LoadRoot.CONSTANT or not origin.levels:
        return [], True
    last = origin.offsets[-1]
    advanced = entered.get((origin.constant, origin.offsets[:-1]))
    if last is None and advanced is not None:
        return list(types.words_at(advanced, None)), False
    if last is None:  # a neighbour too, as compilers fold indices into addresses
        addr = origin.constant + origin.shift & 0xFFFFFFFF
        near = types.variables_near(addr) if types.variable(addr) else ()
        return [word for _, kind in near for word in types.words_at(kind, None)], False
    addr = origin.constant + last & 0xFFFFFFFF
    variable = types.variable(addr)
    if variable is None:
        return [], True
    start, kind = variable
    return list(types.words_at(kind, addr - start)), True
