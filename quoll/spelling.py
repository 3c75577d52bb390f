"""Suggestions for an unknown word: known words that are spelt alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["did_you_mean", "nearest", "suggestion"]

LONGEST = 200  # characters: the time grows with the square


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """At most ``most`` of the ``known`` words that are written alike, the nearest first."""
    from difflib import get_close_matches  # no run without an error needs it

    return get_close_matches(word, list(known), most) if len(word) <= LONGEST else []


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """ "did you mean a, b or c?" where something ``known`` is written alike, else nothing."""
    return suggestion(nearest(word, known, most))


def suggestion(words: Sequence[str]) -> str:
    """ "did you mean a, b or c?"; nothing for no words."""
    if not words:
        return ""
    *others, last = words
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
