"""Places of facts are found once: all of them, with errors in the order of the file."""

from __future__ import annotations

import pytest

from quoll.errors import FactsError
from quoll.facts.control_flow_facts import NeverReturnsFact, TargetsFact
from quoll.facts.guidance import ReplacedFact
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.quoll.building import address, build

PROGRAM = """
int schedule(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

int main(int n)
{
    return schedule(n) + 1;
}
"""


@pytest.fixture(scope="module")
def image() -> Image:
    return Image.load(build(PROGRAM, optimise="-O0"))


def test_spans_are_what_the_line_table_has(image: Image) -> None:
    """Of every line and every address of the program, without the table."""
    (low, end), *_ = [(s.addr, s.addr + s.size) for s in image.symbols.named("schedule")]
    lines = {line for a in range(low, end, 4) if (line := image.line(a)) is not None}
    assert len(lines) > 3
    for line in lines:
        facts = locate(parse(f"{line} never executes", "k.facts"), image)
        place = facts.at(facts.facts[0], str(line))
        assert not place.exact
        for addr in range(low - 8, end + 8, 4):
            assert place.covers(addr) == (image.line(addr) == line)
            assert place.meets(addr, addr + 4) == place.covers(addr)


def test_facts_by_address(image: Image) -> None:
    text = "schedule never returns\nmain never returns\nfunction schedule takes at most 4 cycles"
    facts = locate(parse(text, "k.facts"), image)
    found = [(addr, fact.function) for addr, fact in facts.addressed(NeverReturnsFact)]
    assert found == [(address(image, name), name) for name in ("schedule", "main")]
    assert [addr for addr, _ in facts.addressed(ReplacedFact)] == [address(image, "schedule")]


def test_invocations(image: Image) -> None:
    text = "prog.c:6 executes at most 3 times in schedule when called from main\nignore main"
    facts = locate(parse(text, "k.facts"), image)
    limited, everywhere = facts.facts
    assert facts.limits(limited) == (address(image, "schedule"), address(image, "main"))
    assert facts.limits(everywhere) == (None, None)


@pytest.mark.parametrize(
    "line",
    [
        "loop schedul at most 3",
        "schedul never executes",
        "main never executes in schedul",
        "main executes at most 3 times in schedule when called from schedul",
        "ignore edge main -> schedul",
        "schedul never returns",
        "schedul switches context",
        "function schedul takes at most 3 cycles",
        "recursion of schedul at most 3",
        "every supervisor call enters schedul",
        "targets of main are schedule, schedul",
        "calls at main go through schedul",
        "calls at main go to any address-taken function, schedul",
        "path starts at schedul",
        "branch at main is always taken in schedul",
        "register r0 at schedul is at most 3",
        "list at schedul has at most 3 elements",
    ],
)
def test_every_place_that_a_fact_names_exists(image: Image, line: str) -> None:
    """An unknown place is an error even where no stage reads the fact."""
    facts = parse(f"ignore main\n{line}\nloop schedu at most 3\n", "k.facts")
    with pytest.raises(FactsError, match=r"^k.facts:2: there is no symbol schedul .*schedule"):
        locate(facts, image)


def test_a_replaced_function_may_be_in_rom(image: Image) -> None:
    """A bound is all that is needed of it; without one it cannot be called."""
    replaced = "function 0xffff0001 takes at most 9 cycles\n"
    called = "targets of main are schedule, 0xffff0001\n"
    facts = locate(parse(called + replaced, "k.facts"), image)
    assert [addr for addr, _ in facts.addressed(ReplacedFact)] == [0xFFFF0000]
    (fact,) = facts.of(TargetsFact)
    assert facts.at(fact, "0xffff0001").words == (0xFFFF0001,)
    with pytest.raises(FactsError, match=r"k.facts:1: there is nothing at 0xffff0001"):
        locate(parse(called, "k.facts"), image)
