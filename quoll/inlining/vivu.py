"""The parameters of virtual inlining that distinguish contexts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "VivuSettings"]


@dataclass(frozen=True, slots=True)
class VivuSettings:
    """Contexts by all call sites and, with ``unroll``, by first and later iterations of loops."""

    unroll: bool = False


FULL = VivuSettings()
