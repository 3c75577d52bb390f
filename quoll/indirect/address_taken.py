"""The address-taken functions of a program: possible targets of any call through a pointer.

An address is stored in the image, in a table or elsewhere, or computed by code: by a pair of movw
and movt, or as a sum with pc. Addresses computed otherwise, or outside of the image, are unknown.
The functions of vtables are separate: only virtual calls load them.
"""

from __future__ import annotations

from functools import cached_property

from quoll.arm.exception_table import SIZE, WORD, ExceptionTable, exception_tables
from quoll.arm.veneers import veneer_literals
from quoll.arm.wide_constants import relative_addresses, wide_constants
from quoll.image.function_tables import FunctionTables, function_tables
from quoll.image.image import Image

__all__ = ["ANY_TAKEN", "AddressTaken"]

ANY_TAKEN = "any address-taken function"  # in a fact


class AddressTaken:
    """The address-taken functions of one image; Thumb functions have bit 0 set."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @cached_property
    def tables(self) -> FunctionTables:
        """The tables that hold addresses of functions."""
        return function_tables(self._image)

    @cached_property
    def by_code(self) -> tuple[int, ...]:
        """The functions whose addresses are stored outside of all tables, or computed by code."""
        return self._outside(self.tables)

    @cached_property
    def callbacks(self) -> tuple[int, ...]:
        """``by_code`` without functions of which only vectors and veneers load the address."""
        vectors = [table.literals for table in self._exceptions]
        literals = veneer_literals(self._image).union(*vectors)
        if not literals:
            return self.by_code
        return self._outside(function_tables(self._image, literals))

    @cached_property
    def vectors(self) -> frozenset[int]:
        """The addresses of the exception vectors, which numbers of other meanings may equal."""
        return frozenset(at for t in self._exceptions for at in range(t.addr, t.addr + SIZE, WORD))

    @cached_property
    def _exceptions(self) -> tuple[ExceptionTable, ...]:
        return exception_tables(self._image)

    def _outside(self, tables: FunctionTables) -> tuple[int, ...]:
        image, made = self._image, dict.fromkeys(tables.taken)
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
        """All address-taken functions."""
        in_tables = (word for _, words in self.tables.tables for word in words)
        return tuple(dict.fromkeys((*in_tables, *self.by_code)))
