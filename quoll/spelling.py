"""Suggestions for an unknown word: known words with similar spelling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["did_you_mean", "nearest", "suggestion"]

LONGEST = 200  # characters: the time grows with the square


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """At most ``most`` of the ``known`` words with similar spelling, the nearest first."""
    from difflib import get_close_matches  # only a run with an error needs it

    return get_close_matches(word, list(known), most) if len(word) <= LONGEST else []


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """ "did you mean a, b or c?" for similar ``known`` words; empty without one."""
    return suggestion(nearest(word, known, most))


def suggestion(words: Sequence[str]) -> str:
    """ "did you mean a, b or c?"; empty for no words."""
    if not words:
        return ""
    *others, last = words
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
