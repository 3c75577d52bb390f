"""Values as text and back, and texts that are something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoll.cfg.cfg import EdgeKind
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Context, SuperEdge
from quoll.results.serialization import CorruptRecord, from_text, to_text
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build

PROGRAM = """\
int g(int a) { return a * 3; }
int main(int a) { return a ? g(a) : g(1); }
"""
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.floats(allow_nan=False)
)
VALUES = st.recursive(
    st.one_of(SCALARS, st.sampled_from(EdgeKind)),
    lambda inner: st.one_of(
        st.lists(inner).map(tuple),
        st.frozensets(SCALARS),
        st.dictionaries(st.one_of(st.text(), st.integers()), inner),
        st.builds(Context, inner, inner, inner),
        st.builds(SuperEdge, inner, inner, inner),
    ),
    max_leaves=20,
)


@pytest.mark.slow("many random values")
@settings(max_examples=cases(40), deadline=None)
@given(VALUES.filter(lambda v: "frozenset" not in repr(v)))
def test_what_is_read_is_what_was_written(value: object) -> None:
    assert repr(from_text(to_text(value))) == repr(value), "1, True and 1.0 are told apart"


@pytest.mark.slow("many random values")
@settings(max_examples=cases(10), deadline=None)
@given(st.frozensets(st.one_of(st.text(), st.integers())))
def test_sets_are_written_in_one_order(value: frozenset[object]) -> None:
    again = frozenset(reversed(list(value)))
    assert to_text(value) == to_text(again)
    assert from_text(to_text(value)) == value


def test_many_of_a_class_stay_the_objects_that_they_are() -> None:
    """Each field of all is written at once; who refers to one of them gets that one again."""
    many = tuple(SuperEdge(n, n + 1, EdgeKind.CALL) for n in range(9))
    value = (many[3], many, many, many[5:], {"last": many[8]}, (many[0],) * 6)
    again = from_text(to_text((many, value)))[1]
    assert again == value
    first, edges, twice, rest, named, same = again
    assert edges is twice
    assert first is edges[3]
    assert all(a is b for a, b in zip(rest, edges[5:], strict=True))
    assert named["last"] is edges[8]
    assert all(edge is edges[0] for edge in same)
    assert from_text(to_text(value)) == value  # one is written before the others


def test_many_of_a_class_may_refer_to_each_other() -> None:
    """Also to one that comes later: each is still one object. A field may hold any value here."""
    made: Callable[..., Context] = Context
    last = made(None, 4, 8)
    many = (*(made(last, 4, n) for n in range(9)), last)
    again = from_text(to_text(many))
    assert again == many
    assert all(context.parent is again[-1] for context in again[:-1])


def test_a_supergraph_survives() -> None:
    image = Image.load(build(PROGRAM, "-fno-inline"))
    main = image.symbol("main")
    assert main is not None
    graph = expand(extract(image, [main.addr]), main.addr, image)
    again = from_text(to_text(graph))
    assert again == graph
    assert len({id(n.block) for n in again.nodes}) == len({id(n.block) for n in graph.nodes})


@dataclass(frozen=True)
class Foreign:
    """Not of this project's packages."""

    x: int


@pytest.mark.parametrize("value", [Foreign(1), object(), [1], {1}, MappingProxyType({1: [2]})])
def test_what_cannot_be_kept_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        to_text(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        "{}",
        "[1]",
        '[["t",1,2]]',
        '[["t",[5]]]',
        '[["x",1]]',
        '[["d","os:stat_result",1],["t",[0]]]',
        '[["d","quoll.results.serialization:json",1],["t",[0]]]',
        '[["d","quoll.results.serialization:to_text",1],["t",[0]]]',
        '[["d","quoll.nothing:Here",1],["t",[0]]]',
        '[["d","quoll.inlining.supergraph:Context",1],["t",[0]]]',
        '[["e","quoll.cfg.cfg:EdgeKind","sideways"],["t",[0]]]',
        '[["b","zz"],["t",[0]]]',
        '[["T",[0]],["t",[0]]]',
        '[["T",1],["T",[0]],["t",[1]]]',
        '[["T",{}],["t",[0]]]',
        '[["D","os:stat_result",1],["t",[0]]]',
        '[["D","quoll.inlining.supergraph:Context",null,[0],8],["t",[0]]]',
        '[["D"],["t",[0]]]',
        '[["N",[[1]]],["t",[0]]]',
        '[["N",1],["t",[0]]]',
        '[["N",[1]],["t",[0,1]]]',
        '[["N",[1]],["t",[0,0,0]]]',
        '[["T",1,2],["T",3],["t",[0,-9]],["t",[2]]]',
        '[["T","ab"],["t","ab"],["t",[1,"x"]],["t",[2]]]',
        '[["d","quoll.inlining.supergraph:Context",1,2,3],["t",[0,0]],["t",[1]]]',
        '[["c","os:stat_result",[1]],["t",[0]]]',
        '[["c","quoll.inlining.supergraph:Context",[1],[2]],["t",[0]]]',
        '[["c","quoll.inlining.supergraph:Context",[1],[2],[3,4]],["t",[0]]]',
        '[["c","quoll.inlining.supergraph:Context",1,2,3],["t",[0]]]',
    ],
)
def test_other_texts_are_damaged(text: str) -> None:
    with pytest.raises(CorruptRecord):
        from_text(text)


@settings(max_examples=cases(40), deadline=None)
@given(st.data())
def test_any_change_of_a_part_is_a_value_or_damage(data: st.DataObject) -> None:
    many = tuple(Context(None, 4, n) for n in range(6))
    value = (Context(None, 4, 8), EdgeKind.CALL, b"ab", {"k": (1, 2)}, many, many[2], ((1, 2), ()))
    parts = json.loads(to_text(value))
    part = data.draw(st.sampled_from(parts))
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(
        st.one_of(st.integers(-3, 9), st.text(max_size=3), st.none(), st.just([0]), st.just([]))
    )
    with suppress(CorruptRecord):
        from_text(json.dumps(parts))
