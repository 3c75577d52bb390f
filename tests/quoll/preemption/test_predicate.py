"""Predicates of the shipped controllers against their concrete twins: every line, every load."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from quoll.intervals.masked_words import masked
from quoll.intervals.strided_interval import ValueSet
from quoll.preemption.predicate import (
    PendingCase,
    PendingField,
    PendingPredicate,
    field_of,
    line_number,
    non_zero,
    raw_lines,
)
from tests.testing.values.controllers import CONTROLLERS, Controller
from wcet.platforms.controller import read_controller
from wcet.platforms.controller_templates import controller_keys, controllers
from wcet.platforms.toml_table import TomlTable

BASE = 0xF800_0000


def predicate(name: str) -> PendingPredicate:
    return read_controller(TomlTable(controller_keys(f"{name}@{BASE:#x}"), name))[0]


def holding(field: PendingField, controller: Controller) -> list[PendingCase]:
    """The cases that hold for one load of each word."""
    loaded = {word: controller.load(word - BASE) for word in field.registers}
    return [case for case in field.cases if all(loaded[word] in case[word] for word in case)]


def states(name: str) -> Iterator[tuple[Controller, int | None]]:
    """Controllers with no pending line, one, or two, and a disabled one that is pending."""
    lines = CONTROLLERS[name]().lines
    some = [line for line in lines if line % 7 in (0, 3)]
    for pending in [(), *((line,) for line in lines), *combinations(some[:8], 2)]:
        for disabled in {some[0], some[-1]} - set(pending):
            controller = CONTROLLERS[name]()
            controller.disabled.add(disabled)
            controller.arrive(disabled)
            for line in pending:
                controller.arrive(line)
            yield controller, pending[0] if pending else None


def test_every_controller_has_a_twin() -> None:
    assert set(controllers()) == set(CONTROLLERS)


@pytest.mark.slow("every state of a controller")
@pytest.mark.parametrize("name", controllers())
def test_a_field_holds_exactly_while_an_interrupt_is_pending(name: str) -> None:
    """But raw fields and numbers do not hold without one either: else they decide nothing."""
    fields = predicate(name).fields
    for controller, line in states(name):
        for field in fields:
            assert bool(holding(field, controller)) == (line is not None), (line, field.text)


@pytest.mark.slow("every state of a controller")
@pytest.mark.parametrize("name", controllers())
def test_one_case_holds_for_all_loads_while_more_interrupts_arrive(name: str) -> None:
    """Another line may come, of higher priority too: the case of the first one stays."""
    fields = predicate(name).fields
    for controller, line in states(name):
        if line is None:
            continue
        for field in fields:
            before = holding(field, controller)
            others = [x for x in controller.lines if x not in controller.disabled]
            for other in (others[0], others[-1]):
                controller.arrive(other)
                assert any(case in holding(field, controller) for case in before), field.text


@pytest.mark.parametrize(("name", "offset"), [("avic", 0x40), ("gic", 0x0C), ("pl190", 0x30)])
def test_loads_that_acknowledge_are_marked(name: str, offset: int) -> None:
    assert BASE + offset in predicate(name).loads


def test_the_cases_of_two_fields_are_combined() -> None:
    two, one = non_zero((BASE, BASE + 4)), field_of((BASE + 8,), 0x3FF, (0, 1019))
    cases = PendingPredicate.cases((two, one))
    assert len(cases) == 2
    assert all(case[BASE + 8] == masked(0x3FF, ValueSet(0, 1019, 1)) for case in cases)


def test_a_field_that_makes_too_many_cases_is_left_out() -> None:
    raw = raw_lines((BASE, BASE + 4), (BASE + 8, BASE + 12))
    number = line_number((BASE + 16,), 0xFF, (0, 63), (BASE + 20, BASE + 24))
    cases = PendingPredicate.cases((raw, number, non_zero((BASE + 28,))))
    assert len(cases) == 64
    assert all(BASE + 28 in case for case in cases)


def test_the_words_of_a_predicate_are_shown() -> None:
    assert predicate("gic").text == "bits 0x3ff of the word at 0xf8000018 are 0 to 1019"
    assert "the same line in all reads, 0 to 95" in predicate("omap3").text
