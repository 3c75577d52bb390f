"""The tables of keys in docs/platform-keys.md: ``make campaign-platform_keys``."""

from __future__ import annotations

from itertools import groupby

from campaigns.documented import markdown, replace
from wcet.platforms.platform_keys import ANY, KEYS, Form, PlatformKey

HEAD = ("key", "value", "unit", "meaning", "look in", "left out")
LISTED = (Form.TABLE, Form.TABLES)


def section(key: PlatformKey) -> str:
    """The first name of its path."""
    return key.path.partition(".")[0] if "." in key.path or key.form in LISTED else ""


def written() -> str:
    """A table for each table of the file."""
    parts = []
    for name, keys in groupby(KEYS, section):
        rows = (
            (
                f"`{key.path}`",
                ", ".join(f"`{word}`" for word in key.words) or key.form.value,
                key.unit,
                key.meaning,
                key.look,
                key.without or ("" if key.last == ANY else "an error"),
            )
            for key in keys
        )
        parts.append(f"## {f'`{name}`' if name else 'The board'}\n\n{markdown(HEAD, rows)}")
    return "\n".join(parts)


if __name__ == "__main__":
    replace("platform-keys.md", "keys", written())
