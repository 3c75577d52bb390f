"""Walks of lists of a stated length: no execution over such a list exceeds the bound."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.errors import FactsError
from quoll.facts.read import parse
from tests.testing.harness.cases import cases, in_turn
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import build

HEAD = 0x0010_0000  # where main finds its list
ELEMENT = 0x0020_0000
PRELUDE = "struct item { unsigned value; struct item *next, *other; };\nvolatile unsigned sink;\n"
LEVELS = ("-O0", "-O1", "-O2", "-Os")
MOST = 7  # elements

# name: body of main(struct item **head, unsigned n), bound of its loop where it has MOST elements
WALKS = {
    "for": ("for (struct item *p = *head; p; p = p->next) sink = p->value;", 8),
    "while": ("struct item *p = *head; while (p) { sink = 1; p = p->next; }", 8),
    "do": ("struct item *p = *head; if (p) do sink = 1; while ((p = p->next));", 7),
    "two": (
        "for (struct item *p = *head; p && p->next; p = p->next->next) sink = p->value;",
        4,
    ),
    "some": (
        "struct item *p = *head; unsigned i = 0;"
        " for (; i < 3 && p; i++) { sink = i; p = p->next; }",
        4,
    ),
    "found": (
        "for (struct item *p = *head; p; p = p->next) if (p->value == n) return 1;",
        8,
    ),
    "behind": (
        "struct item *last = 0; for (struct item *p = *head; p; p = p->next) last = p;"
        " if (last) sink = last->value;",
        8,
    ),
    "argument": ("for (struct item *p = (struct item *)head; p; p = p->next) sink = 1;", 8),
}
NO_WALKS = {
    "counter": "for (unsigned i = 0; i < n; i++) sink = i;",
    "two links": (
        "for (struct item *p = *head; p; p = sink ? p->next : p->other) sink = p->value;"
    ),
    "global head": "while (*head) { sink = 1; *head = (*head)->next; }",
}


def program(body: str, optimise: str) -> Program:
    source = f"{PRELUDE}int main(struct item **head, unsigned n) {{ {body} return 0; }}"
    return load(build(source, "-fno-unroll-loops", "-fno-inline", optimise=optimise))


def bound(code: Program, most: int = MOST) -> LoopBound:
    """With the fact about the list that the loop walks."""
    header = code.graph.nodes[code.graph.loops[0].header].block.addr
    fact = f"list at {header:#x} has at most {most} elements"
    options = BoundOptions(Budget(seconds=20), workers=1)
    [found] = code.bounds(parse(fact, "my.facts"), options)
    return found


def memory(elements: int) -> Callable[[int], int]:
    """Bytes of a list at ``HEAD``, each element far from the one before, and 5 elsewhere."""
    at = [ELEMENT + 64 * i * i for i in range(elements)]
    words = {HEAD: at[0] if at else 0}
    for i, address in enumerate(at):
        words |= {address: i, address + 4: at[i + 1] if i + 1 < elements else 0}
    content = {a + i: byte for a, word in words.items()
               for i, byte in enumerate(word.to_bytes(4, "little"))}  # fmt: skip
    return lambda address: content.get(address, 5)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "level"), in_turn(WALKS, LEVELS))
def test_walks_end_where_lists_do(name: str, level: str) -> None:
    """Lists of every length up to the stated one; the longest reaches the bound but one."""
    body, expected = WALKS[name]
    code = program(body, level)
    found = bound(code)
    twice = name == "two" and level == "-O0"  # a link is loaded twice: two words for the model
    assert found.bound is not None
    assert found.bound - expected in ((4,) if twice else (-1, 0, 1))  # where the loop is rotated
    assert found.assumes is not None
    assert str(found.assumes).startswith("fact: my.facts:1: list at 0x")
    assert str(found.assumes) in found.explained
    most = 0
    for elements in range(MOST + 1):
        first = ELEMENT if elements else 0
        argument = first if name == "argument" else HEAD
        for n in (0, 3, 100):
            (count,) = code.counts((argument, n), memory(elements)).values()
            assert count <= found.bound, (elements, n)
            most = max(most, count)
    assert twice or most >= found.bound - 1


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("most", [0, 1, 2, 100, 100_000])
def test_the_length_is_what_counts(most: int) -> None:
    found = bound(program(WALKS["for"][0], "-O2"), most)
    assert found.bound in (max(most, 1), most + 1)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", NO_WALKS)
def test_a_loop_that_walks_no_list(name: str) -> None:
    """The fact is refused where no single chain of links decides."""
    with pytest.raises(FactsError, match=r"my\.facts:1.*walks no list"):
        bound(program(NO_WALKS[name], "-O1"))


def test_the_message_proposes_the_fact() -> None:
    [found] = program(WALKS["for"][0], "-O1").bounds()
    assert found.bound is None
    assert "or 'list at prog.c:3 has at most N elements'" in str(found.reason)


@pytest.mark.slow("NuSMV proves each bound")
def test_random_walks() -> None:
    """Bodies that go on at different places, stay, or stop early."""
    steps = ["p = p->next;", "if (sink & 1) p = p->next;", "if (p->value == n) break;",
             "if (p->value == 3) p = 0; else p = p->next;", "sink = p->value;",
             "if (p->next) p = p->next;"]  # fmt: skip
    bounded = 0
    for seed in range(cases(4)):
        chance = random.Random(seed)
        body = " ".join(chance.choices(steps, k=chance.randint(1, 2)))
        guard = "p = p->next;" if chance.randrange(3) else ""
        text = f"struct item *p = *head; while (p) {{ {body} if (!p) break; {guard} }}"
        code = program(text, chance.choice(LEVELS))
        if not code.graph.loops:
            continue
        try:
            found = bound(code)
        except FactsError:
            continue
        bounded += found.bound is not None
        for elements in range(MOST + 1):
            for n in (0, 4):
                (count,) = code.counts((HEAD, n), memory(elements)).values()
                assert found.bound is None or count <= found.bound, (seed, text)
    assert bounded > 3


def test_a_walk_by_line(tmp_path: Path) -> None:
    """A place is any place in the loop, as for ``loop PLACE``."""
    code = program(WALKS["for"][0], "-O1")
    fact = parse("list at prog.c:3 has at most 4 elements", str(tmp_path))
    [found] = code.bounds(fact)
    assert found.bound in (4, 5)
