"""The objects of their own of an image: words to which no pointer of the program leads.

    own_objects(image)       names: {(0xF0023D00, 0xF0023D03): "woken"}

Such an object is a symbol of 1, 2 or 4 bytes in a writable section. No word of the image holds its
address, and all code uses it only to load from the object and to store to it (``address_flow``). So
C cannot point to it. An array is never such an object: code may compute the address of its elements
from a number outside of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from quoll.image.image import Image
from quoll.image.memory_map import MemoryMap, Span
from quoll.own_objects.address_flow import AddressFlow
from quoll.own_objects.data_symbols import DataSymbols
from quoll.own_objects.numbers import ElementKind
from quoll.own_objects.whole_code import WholeCode, whole_code

__all__ = ["OwnObjects", "own_objects", "with_own_objects"]

WORD = 4
LARGEST = 1 << 18  # bytes of code that are followed
CACHED = 4  # images


@dataclass(frozen=True, slots=True)
class OwnObjects:
    """``names``: of the objects, by first and last byte; ``stores``: address by instruction.

    Only these instructions store to the objects, each at the one address.
    """

    names: Mapping[Span, str]
    stores: Mapping[int, int]


NO_OBJECTS = OwnObjects({}, {})


def with_own_objects(image: Image) -> Image:
    """``image``, assuming S8; itself if it has no such objects."""
    objects = own_objects(image)
    return image.owning(objects.names, objects.stores) if objects.names else image


def own_objects(image: Image) -> OwnObjects:
    """The objects; none where nothing tells the code of the image from its data."""
    return _found(_Request(image.sha256, image.memory, image))


@dataclass(frozen=True)
class _Request:
    """The content decides: two images of one file and map have the same objects."""

    sha256: str
    memory: MemoryMap
    image: Image = field(compare=False)


@lru_cache(maxsize=CACHED)
def _found(request: _Request) -> OwnObjects:
    image = request.image
    if sum(s.size for s in image.sections if s.executable) > LARGEST:
        return NO_OBJECTS
    code, symbols = whole_code(image), DataSymbols(image)
    if code is None or image.is_relocatable or not symbols.words:
        return NO_OBJECTS
    flow = AddressFlow(image, code, symbols)
    flow.follow()
    for word in _stored_words(image, code, flow):
        if symbols.lowest <= word <= symbols.highest or len(image.memory.names(word, 1)) > 1:
            symbols.take(word, word)
    names = {span: name for span, name in symbols.words.items() if span[0] not in symbols.taken}
    places = {
        insn: one.value
        for insn, (one, *more) in flow.stores.items()
        if not more and one.kind is ElementKind.NUMBER
    }
    firsts = dict(names.keys())
    stores = {insn: at for insn, at in places.items() if symbols.around(at) in firsts}
    return OwnObjects(names, stores)


def _stored_words(image: Image, code: WholeCode, flow: AddressFlow) -> Iterator[int]:
    """Every word of the image at any byte, without code and literals that only loads read."""
    for section in image.sections:
        if section.stored and not section.executable and section.size:
            yield from _words(image.read(section.addr, section.size) or b"")
    for low, high in code.data:
        first = min((t for t in flow.tables if low <= t <= high), default=high + 1)
        content = bytearray(image.read(low, high + 1 - low) or b"")
        for literal in flow.literals:
            if low <= literal < first and literal + WORD <= high + 1:
                content[literal - low : literal - low + WORD] = bytes(WORD)
        yield from _words(bytes(content))


def _words(content: bytes) -> Iterator[int]:
    for skipped in range(WORD):
        chunk = content[skipped:]
        yield from array("I", chunk[: len(chunk) // WORD * WORD])
