"""The list of instructions with unknown results, in docs/semantics.md, does not grow unseen."""

from __future__ import annotations

from random import Random

import pytest

from campaigns.documented import inside
from campaigns.unknown_results import unknown_results
from tests.testing.harness import build


def documented() -> dict[str, frozenset[str]]:
    """The names in the table, by instruction set."""
    table = inside((build.ROOT / "docs/semantics.md").read_text("utf-8"), "unknown results")
    rows = [row.split("|") for row in table.splitlines()[2:]]
    return {cells[1].strip(): frozenset(cells[2].strip().split(", ")) for cells in rows}


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
@pytest.mark.parametrize("thumb", [False, True], ids=["ARM", "Thumb"])
def test_only_documented_results_are_unknown(thumb: bool) -> None:
    found = unknown_results(Random(13), 1, thumb=thumb)
    assert len(found) > 2
    assert found - documented()["Thumb" if thumb else "ARM"] == set()


def test_narrow_extensions_are_exact() -> None:
    """They were unknown in ARM state: a temporary of a word that is read as a halfword."""
    listed = frozenset.union(*documented().values())
    assert not [name for name in listed if name.startswith(("sxt", "uxt", "smuad"))]
