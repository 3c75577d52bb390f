"""Data addresses of the value analysis, with fewer for some instructions from another analysis."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Protocol

from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress

__all__ = ["AddressValues", "NarrowedAddresses"]


class AddressValues(Protocol):
    """The results of the value analysis about data addresses."""

    def access(self, node: int, insn: int) -> ValueSet | None: ...

    def origin(self, node: int, insn: int) -> SymbolicAddress | None: ...

    def aliases(self, edge: int) -> Mapping[int, int]: ...

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None: ...


class NarrowedAddresses:
    """The addresses of ``values``, and of ``narrower`` where these are fewer.

    ``narrower``: addresses of the first byte, by node and position of the instruction. Both cover
    all executions. Implements ``cache.data_cache.DataAddresses``.
    """

    def __init__(self, values: AddressValues, narrower: Mapping[tuple[int, int], ValueSet]) -> None:
        self._values, self._narrower = values, narrower

    def access(self, node: int, insn: int) -> ValueSet | None:
        """As ``ValueResults.access``."""
        found, known = self._narrower.get((node, insn)), self._values.access(node, insn)
        if found is None or (known and known.high - known.low < found.high - found.low):
            return known
        return found

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        """As ``ValueResults.origin``."""
        return self._values.origin(node, insn)

    def aliases(self, edge: int) -> Mapping[int, int]:
        """As ``ValueResults.aliases``."""
        return self._values.aliases(edge)

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None:
        """As ``ValueResults.stride``."""
        return self._values.stride(node, insn, inside)
