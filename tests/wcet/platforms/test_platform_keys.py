"""The table of keys requires and explains exactly the keys that the platform reader accepts."""

from __future__ import annotations

import copy
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns.platform_keys import written
from quoll.errors import InputError
from wcet.platforms import platform_model as platforms
from wcet.platforms.commented import commented, copied, value_rows
from wcet.platforms.platform_keys import ANY, EACH, KEYS, Form, PlatformKey, key_of, schema_errors
from wcet.platforms.platform_model import DIRECTORY, Platform, load, names
from wcet.platforms.toml_table import read_toml

ROOT = Path(__file__).resolve().parents[3]
KZM = read_toml(DIRECTORY / "kzm.toml")
LEAVES = [k for k in KEYS if k.form not in (Form.TABLE, Form.TABLES) and k.last != ANY]
OPTIONAL = [key for key in LEAVES if key.without is not None]
OPTIONAL_TABLES = [k for k in KEYS if k.form in (Form.TABLE, Form.TABLES) and k.without]
WALKS = ("refill", "reads", "page", "large[]", "locked[]")
TOGETHER = {  # with each, the others are left out, too
    **{f"tlb.{f}": tuple(f"tlb.{o}" for o in WALKS if o != f) for f in ("refill", "reads", "page")},
    **{f"caches.{c}.locked_ways": (f"caches.{c}.locked",) for c in ("l1i", "l1d", "l2")},
    **{f"caches.{c}.locked": (f"caches.{c}.locked_ways",) for c in ("l1i", "l1d", "l2")},
    "controller.field[].values": ("controller.field[].selects",),
}  # fmt: skip


def table(content: dict[str, Any], path: str) -> dict[str, Any]:
    """The first table of a path; made if it is not there."""
    found: Any = content
    for part in path.split(".") if path else ():
        if part == ANY:
            found = next(iter(found.values()))
        elif part.endswith(EACH):
            found = found.setdefault(part.removesuffix(EACH), [{}])[0]
        else:
            found = found.setdefault(part, {})
    inside: dict[str, Any] = found
    return inside


def whole() -> dict[str, Any]:
    """A file with every key there is: optional ones as their examples."""
    content = copy.deepcopy(KZM)
    content["branch"]["model"] = "constant"
    for key in LEAVES:
        inside = table(content, key.parent)
        if key.last not in inside:
            inside[key.last] = tomllib.loads(f"a = {key.example}")["a"]
    return content


def loaded(content: dict[str, Any], tmp_path: Path) -> Platform:
    file = tmp_path / "board.toml"
    file.write_text(commented(content, "kzm"))
    return load(str(file))


def test_a_file_with_every_key_loads(tmp_path: Path) -> None:
    """So the reader takes every key of the table: others are unknown to it."""
    content = whole()
    assert {key.path for key in KEYS} >= {key.path for key in OPTIONAL}
    assert loaded(content, tmp_path).tlb is not None
    assert schema_errors(content) == ()


