"""The address-taken functions of a program: possible targets of any call through a pointer.

An address stands in the image, in a table or elsewhere, or code makes it: by a pair of movw and
movt, or as a sum with pc. Addresses computed otherwise, or from outside of the image, are unknown.
The functions of vtables are separate: only virtual calls load them.
"""

from __future__ import annotations

from functools import cached_property

from quoll.arm.wide_constants import relative_addresses, wide_constants
from quoll.image.function_tables import FunctionTables, function_tables
from quoll.image.image import Image

__all__ = ["ANY_TAKEN", "AddressTaken"]

ANY_TAKEN = "any address-taken function"  # as a fact writes it


class AddressTaken:
    """Those of one image; bit 0 is set of Thumb functions."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @cached_property
    def tables(self) -> FunctionTables:
        """Where addresses stand."""
        return function_tables(self._image)

    @cached_property
    def by_code(self) -> tuple[int, ...]:
        """Those that stand outside of all tables, or that code makes."""
        image, made = self._image, dict.fromkeys(self.tables.taken)
        for segment in image.segments:
            if not segment.executable:
                continue
            skipped = -segment.addr % 4
            code, start = segment.data[skipped:], segment.addr + skipped
            made |= dict.fromkeys(word for word in wide_constants(code) if image.is_function(word))
            for word in relative_addresses(code, start):
                for function in (word, word | 1):
                    if image.is_function(function):
                        made.setdefault(function)
        return tuple(made)

    @property
    def functions(self) -> tuple[int, ...]:
        """All of them."""
        in_tables = (word for _, words in self.tables.tables for word in words)
        return tuple(dict.fromkeys((*in_tables, *self.by_code)))
