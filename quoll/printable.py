"""Text from files and command lines, made safe for a terminal and for one line."""

from __future__ import annotations

__all__ = ["printable", "shortened"]

SHOWN = 120  # characters shown of each end of a long text


def printable(text: str) -> str:
    """``text`` with terminal control characters and invalid UTF-8 bytes escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shortened(text: str) -> str:
    """``text``, without its middle if it is very long."""
    if len(text) <= 3 * SHOWN:
        return text
    return f"{text[:SHOWN]}...{text[-SHOWN:]} ({len(text):,} characters)"
