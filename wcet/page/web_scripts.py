"""Third-party web scripts, embedded into a page.

A web script is a file of a package of npm, which the build puts beside this module
(``scripts/npm_packages.py``). The page shows the licence of the package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from quoll.errors import UsageError

__all__ = ["SCRIPTS", "WebScript", "WebScriptText", "script_texts"]

PACKAGES = files("wcet.page") / "npm/node_modules"


@dataclass(frozen=True, slots=True)
class WebScript:
    """A file of a package: a script that sets one global name."""

    name: str
    purpose: str
    home: str
    licence: str
    package: str
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
        package="@dagrejs/dagre",
        file="dist/dagre.min.js",
    ),
)


def script_texts() -> tuple[WebScriptText, ...]:
    """All web scripts. Raises UsageError naming the package that is not installed."""
    return tuple(_text(script) for script in SCRIPTS)


def _text(script: WebScript) -> WebScriptText:
    folder = PACKAGES / script.package
    try:
        version = json.loads((folder / "package.json").read_text("utf-8"))["version"]
        text = (folder / script.file).read_text("utf-8")
        notice = (folder / "LICENSE").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--html needs {script.name} of the npm package {script.package}, which this "
            "installation does not have",
            hint="install the wheel again; in a checkout run scripts/setup",
        ) from error
    return WebScriptText(script, version, text, notice.strip())
