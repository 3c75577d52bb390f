"""Methods that a call loads from vtables of traits whose addresses its function keeps in its frame.

rustc stores both words of ``&dyn Trait`` there, as for an array of them. If every word stored at
the place, for an array at its first element, is the address of a trait's vtable with a function in
the slot, the call is a virtual one: elements of an array have one type. No store may keep an
address inside of such a vtable, as its slots would be others.
"""

from __future__ import annotations

from quoll.arm.insn import SP
from quoll.cfg.cfg import Cfg
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from quoll.indirect.load_origins import LoadOrigin, LoadRoot, entering, register_origins
from quoll.indirect.spilled_words import SpilledWord, SpilledWords

__all__ = ["method_slot"]


def method_slot(image: Image, vtables: Vtables, cfg: Cfg, origin: LoadOrigin) -> int | None:
    """The offset of the method in the vtable; None if it is not known to be one."""
    if origin.root is not LoadRoot.STACK or origin.levels != 2 or origin.offsets[0] != 0:
        return None
    slot = origin.offsets[1]
    if slot is None:
        return None
    spills = SpilledWords(cfg)
    stores = spills.at(SP, origin.shift, origin.bases[-1].places[0])
    words = [_constants(image, cfg, store) for store in stores]
    methods = (bool(found) and all(vtables.has_method(w, slot) for w in found) for found in words)
    if not words or not all(methods):
        return None
    stored = (word for store in spills.stores for word in _constants(image, cfg, store))
    return None if any(map(vtables.is_inside_trait, stored)) else slot


def _constants(image: Image, cfg: Cfg, store: SpilledWord) -> frozenset[int]:
    """The stored word, if all of its origins are constants; else nothing."""
    into = entering(cfg)
    found = register_origins(cfg, into, store.block, store.position, store.register, image)
    if not found or any(o.root is not LoadRoot.CONSTANT or o.levels for o in found):
        return frozenset()
    return frozenset(o.constant + (o.offsets[0] or 0) & 0xFFFFFFFF for o in found)
