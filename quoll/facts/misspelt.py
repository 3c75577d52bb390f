"""Suggestions for a line that is no fact: the fact with one word corrected, or the form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from quoll.facts.fact import FactForm
from quoll.spelling import nearest

__all__ = ["forms_meant", "meant"]

LONGEST = 300  # characters of a line; each word is tried in every form
ALIKE = 3  # replacement candidates per word
SOME, FEW = 2, 4  # least common words of a line and a form; most forms shown for that
WORD = re.compile(r"(?<![\w.$+:])[A-Za-z_]+(?![\w.$+:])")
LITERAL = re.compile(r"\b[a-z-]{2,}\b")


def meant(line: str, forms: Sequence[FactForm]) -> str | None:
    """The fact that results from correcting one word of ``line``, or None."""
    if len(line) > LONGEST:
        return None
    return next((found for found in _respelt(line, forms) if _is_fact(found, forms)), None)


def forms_meant(line: str, forms: Sequence[FactForm]) -> list[FactForm]:
    """The forms whose first word is similar to the first word of ``line``.

    If there are none, the few forms with the most words in common with it, two at least.
    """
    first = line.split(maxsplit=1)[0]
    openings = {form.text: form.text.split()[0] for form in forms}
    near = nearest(first, {word for word in openings.values() if LITERAL.fullmatch(word)})
    found = [form for form in forms if openings[form.text] in near]
    return found or _with_most_words(set(LITERAL.findall(line[:LONGEST])), forms)


def _with_most_words(words: Set[str], forms: Sequence[FactForm]) -> list[FactForm]:
    common = [len(words & set(LITERAL.findall(form.text))) for form in forms]
    most = max(common)
    found = [form for form, count in zip(forms, common, strict=True) if count == most]
    return found if most >= SOME and len(found) <= FEW else []


def _respelt(line: str, forms: Sequence[FactForm]) -> Iterator[str]:
    """``line`` with one word replaced by a word of the forms, most similar words first."""
    known = sorted({word for form in forms for word in LITERAL.findall(form.text)})
    for word in WORD.finditer(line):
        for other in nearest(word[0], known, ALIKE):
            yield f"{line[: word.start()]}{other}{line[word.end() :]}"


def _is_fact(line: str, forms: Sequence[FactForm]) -> bool:
    """Whether the first form whose opening matches accepts it."""
    form = next((form for form in forms if re.match(form.opening, line)), None)
    return form is not None and re.fullmatch(form.pattern, line) is not None
