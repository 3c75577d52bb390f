"""What tells contexts apart in virtual inlining."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "Vivu"]


@dataclass(frozen=True, slots=True)
class Vivu:
    """Of call strings the last ``call_string`` sites, or all if None.

    ``unroll``: and in each loop whether it is the first iteration.
    """

    call_string: int | None = None
    unroll: bool = False


FULL = Vivu()
