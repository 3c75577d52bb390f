"""The interrupt controller of a platform file: what is read, what is refused."""

from __future__ import annotations

import tomllib

import pytest

from quoll.errors import InputError
from quoll.intervals.masked_words import MaskedWords, masked
from quoll.intervals.strided_interval import ValueSet
from quoll.preemption.predicate import PendingPredicate, non_zero
from wcet.platforms.controller import read_controller
from wcet.platforms.toml_table import TomlTable

WORD = 0xF800_0000
HEAD = '[controller]\nsource = "manual"\n'


def predicate(text: str) -> PendingPredicate:
    top = TomlTable(tomllib.loads(text), "board.toml")
    found, _ = read_controller(top)
    top.close()
    return found


def field(text: str) -> PendingPredicate:
    return predicate(f"{HEAD}[[controller.field]]\nregisters = [{WORD:#x}]\n{text}")


def test_words_that_are_not_0_are_the_key_of_old_files() -> None:
    old = predicate(f"pending = [{WORD:#x}, {WORD + 4:#x}]")
    assert [one.cases for one in old.fields] == [non_zero((WORD, WORD + 4)).cases]
    assert old.text == "one of the words at 0xf8000000, 0xf8000004 is not 0"
    assert field("").text == "one of the words at 0xf8000000 is not 0"


def test_a_file_without_a_controller_has_no_tests() -> None:
    assert predicate("pending = []") == predicate("") == PendingPredicate()


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("mask = 0x3FF\nvalues = [0, 1019]", 0, 1019),
        ("mask = 0x3FF\nwithout = [1020, 1021, 1022, 1023]", 0, 1019),
        ("mask = 0x3FF\nvalues = [0, 1020]\nwithout = [1020]", 0, 1019),
        ("mask = 0x3FF\nwithout = [1023, 0]", 1, 1022),
        ("mask = 0x3FF", 1, 1023),
    ],
)
def test_values_of_a_field(text: str, first: int, last: int) -> None:
    (one,) = field(text).fields
    assert one.cases == ({WORD: masked(0x3FF, ValueSet(first, last, 1))},)


def test_values_are_counted_from_the_lowest_bit_of_the_mask() -> None:
    (one,) = field("mask = 0xFFFF0000\nvalues = [0, 63]").fields
    (case,) = one.cases
    assert case == {WORD: MaskedWords(0xFFFF_0000, ValueSet(0, 63 << 16, 1 << 16))}
    assert (3 << 16 | 7) in case[WORD]
    assert 0xFFFF_FFFF not in case[WORD]


def test_a_number_selects_the_bit_of_its_line() -> None:
    (one,) = field(f"values = [0, 63]\nselects = [{WORD + 8:#x}, {WORD + 12:#x}]").fields
    assert len(one.cases) == 64
    assert one.cases[37] == {WORD: ValueSet.of(37), WORD + 12: masked(32, ValueSet.of(32))}


def test_raw_words_have_others_beside_them() -> None:
    (one,) = predicate(
        f"{HEAD}[[controller.raw]]\nregisters = [{WORD:#x}]\nenabled_by = [{WORD + 4:#x}]\n"
        f"disabled_by = [{WORD + 8:#x}]"
    ).fields
    set_, clear = masked(16, ValueSet.of(16)), masked(16, ValueSet.of(0))
    assert one.cases[4] == {WORD: set_, WORD + 4: set_, WORD + 8: clear}


def test_registers_of_accesses_that_acknowledge() -> None:
    found = predicate(f"{HEAD}stores = [{WORD:#x}]\nloads = [{WORD + 4:#x}]")
    assert found.stores == {WORD}
    assert found.loads == {WORD + 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("values = [1, 2, 3]", "controller.field[0].values: must be [first, last]"),
        ("values = [2, 1]", "controller.field[0].values: must be [first, last]"),
        ("values = [-1, 1]", "controller.field[0].values: must be a list of integers from 0"),
        ("mask = 0xFF00\nvalues = [0, 256]", "values: 256 is no value of the mask, 255 is its"),
        ("mask = 0", "controller.field[0].mask: must be from 1"),
        ("mask = 0x100000000", "controller.field[0].mask: must be from 1"),
        ("mask = 3\nwithout = [1]", "without: there are values below and above 1: give values"),
        ("mask = 1\nwithout = [0, 1]", "without: no value is left"),
        ("mask = 3\nwithout = []", "any word is pending: no value is left that means none"),
        ("values = [0, 32]\nselects = [0xF8000004]", "selects: 1 words have no bit of number 32"),
        ("enabled_by = [4]", "controller.field[0].enabled_by: unknown key"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        field(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[controller.field]]\nregisters = []", "controller.field[0].registers: names no word"),
        (
            "[[controller.raw]]\nregisters = [4, 8]\nenabled_by = [12]",
            "controller.raw[0].enabled_by: must have 2 words, as registers has, not 1",
        ),
        ("fields = 1", "controller.fields: unknown key"),
    ],
)
def test_rows_without_words_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        predicate(HEAD + text)
    assert message in str(error.value)


def test_a_delay_is_a_figure_with_a_source() -> None:
    top = TomlTable(tomllib.loads(f'{HEAD}delay = {{ value = 20, source = "clocks" }}'), "board")
    assert read_controller(top) == (PendingPredicate(), 20)
    assert top.sources["controller.delay"] == "clocks"
