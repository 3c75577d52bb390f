"""The ranges of the wheel, the exact versions of a checkout, and the installed versions agree."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", (ROOT / "requirements.txt").read_text(), re.M))
NEEDED = [
    Requirement(text)
    for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])
]


def test_the_exact_versions_are_in_the_ranges() -> None:
    outside = [need for need in NEEDED if not need.specifier.contains(PINS[need.name])]
    assert not outside


def test_a_wheel_can_be_installed_beside_other_packages() -> None:
    """A range has two ends, and neither is one version."""
    ranges = {
        text: sorted(part.operator for part in Requirement(text).specifier)
        for text in PROJECT["dependencies"]
    }
    assert not {text: ends for text, ends in ranges.items() if ends != ["<", ">="]}


def test_the_exact_versions_are_installed() -> None:
    """The bounds in the tests are computed with these versions."""
    assert {name: version(name) for name in PINS} == PINS
