# SPDX-License-Identifier: BSD-2-Clause
"""Sequences by hand on the host build of every preset, and the specification by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kernels.bilby.verification.fuzz.directed import SEQUENCES
from kernels.bilby.verification.fuzz.mutants import BILBY, read_mutants
from kernels.bilby.verification.fuzz.script import Script
from kernels.bilby.verification.spec.refinement import Refinement
from kernels.bilby.verification.spec.state import Cap, Kernel, Slot, Table
from tests.testing.bilby.scripts import Scripts, scripts
from tests.testing.harness.cases import in_turn

# Each sequence on two of the presets, in turn.
PAIRS = [("mcs", "after"), ("latency", "mcs"), ("before", "mcs"), ("after", "latency")]
ROWS = [(sequence, preset) for sequence, pair in in_turn(SEQUENCES, PAIRS) for preset in pair]


@pytest.fixture(scope="module")
def script_of() -> Iterator[Scripts]:
    with scripts() as script_of:
        yield script_of


@pytest.mark.parametrize(
    ("sequence", "preset"),
    dict.fromkeys(ROWS),
    ids=lambda value: value if isinstance(value, str) else str(value.__name__),
)
def test_a_sequence_does_what_is_specified(
    script_of: Scripts, preset: str, sequence: Callable[[Script], None]
) -> None:
    script = script_of(preset)
    sequence(script)
    if script.in_step:
        script.run.refinement.check_everything()


def test_each_mutant_still_applies() -> None:
    """``make mutants`` would refuse one whose place has changed."""
    mutants = read_mutants()
    assert len(mutants) >= 100
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        text = (BILBY / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant.name


def family() -> tuple[Kernel, list[Slot]]:
    """An endpoint, two badges of it, and a copy of each badged capability."""
    kernel = Kernel(lambda address: 0)
    slots = [kernel.add_slot(16 * i) for i in range(1, 7)]
    region, endpoint, first, first_copy, second, second_copy = slots
    region.cap, region.revocable = Cap("untyped", {"object": 0}), True
    kernel.count[region.cap.identity] += 1
    kernel.insert(endpoint, Cap("endpoint", {"object": 64, "badge": 0}), region, True)
    for badge, (slot, copy) in enumerate(((second, second_copy), (first, first_copy)), 1):
        cap = Cap("endpoint", {"object": 64, "badge": badge})
        kernel.insert(slot, cap, endpoint, True)
        kernel.insert(copy, cap.copy(), slot, False)
    return kernel, slots


def test_what_was_derived_from_a_deleted_capability_belongs_to_its_parent() -> None:
    """All children, also those behind the grandchildren of an earlier child."""
    kernel, (region, endpoint, first, first_copy, second, second_copy) = family()
    kernel.empty(endpoint)
    assert (first.parent, second.parent) == (region, region)
    assert (first_copy.parent, second_copy.parent) == (first, second)


def test_a_moved_capability_keeps_all_its_children() -> None:
    kernel, (region, endpoint, first, first_copy, second, second_copy) = family()
    to = kernel.add_slot(256)
    kernel.move(to, endpoint)
    assert (first.parent, second.parent, to.parent) == (to, to, region)
    assert (first_copy.parent, second_copy.parent) == (first, second)


def test_a_slot_that_one_operation_makes_and_ends_belongs_to_nobody() -> None:
    """It was looked up in a CNode that the same operation deleted."""
    kernel = Kernel(lambda address: 0)
    refinement = Refinement(kernel, kernel.read, (0, 0))
    node = kernel.add_cnode(0x1000, 4)
    refinement.learn()
    slot = node.slots[5]
    kernel.remove_object(node.address, 256, [slot])
    refinement.learn()
    assert refinement.owners.find(slot.address) is None
    kernel.add(Table(0x1000, is_directory=False))
    refinement.learn()
    assert refinement.owners.find(slot.address) == 0x1000
