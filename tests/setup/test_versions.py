"""The ranges of the wheel, the exact versions of a checkout, and what is installed agree."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", (ROOT / "requirements.txt").read_text(), re.M))
NEEDED = [
    Requirement(text)
    for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])
]


@pytest.mark.parametrize("needed", NEEDED, ids=lambda needed: needed.name)
def test_the_exact_version_is_in_the_range(needed: Requirement) -> None:
    assert needed.specifier.contains(PINS[needed.name])


@pytest.mark.parametrize("text", PROJECT["dependencies"])
def test_a_wheel_can_be_installed_beside_other_packages(text: str) -> None:
    """A range has two ends, and neither is one version."""
    operators = sorted(part.operator for part in Requirement(text).specifier)
    assert operators == ["<", ">="]


@pytest.mark.parametrize("name", PINS)
def test_the_exact_version_is_installed(name: str) -> None:
    """Bounds that the tests compare are those of the exact versions."""
    assert version(name) == PINS[name]