@pytest.mark.parametrize("key", [*OPTIONAL, *OPTIONAL_TABLES], ids=lambda key: key.path)
def test_what_may_be_left_out_may_be(key: PlatformKey, tmp_path: Path) -> None:
    content = whole()
    for path in (key.path, *TOGETHER.get(key.path, ())):
        parent, _, last = path.rpartition(".")
        del table(content, parent)[last.removesuffix(EACH)]
    if key.path == "branch.cycles":
        content["branch"]["model"] = "flag-distance"
    loaded(content, tmp_path)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_what_must_be_there_must_be(
    key: PlatformKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for the reader without the table: it takes no value that is not there."""
    if key.without is not None or key.last == ANY:
        return
    content = whole()
    del table(content, key.parent)[key.last]
    assert [text for text in schema_errors(content) if text.endswith(f"{key.last}: missing")]
    file = tmp_path / "board.toml"
    if not key.path.startswith("entries.*") and key.path != "name":
        file.write_text(commented({"name": "x", **content}, "kzm"))
        for patched in (False, True):
            if patched:
                monkeypatch.setattr(platforms, "schema_errors", lambda _: ())
            with pytest.raises(InputError, match="missing"):
                load(str(file))


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    text = (DIRECTORY / "kzm.toml").read_text()
    for old, new in (
        ("l2_hit = {", "l2_hitt = {"), ("profile =", "#"), ('kind = "device"\n', ""),
        ("line_rest = { value = 3,", "line_rest = { valeu = 3,"), ("[caches.l1d]", "[caches.ld1]"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new, 1)
    file = tmp_path / "board.toml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        load(str(file))
    for said in (
        "latency.l2_hit: missing", "core.profile: missing", "memory[1].kind: missing",
        "latency.line_rest.value: missing", "latency.line_rest.valeu: unknown key",
        "latency.l2_hitt: unknown key; did you mean l2_hit?", "caches.l1d: missing",
        "caches.ld1: unknown key; did you mean l1d?",
    ):  # fmt: skip
        assert said in str(error.value)


@pytest.mark.parametrize(
    "content", [{}, {"caches": 1}, {"memory": [1, {}]}, {"latency": {"l2_hit": 3}}, {"a" * 9999: 1}]
)
def test_what_is_no_platform_has_no_traceback(content: dict[str, Any], tmp_path: Path) -> None:
    assert any(text.endswith(": missing") for text in schema_errors(content))
    assert all(len(text) < 500 for text in schema_errors(content))


@pytest.mark.parametrize("name", names())
def test_a_new_file_says_what_its_base_says(name: str, tmp_path: Path) -> None:
    base, content = load(name), read_toml(DIRECTORY / f"{name}.toml")
    new = copied(content, "mine", name)
    assert tomllib.loads(commented(new, name)) == new
    found = loaded(new, tmp_path)
    same = replace(
        found, name=name, path=base.path, description=base.description, cpus=base.cpus,
        architectures=base.architectures, assumptions=base.assumptions, sources=base.sources,
    )  # fmt: skip
    assert same == base
    assert found.sources.keys() == base.sources.keys()
    for key, source in found.sources.items():
        assert source == f"copied from {name}: {base.sources[key]}"
        assert key in str(found.assumptions[-1])
    again = copied(new, "other", "mine")
    assert tomllib.loads(commented(again, "mine"))["clock_hz"] == new["clock_hz"]


def test_texts_of_all_kinds_survive() -> None:
    content = whole()
    content["description"] = 'a "b" \\ \x7f \u2028 é\n\t'
    content["assumptions"]["a key.of its own"] = "{clock_mhz} 'x'"
    assert tomllib.loads(commented(content, "kzm")) == content


def test_every_key_is_explained_in_a_new_file() -> None:
    text = commented(copied(KZM, "mine", "kzm"), "kzm").replace("\n# ", " ").casefold()
    assert not [key.path for key in KEYS if key.meaning.casefold() not in text]


@pytest.mark.parametrize("name", names())
def test_every_value_is_shown(name: str) -> None:
    content = read_toml(DIRECTORY / f"{name}.toml")
    rows = {key: (value, unit, source) for key, value, unit, source in value_rows(content)}
    board = load(name)
    assert {key for key in board.sources if not key.startswith("caches")} <= rows.keys()
    for key, source in board.sources.items():
        shown = [row for at, row in rows.items() if at == key or at.startswith(f"{key}.")]
        assert shown
        assert all(row[2] == source for row in shown)
    assert int(rows["caches.l1i.size"][0].replace(",", "")) == board.hierarchy.l1i.size
    assert rows["clock_hz"][:2] == (f"{board.clock_hz:,}", "Hz")
    assert json.dumps(rows)


def test_the_reference_is_that_of_the_table() -> None:
    """Written by ``make campaign-platform_keys``."""
    text = (ROOT / "docs" / "platform-keys.md").read_text(encoding="utf-8")
    assert written() in text
    assert all(f"| `{key.path}` |" in text for key in KEYS)
    assert all(key_of(key.path) is key for key in KEYS)
