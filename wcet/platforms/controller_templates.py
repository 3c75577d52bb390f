"""Interrupt controllers that a new platform file may name: ``wcet platform new --controller``.

Each is a file in ``wcet/platforms/controllers``, with the table ``controller`` of a platform file
by offsets from a base.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quoll.errors import UsageError
from quoll.printable import shortened
from wcet.platforms.platform_keys import EACH, Form, key_of
from wcet.platforms.toml_table import read_toml

__all__ = ["NON_ZERO", "controller_keys", "controllers"]

DIRECTORY = Path(__file__).parent / "controllers"
NON_ZERO = "nonzero"  # the key ``pending`` alone: registers, one of which is not 0
ADDRESSES = 1 << 32


def controllers() -> tuple[str, ...]:
    """Names of the controllers there are, sorted."""
    return tuple(sorted(path.stem for path in DIRECTORY.glob("*.toml")))


def controller_keys(text: str) -> dict[str, Any]:
    """The keys of a platform file for ``NAME@BASE``, or ``nonzero@ADDRESS,...``.

    Raises UsageError for another text, or another name.
    """
    name, _, place = text.partition("@")
    if name not in (NON_ZERO, *controllers()):
        known = ", ".join((NON_ZERO, *controllers()))
        raise UsageError(f"no controller {shortened(name)!r}", hint=f"known: {known}")
    try:
        bases = [int(one, 0) for one in place.split(",")]
    except ValueError:
        bases = []
    wrong = not bases or any(not 0 <= base < ADDRESSES for base in bases)
    if wrong or (len(bases) > 1 and name != NON_ZERO):
        raise UsageError(
            f"{shortened(text)!r} names no address",
            hint=f"{NON_ZERO}@ADDRESS,ADDRESS or NAME@BASE: virtual addresses",
        )
    if name == NON_ZERO:
        return {"pending": bases}
    table = read_toml(DIRECTORY / f"{name}.toml")["controller"]
    moved = _moved(table, "controller", bases[0])
    if max(_addresses(moved, "controller")) >= ADDRESSES:
        raise UsageError(f"the registers of {shortened(text)!r} end behind the last address")
    return {"controller": moved}


def _moved(value: Any, path: str, base: int) -> Any:
    """A table with addresses in the place of offsets."""
    key = key_of(path)
    assert key is not None, path
    if key.form is Form.TABLES and isinstance(value, list):
        return [_moved(row, path, base) for row in value]
    if key.form in (Form.TABLE, Form.TABLES):
        return {name: _moved(inner, _within(path, name), base) for name, inner in value.items()}
    return [offset + base for offset in value] if key.form is Form.ADDRESSES else value


def _addresses(value: Any, path: str) -> Iterator[int]:
    """All addresses of a table."""
    key = key_of(path)
    assert key is not None, path
    if key.form is Form.ADDRESSES:
        yield from value
    for row in value if key.form is Form.TABLES and isinstance(value, list) else ():
        yield from _addresses(row, path)
    if key.form in (Form.TABLE, Form.TABLES) and isinstance(value, dict):
        for name, inner in value.items():
            yield from _addresses(inner, _within(path, name))


def _within(path: str, name: str) -> str:
    inside = f"{path}.{name}"
    return inside if key_of(inside) is not None else f"{inside}{EACH}"
