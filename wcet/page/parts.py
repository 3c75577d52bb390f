"""Web parts of others, from their packages on PyPI: taken into a page when it is written.

A part is a file of an installed distribution, which is found without importing it. The copyright
notice of a part stands in its file, and is shown by the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from quoll.errors import UsageError

__all__ = ["PARTS", "WebPart", "part_texts"]

NOTICE = re.compile(r"/\*\s*(Copyright.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WebPart:
    """A file of a distribution: a script that sets one global name."""

    name: str
    purpose: str
    home: str
    licence: str
    distribution: str
    file: str


@dataclass(frozen=True, slots=True)
class PartText:
    """A part as it is installed. ``notice`` is the text of its licence."""

    part: WebPart
    version: str
    text: str
    notice: str


PARTS = (
    WebPart(
        name="dagre",
        purpose="places the blocks and edges of drawn graphs",
        home="https://github.com/dagrejs/dagre",
        licence="MIT",
        distribution="XStatic-Dagre",
        file="xstatic/pkg/dagre/data/dagre.js",
    ),
)


def part_texts() -> tuple[PartText, ...]:
    """All parts. Raises UsageError naming the package that is not installed."""
    return tuple(_text(part) for part in PARTS)


def _text(part: WebPart) -> PartText:
    try:
        package = distribution(part.distribution)
        text = Path(str(package.locate_file(part.file))).read_text("utf-8")
    except (PackageNotFoundError, OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--html needs {part.name} of the Python package {part.distribution}, which is not "
            "installed, or not whole",
            hint=f"pip install {part.distribution}",
        ) from error
    notice = NOTICE.search(text)
    if notice is None:
        raise UsageError(
            f"{part.file} of the Python package {part.distribution} {package.version} has no "
            "copyright notice",
            hint="install a version that pyproject.toml allows",
        )
    return PartText(part, package.version, text, notice[1].strip())
