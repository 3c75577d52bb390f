"""Baselines as files: reading returns the written record, and errors name the defect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quoll.errors import InputError
from wcet.gate.record import BaselineRecord, EntryRecord, LineRecord, LoopRecord, read, to_json

LINE = LineRecord("f", "a.c", 3, "x = 1;", 2, 10, 4)
LOOP = LoopRecord("f", "a.c", 3, "for (;;)", 1, None, "fact")
ENTRY = EntryRecord(10, "", {"issue": 10}, (LINE,), (LOOP,))
WHOLE = BaselineRecord(
    "00", {"a.facts": "11"}, "kzm", "1", {"e": ENTRY}, ("S1",), {"g": "no bound"}
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, but the document itself."""
    if at:
        yield at
    named = list(value) if isinstance(value, dict) else []
    for name in range(len(value)) if isinstance(value, list) else named:
        yield from places(value[name], (*at, name))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(to_json(WHOLE))
    assert read(file) == WHOLE


@pytest.mark.parametrize("at", list(places(json.loads(to_json(WHOLE)))))
@pytest.mark.parametrize("damage", [None, True, 1.5, "x", [1], {"x": 1}, 7])
def test_every_damage_is_an_error_that_names_it_or_a_record(
    at: tuple[Any, ...], damage: object, tmp_path: Path
) -> None:
    """With any value at any place: a record of the right types, or an error with its name."""
    document = json.loads(to_json(WHOLE))
    holder = document
    for name in at[:-1]:
        holder = holder[name]
    holder[at[-1]] = damage
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(document))
    said = ""
    try:
        assert json.loads(to_json(read(file))) == document
    except InputError as error:
        said = str(error)
    assert not said or "is not a baseline: " in said
    assert "object has no" not in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "it has no schema_version"),
        ("null", "it has no schema_version"),
        ('{"schema_version": 2}', "it is of another version"),
        ('{"schema_version": 1}', "kernel is missing"),
        ('{"schema_version": 1, "kernel": {}}', "'entries' is missing"),
        ("[" * 100_000, "is not a baseline"),
    ],
)
def test_what_is_missing_is_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read(file)
