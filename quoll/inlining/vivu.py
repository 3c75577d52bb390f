"""What tells contexts apart in virtual inlining."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "Vivu"]


@dataclass(frozen=True, slots=True)
class Vivu:
    """All call sites and, with ``unroll``, in each loop whether it is the first iteration."""

    unroll: bool = False


FULL = Vivu()
