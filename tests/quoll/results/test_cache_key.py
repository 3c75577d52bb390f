"""Keys: different values have different keys, and values without a key are refused (rule 31)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations
from typing import NamedTuple

import pytest

from quoll.results.cache_key import key_of


class Colour(Enum):
    RED = 1
    GREEN = 2


class Pair(NamedTuple):
    a: int
    b: int


@dataclass(frozen=True)
class Point:
    x: int
    y: object = None
    hidden: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class Other:
    x: int
    y: object = None
    hidden: int = field(default=0, compare=False, repr=False)


DIFFERENT: list[object] = [
    None, True, 1, 1.0, "1", b"1", (), (1,), ((1,),), (1, ()), ("a", "bc"), ("ab", "c"), ("abc",),
    "", b"", 0, False, "None", Colour.RED, Colour.GREEN, Pair(1, 2), Pair(2, 1), (1, 2), (2, 1),
    Point(1), Other(1), Point(2), Point(1, (1,)), Point(1, hidden=1), frozenset({1}),
    frozenset({1, 2}), {1: 2}, {2: 1}, {1: 2, 2: 1}, {2: 1, 1: 2}, range(3), range(0, 3, 2),
    "\ud800", float("inf"), -1, 1 << 70,
]  # fmt: skip


def test_whatever_differs_has_another_key() -> None:
    """A field without repr was forgotten: ``Context.nest`` in the keys of loop bounds."""
    keys = [key_of("q", value) for value in DIFFERENT]
    for (a, one), (b, other) in combinations(zip(DIFFERENT, keys, strict=True), 2):
        assert one != other, (a, b)


def test_parts_and_questions_are_told_apart() -> None:
    keys = {key_of("q", 1, 2), key_of("q", (1, 2)), key_of("p", 1, 2), key_of("q", 1, 2, None)}
    assert len(keys) == 4


def test_equal_values_have_one_key_however_they_are_shared() -> None:
    one, other = tuple(range(2)), tuple(range(2))
    assert one is not other
    assert key_of("q", (one, one)) == key_of("q", (one, other))
    assert key_of("q", [1, {"a": {3, 4}}]) == key_of("q", (1, {"a": frozenset({4, 3})}))


def test_the_key_is_the_same_in_every_process() -> None:
    """Sets of text have another order in each process."""
    value = "('q', frozenset(map(str, range(50))), {'a': 1.5, 'b': None})"
    code = f"from quoll.results.cache_key import key_of; print(key_of(*{value}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": s}
        ).stdout
        for s in "12"
    }
    assert len(found) == 1


@pytest.mark.parametrize("value", [object(), lambda: 0, len, iter(()), bytearray(b"a"), 1j])
def test_a_type_that_is_not_known_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="has no content hash"):
        key_of("q", (1, {"a": value}))


def test_what_is_left_out_is_named() -> None:
    name = f"{__name__}.Point"
    less: Mapping[str, Mapping[str, str]] = {name: {"y": "a reason"}}
    assert key_of("q", Point(1, 2), left_out=less) == key_of("q", Point(1, 3), left_out=less)
    assert key_of("q", Point(1, 2), left_out=less) != key_of("q", Point(2, 2), left_out=less)
    with pytest.raises(TypeError, match="Point has no field z"):
        key_of("q", Point(1), left_out={name: {"z": "a reason"}})
