"""The matrix of a sweep: kernels, platforms, options and entries, from a TOML file.

entries = ["syscall", "interrupt"]      # default: all entries of the platform
platforms = ["kzm", "board.toml"]       # default: chosen by each kernel's build attributes
[[kernels]]
files = ["build/*/kernel.elf"]          # paths and patterns are relative to this file
facts = ["common.facts"]                # beside each kernel's own NAME.facts
[options.l2-on]                         # options of 'wcet analyse', by a name for the table
arguments = ["--l2", "on"]

A kernel's table may have ``entries`` and ``platforms`` of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from quoll.errors import InputError
from quoll.input_files import Unreadable, read_input
from wcet.platforms.platform_model import files_of
from wcet.platforms.toml_table import TomlTable

__all__ = ["Analysis", "read_matrix"]

LARGEST = 1 << 30  # bytes of an input
DEFAULT = "default"
# Options that the sweep gives itself, or that write files.
REFUSED = (
    "--entry", "--platform", "--facts", "--no-facts", "--json", "--html", "--lp", "--mps", "--smv",
    "--suggest-facts", "--suggest-within", "--source-dir", "--config", "--raw", "--symbols",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Analysis:
    """One run of ``wcet analyse``: a cell of the matrix for all its entries.

    ``platform``: a name, a path, or "" for the default. ``inputs``: each file that is read, with
    its SHA-256.
    """

    kernel: str
    label: str
    platform: str
    options: str
    arguments: tuple[str, ...]
    entries: tuple[str, ...]
    facts: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]


def read_matrix(path: Path) -> tuple[Analysis, ...]:
    """The analyses in the order of the file. Raises InputError for a wrong entry or file."""
    table, folder = TomlTable.load(path), path.parent.resolve()
    entries = _texts(table, "entries", ("all",))
    platforms = _texts(table, "platforms", ("",))
    options = _options(table)
    found: dict[Analysis, None] = {}
    for each in table.tables("kernels"):
        own_entries = _texts(each, "entries", entries)
        own_platforms = _texts(each, "platforms", platforms)
        common = _files(each, "facts", folder) if each.present("facts") else []
        kernels = _files(each, "files", folder)
        each.close()
        for kernel in kernels:
            for platform in own_platforms:
                for name, arguments in options.items():
                    one = _analysis(kernel, folder, platform, name, arguments, own_entries, common)
                    found.setdefault(one)
    table.close()
    return tuple(found)


def _analysis(
    kernel: Path,
    folder: Path,
    platform: str,
    options: str,
    arguments: tuple[str, ...],
    entries: tuple[str, ...],
    common: list[Path],
) -> Analysis:
    neighbour = kernel.with_suffix(".facts")
    facts = [*([neighbour] if neighbour.is_file() else []), *common]
    own = list(files_of(folder / platform)) if platform.endswith(".toml") else []
    return Analysis(
        str(kernel),
        str(kernel.relative_to(folder)) if kernel.is_relative_to(folder) else str(kernel),
        str(own[0]) if own else platform,
        options,
        arguments,
        entries,
        tuple(map(str, facts)),
        tuple((str(file), file_digest(file)) for file in (kernel, *facts, *own)),
    )


def file_digest(path: Path) -> str:
    """The SHA-256 of a file. Raises InputError if it cannot be read."""
    try:
        return hashlib.sha256(read_input(path, LARGEST)).hexdigest()
    except Unreadable as error:
        raise InputError(f"{path} {error}") from error


def _texts(table: TomlTable, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    return (table.texts(key) or default) if table.present(key) else default


def _options(table: TomlTable) -> dict[str, tuple[str, ...]]:
    if not table.present("options"):
        return {DEFAULT: ()}
    options, found = table.table("options"), {}
    for name in options.remaining():
        one = options.table(name)
        arguments = one.texts("arguments")
        for word in arguments:
            if _is_refused(word.partition("=")[0]):
                raise one.error("arguments", f"{word} is not an option for a sweep")
        one.close()
        found[name] = arguments
    return found or {DEFAULT: ()}


def _is_refused(word: str) -> bool:
    """Whether a word is such an option, or short for one."""
    return word.startswith("--") and any(option.startswith(word) for option in REFUSED)


def _files(table: TomlTable, key: str, folder: Path) -> list[Path]:
    """The files that the paths and patterns of ``key`` name, in the order of the list."""
    found: dict[Path, None] = {}
    for name in table.texts(key):
        matching = sorted(folder.glob(name)) if not Path(name).is_absolute() else [Path(name)]
        if not matching:
            raise table.error(key, f"no file matches {name!r}")
        found |= dict.fromkeys(matching)
    return list(found)
