"""The parameters of virtual inlining that distinguish contexts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "VivuSettings"]


@dataclass(frozen=True, slots=True)
class VivuSettings:
    """All call sites and, with ``unroll``, in each loop whether it is the first iteration."""

    unroll: bool = False


FULL = VivuSettings()
