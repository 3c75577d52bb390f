"""Outputs of a command: they appear complete and together, or not at all, and replace no input.

    refuse_overwriting(options)                    before anything is analysed
    publish(options, [(options.json, text)], lines)  when all texts are known

Files are written under temporary names first. Then pipes and devices are written, then standard
output, and last all files are renamed into their places.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from quoll.errors import PROPOSED, UsageError
from quoll.fitting import fitted
from wcet.process import send_output
from wcet.reports.legend import LEGEND, legend

__all__ = ["STANDARD_OUTPUT", "publish", "publish_document", "refuse_overwriting"]

STANDARD_OUTPUT = "-"
# The options of all commands that name files.
INPUTS = ("kernel", "binary", "trace", "traces", "facts", "symbols", "raw", "platform", "baseline")
OUTPUTS = (
    "json",
    "ffx",
    "html",
    "lp",
    "mps",
    "dot",
    "graphml",
    "svg",
    "flame",
    "markdown",
    "junit",
    "sarif",
    "code_quality",
    "output",
    "suggest_facts",
)


def refuse_overwriting(options: argparse.Namespace) -> None:
    """Raise UsageError for an output that cannot be written, or that would replace an input."""
    _refuse(options, [name for option in OUTPUTS if (name := getattr(options, option, None))])


def publish(
    options: argparse.Namespace,
    files: Iterable[tuple[str | Path | None, Callable[[], str]]],
    report: Callable[[], str | Iterable[str]],
) -> None:
    """Write ``files``, each a name and its text, and print ``report``, a text or its lines.

    A file called "-" is printed instead of the report. Raises UsageError if an output cannot be
    written; all existing files are then untouched. Raises BrokenPipeError if the reader of standard
    output is gone; the files are then written.
    """
    named = [(name, text) for name, text in files if name]
    _refuse(options, [name for name, _ in named])
    printed = [text for name, text in named if _is_standard_output(name)]
    printed = printed or [lambda: _inode(_text(report()), options)]
    placed: list[_Placed] = []
    try:
        for name, text in named:
            if not _is_standard_output(name):
                placed.append(_Placed(Path(name), text()))
        texts = [text() for text in printed]
        for file in placed:
            file.send()
        broken = None
        try:
            send_output("".join(texts))
        except BrokenPipeError as error:
            broken = error
        for file in placed:
            file.put()
    except BaseException:
        for file in reversed(placed):
            file.take_back()
        raise
    for file in placed:
        file.settle()
    if broken is not None:
        raise broken


def _text(report: str | Iterable[str]) -> str:
    return report if isinstance(report, str) else "".join(f"{line}\n" for line in report)


def _inode(report: str, options: argparse.Namespace) -> str:
    """A report; on a terminal with a legend, and with lines of its width."""
    if getattr(options, "wide", False) or not sys.stdout.isatty():
        return report
    columns = shutil.get_terminal_size().columns
    lines = [fitted(line, columns) for line in report.splitlines()]
    words = [] if LEGEND in report else legend(getattr(options, "command", ""), report, columns)
    return "".join(f"{line}\n" for line in [*lines, *([""] if words else []), *words])


def publish_document(
    options: argparse.Namespace,
    document: Callable[[], object],
    report: Callable[[], str | Iterable[str]],
    files: Iterable[tuple[str | Path | None, Callable[[], str]]] = (),
) -> None:
    """Write ``document`` as JSON where requested, and ``publish`` the rest; errors as there."""
    written = (options.json, lambda: json.dumps(document(), indent=1) + "\n")
    publish(options, [*files, written], report)


class _Placed:
    """An output file under a temporary name, until ``put`` renames it."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._data = path, text.encode("utf-8", "backslashreplace")
        self._target = path.resolve()
        self._direct = self._target.exists() and not self._target.is_file()
        self._temporary = self._before = ""
        if self._direct:
            return
        with _reported(path):
            handle, self._temporary = tempfile.mkstemp(
                dir=self._target.parent, prefix=f".{self._target.name[:100]}."
            )
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._data)
                os.chmod(self._temporary, _mode(self._target))
            except BaseException:
                self.take_back()
                raise

    def send(self) -> None:
        """Write the data if the target is a pipe or a device."""
        if self._direct:
            with _reported(self._path):
                self._target.write_bytes(self._data)

    def put(self) -> None:
        """Rename the file into its place; ``take_back`` can still restore the old one."""
        if self._direct:
            return
        with _reported(self._path):
            if self._target.exists():
                before = f"{self._temporary}.before"
                os.link(self._target, before)
                self._before = before
            os.replace(self._temporary, self._target)
            if not self._before:
                self._before = str(self._target)  # no old file: ``take_back`` removes the new one
            self._temporary = ""

    def take_back(self) -> None:
        """Restore the state before ``put``."""
        with suppress(OSError):
            if self._temporary:
                os.unlink(self._temporary)
                if self._before:
                    os.unlink(self._before)
            elif self._before == str(self._target):
                os.unlink(self._target)
            elif self._before:
                os.replace(self._before, self._target)

    def settle(self) -> None:
        """Remove the copy of the old file."""
        if self._before and self._before != str(self._target):
            with suppress(OSError):
                os.unlink(self._before)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Turn system errors about a file into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _states_nothing(path: Path) -> bool:
    """Whether a file has proposed facts only, as comments: they may be found again."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    proposed = text.startswith(PROPOSED)
    return proposed and all(line.startswith("#") for line in text.splitlines() if line)


def _refuse(options: argparse.Namespace, names: Sequence[str | Path]) -> None:
    """Raise UsageError for names that no run may write to, or that denote one file."""
    inputs = {identity: path for path in _inputs(options) for identity in _identities(path)}
    inode: dict[object, str | Path] = {}
    for name in names:
        if _is_standard_output(name):
            identities: set[object] = {STANDARD_OUTPUT}
        else:
            identities = _identities(Path(name))
            _require_writable(Path(name))
        proposed = str(name) == str(getattr(options, "suggest_facts", None))
        for identity in identities:
            if identity in inputs and not (proposed and _states_nothing(Path(name))):
                raise UsageError(
                    f"{name} is an input of this run ({inputs[identity]})",
                    hint="write the output to another file",
                )
            if identity in inode:
                raise UsageError(
                    f"two outputs go to the same file: {inode[identity]} and {name}",
                    hint="give each a file of its own",
                )
            inode[identity] = name


def _inputs(options: argparse.Namespace) -> Iterator[Path]:
    """The files that a run reads, and an existing facts file beside the ELF, read or not.

    If no facts file exists there, it may be an output.
    """
    writes_facts = getattr(options, "suggest_facts", None) is not None
    for option in INPUTS:
        given = getattr(options, option, None)
        for name in given if isinstance(given, list) else [given] if given else []:
            if option == "platform" and not str(name).endswith(".toml"):
                continue
            path = Path(str(name).rpartition("@")[0]) if option == "raw" else Path(name)
            yield path
            if option in ("kernel", "binary"):
                neighbouring = path.with_suffix(".facts")
                if neighbouring.exists() or not writes_facts:
                    yield neighbouring


def _identities(path: Path) -> set[object]:
    """The identity of a file: its resolved path, device and inode."""
    found: set[object] = set()
    with suppress(OSError, ValueError, RuntimeError):
        found.add(str(path.resolve()))
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return set()  # writing to a device or a pipe replaces nothing
        found.add((status.st_dev, status.st_ino))
    return found


def _require_writable(path: Path) -> None:
    """Raise UsageError if a file cannot be written, before the analysis instead of after it."""
    try:
        target = path.resolve()
        if target.is_dir():
            reason = "it is a directory"
        elif target.exists():
            reason = "" if os.access(target, os.W_OK) else "it is read-only"
        elif not target.parent.is_dir():
            reason = f"there is no directory {target.parent}"
        else:
            reason = "" if os.access(target.parent, os.W_OK) else "its directory is read-only"
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error)
    if reason:
        raise UsageError(f"cannot write {path}: {reason}")


def _is_standard_output(name: str | Path) -> bool:
    """Whether ``name`` is "-", or the very file that standard output goes to."""
    if str(name) == STANDARD_OUTPUT:
        return True
    try:
        here, there = os.fstat(sys.stdout.fileno()), os.stat(name)
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISREG(there.st_mode) and (here.st_dev, here.st_ino) == (
        there.st_dev,
        there.st_ino,
    )


def _mode(target: Path) -> int:
    """The permissions of the replaced file, or of a new one."""
    with suppress(OSError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)  # the mask can only be read by setting it
    os.umask(mask)
    return 0o666 & ~mask
