"""The types of an indirect call, from the types of the pointers that its target is loaded from.

If the target is a member that is loaded through a register, and a variable in that register, or in
the frame, points to such a structure, the member has the type. Else each origin of the target is
followed from a variable, a parameter or a result, whose type the debug information has, through the
members that are loaded. A place in the frame without a name has the types of the words that are
stored there. One origin without a known type leaves the call without types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property

from quoll.arm.insn import AccessKind, Insn
from quoll.cfg.cfg import Cfg
from quoll.image.dwarf_types import Signature, TypeRef
from quoll.image.image import Image
from quoll.indirect.load_origins import (
    LoadBase,
    LoadOrigin,
    LoadRoot,
    entering,
    register_origins,
)
from quoll.indirect.spilled_words import SpilledWord, SpilledWords

__all__ = ["call_types"]

WORD = 4  # bytes
STORES = 100  # to places without a name that are followed for one call

# constant of the root, offsets of all loads but the first -> variable
Entered = dict[tuple[int, tuple[int | None, ...]], TypeRef]


def call_types(image: Image, cfg: Cfg, origins: Iterable[LoadOrigin]) -> Set[Signature] | None:
    """The types that a call in the function ``cfg`` may have; None if they are not known."""
    return _CallTypes(image, cfg).of_call(tuple(origins))


class _CallTypes:
    """The types of words in one function."""

    def __init__(self, image: Image, cfg: Cfg) -> None:
        self._image, self._cfg, self._types = image, cfg, image.types
        self._followed: set[SpilledWord] = set()
        self._left = STORES

    def of_call(self, origins: tuple[LoadOrigin, ...]) -> Set[Signature] | None:
        """As ``call_types``."""
        found: set[Signature] = set()
        entered = self._entered(origins)
        for origin in origins:
            if held := self._of_variable(origin):
                found |= held
                continue
            if origin.root in (LoadRoot.LOADED, LoadRoot.NUMBER) or self._is_index(origin):
                continue  # further along a list, or added to an address, which is another origin
            signatures = self._signatures(origin, entered)
            if not signatures:
                return None
            found |= signatures
        return found or None

    def _of_variable(self, origin: LoadOrigin) -> set[Signature]:
        """The types of the target, if it is a variable or a member behind one."""
        if origin.offsets[0] != 0:
            return set()
        known = map(self._types.pointed_function, self._words_behind(origin, 1))
        return {signature for signature in known if signature is not None}

    def _words_behind(self, origin: LoadOrigin, level: int) -> list[TypeRef]:
        """The types of the word that is loaded at ``level``, if variables lead to it.

        A variable is in a register or in the frame of the function, perhaps with further members
        between, at the offsets of the loads.
        """
        words: list[TypeRef] = []
        for at in range(len(origin.bases), level - 1, -1):
            base = origin.bases[at - 1]
            if base.offset is not None:
                framed = self._in_frame(base.register, base.offset, base.places[0])
                framed = framed or self._spilled(base)
                if framed:
                    words = framed
                    continue
            held = [
                kind for addr in base.places for kind in self._types.held_in(base.register, addr)
            ]
            offset = base.offset if held else origin.offsets[at]
            objects = [
                to for kind in held or words if (to := self._types.pointee(kind)) is not None
            ]
            exact = objects if offset is not None else []
            words = [word for to in exact for word in self._types.words_at(to, offset)]
        return words

    @cached_property
    def _spills(self) -> SpilledWords:
        return SpilledWords(self._cfg)

    def _in_frame(self, register: int, offset: int, addr: int) -> list[TypeRef]:
        """The types of the word of a named variable in the frame."""
        return list(self._types.in_frame(self._cfg.entry, register, offset, addr))

    def _spilled(self, base: LoadBase) -> list[TypeRef]:
        """The types of all words that are stored at a place of the frame; none if one is unknown.

        A word that a pending search follows already adds no type.
        """
        words: list[TypeRef] = []
        assert base.offset is not None
        for store in self._spills.at(base.register, base.offset, base.places[0]):
            if store in self._followed:
                continue
            if not self._left:
                return []
            self._left -= 1
            self._followed.add(store)
            kinds = self._stored(store)
            self._followed.remove(store)
            if not all(map(self._is_known, kinds)) or not kinds:
                return []
            words += kinds
        return words

    def _is_known(self, kind: TypeRef) -> bool:
        """Whether it is a number, or a pointer to something other than void."""
        return self._types.is_number(kind) or self._types.pointee(kind) is not None

    def _stored(self, store: SpilledWord) -> list[TypeRef]:
        """The types of a word where it is stored; none if they are not known."""
        for insn in self._unchanged(store):
            memory = insn.memory
            if memory is not None and insn.transfers == (store.register,) and memory.size == WORD:
                plain = memory.access is AccessKind.STORE and memory.index is None
                if plain and memory.base is not None:
                    named = self._in_frame(memory.base, memory.displacement, insn.addr)
                    if named:
                        return named
        held = self._types.held_in(store.register, store.addr)
        return list(held) or self._of_register(store)

    def _unchanged(self, store: SpilledWord) -> Iterator[Insn]:
        """The instructions of the block at which the register holds the stored word."""
        insns = store.block.insns
        for insn in reversed(insns[: store.position]):
            if store.register in insn.writes:
                break
            yield insn
        for insn in insns[store.position :]:
            yield insn
            if store.register in insn.writes:
                break

    def _of_register(self, store: SpilledWord) -> list[TypeRef]:
        """The types by the origins of the stored register."""
        into = entering(self._cfg)
        found = register_origins(
            self._cfg, into, store.block, store.position, store.register, self._image
        )
        words: list[TypeRef] = []
        for origin in found or ():
            kinds: list[TypeRef] = []
            if origin.offsets[0] == 0 and not origin.levels:
                kind = self._word_type(origin)
                kinds = [] if kind is None else [kind]
            elif origin.offsets[0] == 0:
                kinds = self._words_behind(origin, 1)
            if not kinds and origin.offsets[0] == 0 and origin.levels:
                loaded, exact = self._loaded_words(origin, origin.offsets[1:], {})
                kinds = loaded if exact else []
            if not kinds:
                return []
            words += kinds
        return words

    def _entered(self, origins: Iterable[LoadOrigin]) -> Entered:
        """The variables in which pointers are at a known place first.

        A pointer that a loop advances stays in the variable (C11, 6.5.6).
        """
        found: Entered = {}
        for origin in origins:
            last = origin.offsets[-1]
            if origin.root is LoadRoot.CONSTANT and origin.levels and last is not None:
                variable = self._types.variable(origin.constant + last & 0xFFFFFFFF)
                if variable is not None:
                    found[origin.constant, origin.offsets[:-1]] = variable[1]
        return found

    def _signatures(self, origin: LoadOrigin, entered: Entered) -> set[Signature]:
        """The types of the functions that one origin leads to; empty if they are not known."""
        if origin.root is LoadRoot.CONSTANT and not origin.levels:
            own = self._types.signature(origin.constant & ~1) if origin.offsets[0] == 0 else None
            return set() if own is None else {own}
        words, exact = self._loaded_words(origin, origin.offsets[1:], entered)
        known = [self._types.pointed_function(word) for word in words]
        if origin.offsets[0] != 0 or (exact and None in known):
            return set()
        return {signature for signature in known if signature is not None}

    def _loaded_words(
        self,
        origin: LoadOrigin,
        offsets: Sequence[int | None],
        entered: Entered,
    ) -> tuple[list[TypeRef], bool]:
        """The types of the word behind the loads at ``offsets``, the last one first.

        Whether it is one of exactly these; no types where a word on the way is no pointer.
        """
        words, exact = self._root_words(origin, entered)
        for offset in reversed(offsets if origin.root is LoadRoot.WORD else offsets[:-1]):
            pointees = [to for word in words if (to := self._types.pointee(word)) is not None]
            if exact and len(pointees) < len(words):
                return [], True
            exact = exact and offset is not None
            words = [inner for to in pointees for inner in self._types.words_at(to, offset)]
        return words, exact

    def _is_index(self, origin: LoadOrigin) -> bool:
        """Whether the origin, or a loaded word, is a number that code adds to an address."""
        kind = self._word_type(origin)
        if bool(origin.levels) and kind is not None and self._types.is_number(kind):
            return True
        for level in range(2, origin.levels + 1):
            if origin.offsets[level - 1] is not None:
                continue
            words = self._words_behind(origin, level)
            if not words:
                words, _ = self._loaded_words(origin, origin.offsets[level:], {})
            if words and all(map(self._types.is_number, words)):
                return True
        return False

    def _word_type(self, origin: LoadOrigin) -> TypeRef | None:
        """The type of a parameter or a result at the root; None if it is unknown, or neither."""
        if origin.callee is not None:
            return self._types.result_word(origin.callee)
        return (
            None
            if origin.register is None
            else self._types.parameter(self._cfg.entry, origin.register)
        )

    def _root_words(self, origin: LoadOrigin, entered: Entered) -> tuple[list[TypeRef], bool]:
        """The types of the word at the root; whether its place is known exactly."""
        if origin.root is LoadRoot.WORD:
            kind = self._word_type(origin)
            return ([] if kind is None else [kind]), True
        if origin.root is not LoadRoot.CONSTANT or not origin.levels:
            return [], True
        last = origin.offsets[-1]
        advanced = entered.get((origin.constant, origin.offsets[:-1]))
        if last is None and advanced is not None:
            return list(self._types.words_at(advanced, None)), False
        if last is None:  # a neighbour too, as compilers fold indices into addresses
            addr = origin.constant + origin.shift & 0xFFFFFFFF
            near = self._types.variables_near(addr) if self._types.variable(addr) else ()
            return [word for _, kind in near for word in self._types.words_at(kind, None)], False
        addr = origin.constant + last & 0xFFFFFFFF
        variable = self._types.variable(addr)
        if variable is None:
            return [], True
        start, kind = variable
        return list(self._types.words_at(kind, addr - start)), True
