"""Third-party web scripts, from their packages on PyPI, embedded into a page.

A web script is a file of an installed distribution, which is located without an import. The page
shows the copyright notice in its file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from quoll.errors import UsageError

__all__ = ["SCRIPTS", "WebScript", "script_texts"]

NOTICE = re.compile(r"/\*\s*(Copyright.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WebScript:
    """A file of a distribution: a script that sets one global name."""

    name: str
    purpose: str
    home: str
    licence: str
    distribution: str
    file: str


@dataclass(frozen=True, slots=True)
class WebScriptText:
    """An installed web script. ``notice``: the text of its licence."""

    script: WebScript
    version: str
    text: str
    notice: str


SCRIPTS = (
    WebScript(
        name="dagre",
        purpose="places the blocks and edges of drawn graphs",
        home="https://github.com/dagrejs/dagre",
        licence="MIT",
        distribution="XStatic-Dagre",
        file="xstatic/pkg/dagre/data/dagre.js",
    ),
)


def script_texts() -> tuple[WebScriptText, ...]:
    """All web scripts. Raises UsageError naming the package that is not installed."""
    return tuple(_text(script) for script in SCRIPTS)


def _text(script: WebScript) -> WebScriptText:
    try:
        package = distribution(script.distribution)
        text = Path(str(package.locate_file(script.file))).read_text("utf-8")
    except (PackageNotFoundError, OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--html needs {script.name} of the Python package {script.distribution}, which is "
            "not installed, or incomplete",
            hint=f"pip install {script.distribution}",
        ) from error
    notice = NOTICE.search(text)
    if notice is None:
        raise UsageError(
            f"{script.file} of the Python package {script.distribution} {package.version} has no "
            "copyright notice",
            hint="install a version that pyproject.toml allows",
        )
    return WebScriptText(script, package.version, text, notice[1].strip())
