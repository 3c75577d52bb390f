"""A platform file with a comment at each key, and its values as rows: from the table of keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from wcet.platforms.platform_keys import ANY, EACH, KEYS, Form, PlatformKey, key_of
from wcet.platforms.platform_model import COPIED

__all__ = ["ValueRow", "commented", "copied", "explained", "value_rows"]

COLUMNS = 92  # of a comment
BARE = re.compile(r"[A-Za-z0-9_-]+")
ADDRESSES = (Form.ADDRESS, Form.ADDRESSES, Form.RANGE, Form.WORD)
SHORT = 10_000  # integers from here on have underscores
ValueRow = tuple[str, str, str, str]  # key, value, unit, source
HEADER = """\
# {name}: a platform file, copied from {base}. Replace the figures by your board's figures, and
# name their origin in "source". 'wcet platform check' lists missing and implausible values, and
# the figures that are still copied from {base}. Until you replace them, reports list as an
# assumption that they hold for your board. The memory map is {base}'s, too.
# TRM: the Technical Reference Manual of the core. ARM ARM: the Architecture Reference Manual.
"""


def copied(content: Mapping[str, Any], name: str, base: str) -> dict[str, Any]:
    """The text of a new file ``name``: a copy of ``base``, with sources that name it."""
    changed = {
        "name": name,
        "description": f"a board of your own, copied from {base}: say here which",
        "cpus": [],
        "architectures": [],
    }
    return {**_copied(dict(content), base), **changed}


def _copied(value: Any, base: str) -> Any:
    if isinstance(value, list):
        return [_copied(inner, base) for inner in value]
    if not isinstance(value, dict):
        return value
    found = {key: _copied(inner, base) for key, inner in value.items()}
    source = found.get("source")
    if isinstance(source, str) and not source.startswith(COPIED):
        found["source"] = f"{COPIED}{base}: {source}"
    return found


def commented(content: Mapping[str, Any], base: str) -> str:
    """``content`` as TOML, in which every key has its comment; optional ones are comments."""
    lines = HEADER.format(name=content["name"], base=base).splitlines()
    return "".join(f"{line}\n" for line in [*lines, "", *_table(content, "")])


def explained(key: PlatformKey) -> str:
    """The meaning of a key, in sentences."""
    sentences = [key.meaning, *([f"Unit: {key.unit}"] if key.unit else [])]
    if key.words:
        sentences.append(f"One of {', '.join(key.words)}")
    if key.look:
        sentences.append(f"Look in: {key.look}")
    if key.without is not None:
        sentences.append(f"Left out: {key.without}")
    text = ". ".join(sentences)
    return f"{text[0].upper()}{text[1:]}."


def value_rows(content: Mapping[str, Any], path: str = "", shown: str = "") -> Iterator[ValueRow]:
    """Every value of a file as a row, with its source."""
    own = content.get("source", "") if path else ""
    for name, value in content.items():
        key = key_of(_within(path, name)) or key_of(_within(path, ANY))
        if key is None or key.last == "source":
            continue
        here = f"{shown}{name}"
        if key.form is Form.TABLE:
            yield from value_rows(value, key.path, f"{here}.")
        elif key.form is Form.TABLES:
            for i, inner in enumerate(value):
                yield from value_rows(inner, key.path, f"{here}[{i}].")
        elif key.form is Form.FIGURE:
            yield here, _plain(value["value"], key), key.unit, value["source"]
        else:
            yield here, _plain(value, key), key.unit, own


def _within(path: str, name: str) -> str:
    inside = f"{path}.{name}" if path else name
    return inside if key_of(inside) is not None else f"{inside}{EACH}"


def _plain(value: Any, key: PlatformKey) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ", ".join(value)
    if isinstance(value, int) and key.form not in ADDRESSES and not isinstance(value, bool):
        return f"{value:,}"
    return _toml(value, key)


def _toml(value: Any, key: PlatformKey) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if key.form in ADDRESSES:
            return f"0x{value:08X}"
        return f"{value:_}" if value >= SHORT else str(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml(inner, key) for inner in value)}]"
    if isinstance(value, dict):
        inner = (f"{name} = {_toml(item, key)}" for name, item in value.items())
        return f"{{ {', '.join(inner)} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(content: Mapping[str, Any], path: str) -> Iterator[str]:
    """The keys and tables in a table, in the order of ``KEYS``."""
    for key in KEYS:
        if key.parent != path:
            continue
        if key.last == ANY:
            yield from _chosen(content, key)
        elif key.form is Form.TABLE:
            yield from _section(content.get(key.last), key)
        elif key.form is Form.TABLES:
            yield from _sections(content.get(key.last, []), key)
        else:
            yield from _comment(explained(key))
            if key.last in content:
                yield f"{key.last} = {_toml(content[key.last], key)}"
            else:
                yield f"# {key.last} = {key.example}"


def _section(content: Mapping[str, Any] | None, key: PlatformKey) -> Iterator[str]:
    yield ""
    yield from _comment(explained(key))
    if content is None:
        yield f"# [{key.path}]"
        yield from _absent(key)
    else:
        yield f"[{key.path}]"
        yield from _table(content, key.path)


def _sections(contents: list[Mapping[str, Any]], key: PlatformKey) -> Iterator[str]:
    yield ""
    yield from _comment(explained(key))
    name = key.path.removesuffix(EACH)
    if not contents:
        yield f"# [[{name}]]"
        yield from _absent(key)
    for i, content in enumerate(contents):
        yield from [f"[[{name}]]"] if i == 0 else ["", f"[[{name}]]"]
        lines = list(_table(content, key.path))
        yield from lines if i == 0 else [line for line in lines if not line.startswith("#")]


def _absent(key: PlatformKey) -> Iterator[str]:
    for inner in KEYS:
        if inner.parent == key.path and inner.form is Form.TABLES:
            yield f"# [[{inner.path.removesuffix(EACH)}]]".ljust(40) + f" # {inner.meaning}"
            yield from _absent(inner)
        elif inner.parent == key.path:
            yield f"# {inner.last} = {inner.example}".ljust(40) + f" # {inner.meaning}"


def _chosen(content: Mapping[str, Any], key: PlatformKey) -> Iterator[str]:
    """A table with names chosen by the file: a line for each."""
    yield from _comment(explained(key))
    inner = {item.last: item for item in KEYS if item.parent == key.path}
    for item in inner.values():
        yield from _comment(f"{item.last}: {explained(item)}")
    for name, value in content.items():
        shown = name if BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        if isinstance(value, dict):
            items = (f"{n} = {_toml(item, inner[n])}" for n, item in value.items())
            yield f"{shown} = {{ {', '.join(items)} }}"
        else:
            yield f"{shown} = {_toml(value, key)}"


def _comment(text: str) -> Iterator[str]:
    yield from (f"# {line}" for line in wrap(text, COLUMNS, break_on_hyphens=False))
