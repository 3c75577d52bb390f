"""The page: markup, style, scripts and data in one self-contained text.

Data of the ELF are in a script element that is never executed, with every ``<`` escaped, and the
scripts of the page put them into text nodes only. The policy in the head allows exactly the page's
scripts and style, by their hashes: no other code runs, and nothing is loaded.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from wcet.analysis.result import AnalysisResult
from wcet.gate.compare import RecordChange
from wcet.page.caches import MemoryUse
from wcet.page.document import page_document
from wcet.page.web_scripts import script_texts

__all__ = ["page", "to_html"]

ASSETS = files("wcet.page") / "assets"
# In this order: definitions come before their uses.
SCRIPTS = ("base", "list", "code", "listing", "flame", "merged", "graph", "views", "main")


def to_html(
    result: AnalysisResult,
    sources: Path,
    memory: Mapping[str, MemoryUse],
    comparison: RecordChange | None,
) -> str:
    """The page of a result."""
    return page(page_document(result, sources, memory, comparison))


def page(document: dict[str, Any]) -> str:
    """The page of a document. Raises UsageError if a web part is not installed."""
    page_scripts = script_texts()
    licences = [
        {
            "name": one.script.name,
            "purpose": one.script.purpose,
            "home": one.script.home,
            "licence": one.script.licence,
            "package": f"{one.script.package} {one.version}",
            "notice": one.notice,
        }
        for one in page_scripts
    ]
    own = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    scripts = [*(one.text for one in page_scripts), f'(() => {{\n"use strict";\n{own}}})();\n']
    scripts = [script.replace("</script", "<\\/script") for script in scripts]
    style = asset("page.css")
    data = json.dumps({**document, "licences": licences}, separators=(",", ":"))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(source_hash, scripts))}",
            f"style-src {source_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    fields = {
        "policy": policy,
        "title": html.escape(
            f"Worst-case execution times of {Path(document['kernel']['path']).name}"
        ),
        "style": style,
        "data": data.replace("<", "\\u003c"),
        "scripts": "".join(f"<script>{script}</script>\n" for script in scripts),
    }
    # All at once: a field's text is not searched for the names of other fields.
    before, *rest = asset("page.html").split("{{")
    chunks = (chunk.partition("}}") for chunk in rest)
    return before + "".join(fields[name] + after for name, _, after in chunks)


def asset(name: str) -> str:
    """A file of this package."""
    return (ASSETS / name).read_text("utf-8")


def source_hash(text: str) -> str:
    """The hash by which a policy names an inline script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
