"""Serialisation of values as text, for the results store.

Only these are written: None, bool, int, float, str, bytes, tuples, frozensets, mappings, and
instances of the frozen dataclasses, named tuples and enumerations of this project. Reading creates
nothing else and runs only their constructors, so that a text from anywhere can at worst be refused
(a pickle could run any code). An object with several references is written once and is one object
again.

The text is a JSON list of items, each after the items that it refers to; the last one is the
value. Within an item ``[k]`` stands for item k, and ``[k, i]`` for member i of item k, a tuple.

    ["t", ...]  tuple        ["s", ...]  frozenset, sorted      ["m", key, value, ...]  mapping
    ["b", hex]  bytes        ["e", class, value]  enumeration   ["d", class, field, ...]  dataclass,
                                                                                       named tuple
    ["T", ...], ["D", class, field, ...]  as "t" and "d", without references to other items
    ["N", [...], ...]  tuple of tuples without references
    ["c", class, [field, ...], ...]  tuple of instances of one class: each field of all of them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import chain, starmap
from typing import Any

__all__ = ["CorruptRecord", "from_text", "to_text"]

PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
SCALARS = frozenset({type(None), bool, int, float, str})
PLAIN = {"t": "T", "d": "D"}
FEW = 4  # most instances that are written one by one


class CorruptRecord(ValueError):
    """A text that ``to_text`` of this version has not written."""


def to_text(value: object) -> str:
    """``value`` as text; raises TypeError for an unsupported type."""
    writer = _Serializer()
    last = writer.add(value)
    return json.dumps([*writer.items, ["t", last]], separators=(",", ":"))


class _Serializer:
    """Collects items; ``_numbers`` keeps every value alive, so that its id stays unique."""

    def __init__(self) -> None:
        self.items: list[list[Any]] = []
        self._numbers: dict[int, tuple[object, list[int]]] = {}
        self._fields: dict[type, tuple[str, ...] | None] = {}

    def add(self, value: object) -> Any:
        """A scalar, or the reference to an item."""
        if type(value) in SCALARS:
            return value
        known = self._numbers.get(id(value))
        if known is None:
            written = self._written(value)
            if written[0] in PLAIN and list not in map(type, written):
                written[0] = PLAIN[written[0]]
            number = len(self.items)
            self.items.append(written)
            known = self._numbers[id(value)] = value, [number]
            if written[0] == "c":
                assert isinstance(value, tuple)
                self._numbers |= {id(v): (v, [number, i]) for i, v in enumerate(value)}
        return known[1]

    def _all(self, values: Iterable[object]) -> list[Any]:
        """As ``add``, for several values: most are scalars, or known."""
        known, found = self._numbers, list[Any]()
        for v in values:
            if type(v) in SCALARS:
                found.append(v)
            else:
                found.append(known[id(v)][1] if id(v) in known else self.add(v))
        return found

    def _written(self, value: object) -> list[Any]:
        kind = type(value)
        if kind is tuple:
            assert isinstance(value, tuple)
            return self._tuple(value)
        if isinstance(value, Enum):
            return ["e", _name(kind), value.value]
        if (names := self._fields_of(kind)) is not None:
            return ["d", _name(kind), *self._all([getattr(value, name) for name in names])]
        if isinstance(value, frozenset):
            return ["s", *sorted(self._all(value), key=json.dumps)]
        if isinstance(value, Mapping):
            return ["m", *self._all(chain.from_iterable(value.items()))]
        if isinstance(value, bytes):
            return ["b", value.hex()]
        raise TypeError(f"a {kind.__name__} cannot be stored")

    def _tuple(self, value: tuple[object, ...]) -> list[Any]:
        kinds = set(map(type, value))
        if kinds <= SCALARS:  # most are
            return ["T", *value]
        if kinds == {tuple} and all(map(_is_plain, value)):
            return ["N", *value]
        (kind,) = kinds if len(kinds) == 1 and len(value) > FEW else {tuple}
        names = self._fields_of(kind)
        if not names or not self._are_new(value):
            return ["t", *self._all(value)]
        columns = [self._all([getattr(v, name) for v in value]) for name in names]
        if not self._are_new(value):  # one refers to another
            return ["t", *self._all(value)]
        return ["c", _name(kind), *columns]

    def _are_new(self, values: tuple[object, ...]) -> bool:
        """Whether all are different objects, and none is written yet."""
        found = set(map(id, values))
        return len(found) == len(values) and self._numbers.keys().isdisjoint(found)

    def _fields_of(self, kind: type) -> tuple[str, ...] | None:
        """The fields of a dataclass or named tuple; None for others."""
        if kind not in self._fields:
            found = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
            if is_dataclass(kind):
                found = tuple(field.name for field in fields(kind))
            self._fields[kind] = found
        return self._fields[kind]


def _is_plain(value: object) -> bool:
    """Whether this is a tuple without references to items."""
    return isinstance(value, tuple) and SCALARS.issuperset(map(type, value))


def from_text(text: str) -> Any:
    """The value of a text; raises CorruptRecord."""
    try:
        values: list[Any] = []
        for item in json.loads(text):
            kind = item[0]
            if kind in ("T", "D"):
                hash(plain := tuple(item[1:]))  # refuses a list, which is a reference
                values.append(plain if kind == "T" else _class(plain[0])(*plain[1:]))
                continue
            if kind == "N":
                hash(nested := tuple(map(tuple, item[1:])))
                values.append(nested)
                continue
            if kind == "c":
                columns = ([_referred(values, a) for a in column] for column in item[2:])
                values.append(tuple(starmap(_class(item[1]), zip(*columns, strict=True))))
                continue
            arguments = [_referred(values, a) for a in item]
            if kind == "t":
                values.append(tuple(arguments[1:]))
            elif kind == "d":
                values.append(_class(item[1])(*arguments[2:]))
            else:
                values.append(_MAKERS[kind](arguments[1:]))
        (value,) = values[-1]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as fault:
        raise CorruptRecord(str(fault)) from fault
    return value


def _referred(values: list[Any], argument: Any) -> Any:
    """A scalar unchanged; the value of a reference."""
    if type(argument) is not list:
        return argument
    index, *member = argument
    if not member:
        return values[index]
    (number,) = member
    if type(values[index]) is not tuple:
        raise CorruptRecord(f"part {index} has no members")
    return values[index][number]


def _name(kind: type) -> str:
    if kind.__module__.partition(".")[0] not in PACKAGES:
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored")
    return f"{kind.__module__}:{kind.__qualname__}"


@cache
def _class(name: str) -> Any:
    """A dataclass, named tuple or enumeration of this project; raises CorruptRecord for others."""
    module_name, _, qualname = name.partition(":")
    if module_name.partition(".")[0] not in PACKAGES:
        raise CorruptRecord(f"{name} is not of this project")
    try:
        found = getattr(import_module(module_name), qualname)
    except ImportError as fault:
        raise CorruptRecord(str(fault)) from fault
    if not isinstance(found, type) or not (is_dataclass(found) or issubclass(found, (Enum, tuple))):
        raise CorruptRecord(f"{name} is no dataclass, named tuple or enumeration")
    return found


def _mapping(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "s": frozenset,
    "m": _mapping,
    "b": lambda a: bytes.fromhex(a[0]),
    "e": lambda a: _class(a[0])(a[1]),
}
