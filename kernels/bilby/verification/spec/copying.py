# SPDX-License-Identifier: BSD-2-Clause
"""A copy of the abstract state: two orders of events go on from one state without each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, cast

from kernels.bilby.verification.spec.state import Cap, Kernel, Slot

AS_IT_IS = (int, str, bytes, Enum, type(None), FunctionType, MethodType, BuiltinMethodType)


def copy_of(kernel: Kernel, read: Callable[[int], int]) -> Kernel:
    """The same state, of which nothing is shared; it reads memory in its own way."""
    copier = _Copier()
    made = copier.value(kernel)
    copier.finish()
    assert isinstance(made, Kernel)
    made.read = read
    return made


class _Copier:
    """Copies with a work list, because chains of slots exceed Python's recursion limit."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._left: list[tuple[Any, Any]] = []

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is int or value is None or isinstance(value, AS_IT_IS):
            return value
        if kind is dict:
            if all(type(item) is int for item in value.values()):
                return value.copy()
            if all(type(item) is Slot for item in value.values()):
                return {key: self._slot(item) for key, item in value.items()}
            return {key: self.value(item) for key, item in value.items()}
        if kind in (list, set, tuple):
            return kind(map(self.value, value))
        if kind is Counter:
            return value.copy()
        made = self._made.get(id(value))
        if made is None:
            made = self._made[id(value)] = object.__new__(kind)
            self._left.append((value, made))
        return made

    def finish(self) -> None:
        while self._left:
            value, made = self._left.pop()
            if type(value) is Slot:
                self._finish_slot(value, made)
                continue
            for name in getattr(value, "__slots__", None) or vars(value):
                item = getattr(value, name)
                setattr(made, name, item if item is None or type(item) is int else self.value(item))

    def _finish_slot(self, slot: Slot, made: Slot) -> None:
        """Most of the state is slots. A capability stands in one slot only."""
        cap = slot.cap
        made.address, made.index, made.revocable = slot.address, slot.index, slot.revocable
        made.cap = None if cap is None else Cap(cap.kind, cap.fields.copy())
        made.prev, made.next = self._slot(slot.prev), self._slot(slot.next)
        made.parent = self._slot(slot.parent)
        made.node = None if slot.node is None else self.value(slot.node)
        made.buffer_of = None if slot.buffer_of is None else self.value(slot.buffer_of)

    def _slot(self, slot: Slot | None) -> Slot | None:
        if slot is None:
            return None
        made = self._made.get(id(slot))
        if made is None:
            made = self._made[id(slot)] = object.__new__(Slot)
            self._left.append((slot, made))
        return cast("Slot", made)
