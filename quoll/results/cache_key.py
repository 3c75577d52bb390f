"""Content hashes of values: the only source of cache keys (rules 30 and 31).

    key_of("entry", options, platform, facts, left_out=LEFT_OUT)

The hash covers every field of every dataclass and named tuple down to its scalars, with the name of
its class, so that a new field is in the key automatically. An unknown type is a TypeError, a defect
of this program. The caller's mapping names the fields that are left out of the key, each with a
reason.

Values that are equal field by field have one digest in every process. Mappings and sequences are
ordered, sets are not. A value that occurs often is hashed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TypeAlias

__all__ = ["LeftOut", "key_of"]

LeftOut: TypeAlias = Mapping[str, Mapping[str, str]]  # class -> field -> why it is not in the key


def key_of(query: str, *inputs: object, left_out: LeftOut | None = None) -> str:
    """A name for ``query`` about ``inputs``: equal names mean equal queries and inputs."""
    return _ContentHasher(left_out or {}).digest((query, *inputs))[1:].hex()


class _ContentHasher:
    """``_digests`` keeps every value alive, so that its id stays unique."""

    def __init__(self, left_out: LeftOut) -> None:
        self._left_out = left_out
        self._digests: dict[int, tuple[object, bytes]] = {}
        self._fields: dict[type, tuple[bytes, tuple[str, ...]] | None] = {}

    def digest(self, value: object) -> bytes:
        """A unique text per value: short ones unchanged, others as a hash."""
        kind = type(value)
        if value is None or kind is bool or kind is int or kind is float:
            return b"v" + repr(value).encode()
        if kind is str:
            assert isinstance(value, str)
            return b"s" + value.encode("utf-8", "surrogatepass")
        if kind is bytes:
            assert isinstance(value, bytes)
            return b"b" + value
        known = self._digests.get(id(value))
        if known is None:
            known = self._digests[id(value)] = value, self._whole(value)
        return known[1]

    def _whole(self, value: object) -> bytes:
        kind = type(value)
        if kind in (tuple, list):
            assert isinstance(value, (tuple, list))
            return _hash(b"t", map(self.digest, value))
        if kind not in self._fields:
            self._fields[kind] = self._fields_of(kind)
        named = self._fields[kind]
        if named is not None:
            name, names = named
            return _hash(name, [self.digest(getattr(value, field)) for field in names])
        if isinstance(value, Enum):
            return _hash(b"e" + _name(kind), [self.digest(value.name)])
        if isinstance(value, (frozenset, set)):
            return _hash(b"u", sorted(map(self.digest, value)))
        if isinstance(value, Mapping):
            return _hash(b"m", (self.digest(x) for item in value.items() for x in item))
        if isinstance(value, range):
            return _hash(b"r", map(self.digest, (value.start, value.stop, value.step)))
        raise TypeError(
            f"a {kind.__module__}.{kind.__qualname__} has no content hash: no value that contains "
            "it can be stored"
        )

    def _fields_of(self, kind: type) -> tuple[bytes, tuple[str, ...]] | None:
        """The name of a dataclass or named tuple, and the names of its hashed fields; else None."""
        if is_dataclass(kind):
            names = tuple(field.name for field in fields(kind))
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            names = tuple(kind._fields)
        else:
            return None
        less = self._left_out.get(_name(kind).decode(), {})
        unknown = less.keys() - set(names)
        if unknown:
            raise TypeError(f"{kind.__qualname__} has no field {', '.join(sorted(unknown))}")
        return b"d" + _name(kind), tuple(name for name in names if name not in less)


def _name(kind: type) -> bytes:
    return f"{kind.__module__}.{kind.__qualname__}".encode()


def _hash(kind: bytes, items: Iterable[bytes]) -> bytes:
    """The hash of length-prefixed items; it differs in its first byte from every short text."""
    framed = [kind, *items]
    text = b"".join(len(item).to_bytes(8, "big") + item for item in framed)
    return b"#" + hashlib.sha256(text).digest()
