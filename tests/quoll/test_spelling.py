"""Words that are written alike."""

from __future__ import annotations

import pytest

from quoll.spelling import did_you_mean, nearest, suggestion

KNOWN = ("interrupt", "handle_interrupt", "syscall")


def test_the_nearest_is_first() -> None:
    assert nearest("interupt", KNOWN, 3) == ["interrupt", "handle_interrupt"]
    assert nearest("interupt", KNOWN) == ["interrupt"]
    assert nearest("xyz", KNOWN, 3) == []
    assert nearest("interrupt" * 1000, KNOWN) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        (["a"], "did you mean a?"),
        (["a", "b"], "did you mean a or b?"),
        (["a", "b", "c"], "did you mean a, b or c?"),
    ],
)
def test_the_question(words: list[str], text: str) -> None:
    assert suggestion(words) == text


def test_what_was_meant() -> None:
    assert did_you_mean("sycall", KNOWN) == "did you mean syscall?"
    assert did_you_mean("xyz", KNOWN) == ""
