"""The pages of ``make docs``: the Markdown of this repository, error codes, folders of modules.

    python scripts/reference.py FOLDER

Documents have the same paths in FOLDER as here, so that their links stay valid. The page of a
folder names its modules; mkdocstrings inserts their docstrings.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from quoll.explanations import EXPLANATIONS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
DOCUMENTS = ("*.md", "docs/**/*.md", "docs/schemas/*.json", "kernels/bilby/**/*.md")

PICTURES = "docs/*.png"


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def pages() -> Iterator[tuple[Path, str]]:
    """Each page with its text; paths are relative to the folder of pages."""
    for pattern in DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
    yield Path("docs", "errors.md"), error_codes()
    for package in PACKAGES:
        for init in sorted((ROOT / package).rglob("__init__.py")):
            folder = dotted(init.parent)
            modules = [dotted(p) for p in sorted(init.parent.glob("*.py")) if p != init]
            parts = [f"# {folder}\n\n::: {folder}\n    options: {{members: false}}\n"]
            parts += (f"## {module}\n\n::: {module}\n" for module in modules)
            yield Path("reference", f"{folder}.md"), "\n".join(parts)


def error_codes() -> str:
    """The page of all error codes."""
    sections = [
        "# Error codes",
        "Each error is one paragraph and begins with its code. `wcet explain CODE` prints one.",
    ]
    for one in EXPLANATIONS.values():
        sections += [
            f"## {one.code}: {one.title}",
            f"Exit status {one.status}. {one.cause}",
            f"    wcet: error {one.code}: {one.example}",
            one.cure,
        ]
    return "\n\n".join(sections) + "\n"


def main() -> None:
    """Write all pages afresh."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for page, text in pages():
        path = folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for picture in ROOT.glob(PICTURES):
        shutil.copy(picture, folder / picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
