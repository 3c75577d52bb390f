"""The schemas of ``--json`` documents, and the errors of a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

__all__ = ["NAMES", "faults", "schema"]

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "schemas"
NAMES = sorted(path.name.removesuffix(".schema.json") for path in FOLDER.iterdir())


def schema(name: str) -> dict[str, Any]:
    """A schema of docs/schemas, checked to be a schema."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(document)
    return document


def faults(name: str, document: object) -> list[str]:
    """The violations of the schema in ``document``."""
    return [error.message for error in Draft202012Validator(schema(name)).iter_errors(document)]
