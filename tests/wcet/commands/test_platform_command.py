"""``wcet platform``: list, show, new, check, and its warnings of implausible values."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipeline import core as core_module
from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.platforms.controller_templates import controllers
from wcet.platforms.platform_model import DIRECTORY, load, names

SOURCE = "unsigned vector_svc(unsigned a) { return a + 1; } void exit_to_user(void) {}\n"
KERNEL = ("-Wl,-Ttext=0xf0010000",)
CONTROLLER = '\n[controller]\nsource = "manual"\n'
STORES = f"{CONTROLLER}stores = [0x40000000]\n[entries]"
WORDS = ", ".join(hex(0xF800_0200 + 4 * number) for number in range(32))
NUMBERS = (
    f"{CONTROLLER}[[controller.field]]\nregisters = [0xF8000000]\nvalues = [0, 1019]\n"
    f"selects = [{WORDS}]\n[entries]"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> str:
    """The text on stdout, then the text on stderr."""
    capsys.readouterr()
    try:
        found: object = main(["platform", *arguments])
    except SystemExit as end:  # argparse refuses the arguments
        found = end.code
    assert found == status
    captured = capsys.readouterr()
    return captured.out + captured.err


def board(*changes: tuple[str, str], base: str = "kzm") -> str:
    text = (DIRECTORY / f"{base}.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    Path("board.toml").write_text(text)
    return "board.toml"


def test_a_new_platform_loads_at_once_and_gives_the_same_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "written to mine.toml" in run(capsys, 0, "new", "mine", "--from", "kzm")
    out = run(capsys, 0, "check", "mine.toml")
    assert "nothing implausible" in out
    assert "only copied: " in out
    elf, cycles = str(build(SOURCE, link=KERNEL)), []
    for name in ("kzm", "mine.toml"):
        asked = ["--entry", "syscall", "--quiet", "--platform", name, "--json", "out.json"]
        assert main(["analyse", elf, *asked]) == 0
        document = json.loads(Path("out.json").read_text())
        cycles.append(document["entries"]["syscall"]["cycles"])
        listed = [text for text in document["assumptions"] if ": copied: figures of" in str(text)]
        assert len(listed) == (name != "kzm")
    assert cycles[0] == cycles[1]


def test_a_figure_that_is_looked_up_is_no_longer_copied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(capsys, 0, "new", "mine", "--from", "kzm")
    text = Path("mine.toml").read_text()
    assert text.count('"copied from kzm: ') == 15
    Path("mine.toml").write_text(text.replace('"copied from kzm: ', '"manual, '))
    assert run(capsys, 0, "check", "mine.toml") == "mine.toml: nothing implausible\n"


def test_all_platforms_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, 0, "new", "mine", "--from", "cubieboard")
    Path("wcet.toml").write_text('kernel = "a.elf"\n')
    Path("bad.toml").write_text("[caches]\nx = 1\n")
    lines = run(capsys, 0, "list").splitlines()
    assert [line.split()[0] for line in lines] == ["name", *names(), "bad.toml:", "mine.toml"]
    assert "caches.x: unknown key" in lines[-2]
    assert "cortex-a8    1,008  on" in lines[-1]
    assert len(run(capsys, 0, "list", str(DIRECTORY)).splitlines()) == 1 + 2 * len(names())
    assert "is no folder" in run(capsys, 3, "list", "nothing")


def test_one_is_shown_with_units_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in run(capsys, 0, "show", "kzm").splitlines()]
    assert ["latency.l2_hit", "26", "cycles", "paper,", "section", "4"] in lines
    assert "did you mean kzm?" in run(capsys, 3, "show", "kzn")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "kzm", "--from", "kzm"], "kzm is a platform of the project"),
        (["new", "../x", "--from", "kzm"], "is no name of a board"),
        (["new", "x", "--from", "kzm", "--output", "there"], "there is there already"),
        (["new", "x"], "required: --from"),
    ],
)
def test_new_replaces_nothing(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there").write_text("precious")
    assert said in run(capsys, 2, *arguments)
    assert [path.name for path in Path().iterdir()] == ["there"]
    assert Path("there").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["platform", "chek", "kzm"], "check"),
        (["analyse", "a.elf", "--share", "alwys"], "always"),
        (["completion", "bsh"], "bash"),
    ],
)
def test_what_was_meant_by_a_choice_is_said(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert f"; did you mean {meant}?" in capsys.readouterr().err


def test_a_core_of_its_own_stays_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("boards").mkdir()
    for suffix in ("csv", "toml"):
        shutil.copy(core_module.DIRECTORY / f"arm1136.{suffix}", f"boards/own.{suffix}")
    shutil.move(board(('name = "arm1136"', 'name = "own.csv"')), "boards/first.toml")
    base = ["new", "second", "--from", "boards/first.toml"]
    assert "own.csv beside boards/first.toml" in run(capsys, 2, *base)
    run(capsys, 0, *base, "--output", "boards/second.toml")
    assert "nothing implausible" in run(capsys, 0, "check", "boards/second.toml")
    rows = Path("boards/own.csv").read_text()
    Path("boards/own.csv").write_text(
        rows.replace("EXCEPTION_ENTRY,any,8,", "EXCEPTION_ENTRY,any,x,")
    )
    assert "'x' is no number of cycles" in run(capsys, 3, "check", "boards/second.toml")
    Path("boards/own.csv").write_text(rows)
    Path("boards/own.toml").unlink()
    assert "own.toml cannot be read" in run(capsys, 3, "check", "boards/second.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("532_000_000", "532", "clock_hz: 532 Hz: the unit is Hz"),
        ('value = 60, source = "paper, section 5.1"', 'value = 60, source = " "',
         "latency.memory_l2_off: it has no source"),
        ("value = 96", "value = 50", "latency.memory_l2_on: 50 cycles: a miss"),
        ("value = 26", "value = 96", "latency.l2_hit: 96 cycles: no less than memory, 96"),
        ("size = 16_384", "size = 512", "caches.l1i.size: 512 bytes: the unit is bytes"),
        ("line = 32", "line = 8", "caches.l1i.line: 8 bytes"),
        ("size = 131_072", "size = 8_192", "caches.l2.size: 8,192 bytes, less than caches.l1d"),
        ('kind = "cached"', 'kind = "uncached"', ""),
        ("0xF7FFFFFF]", "0xF7FFFFFE]", "not whole pages: the last address is included"),
        ("physical = 0x68000000", "physical = 0x80001000", "name the same physical memory"),
        ("physical = 0x68000000", "physical = 0xFFFFFF00", "behind the last physical address"),
        ("of = 0x80000000", "of = 0x70000000", "mirror: of = 0x70000000 is the physical address"),
        ("of = 0x80000000", "of = 0x88000000", "lies inside the memory that it mirrors"),
        ("vector = 0xFFFF0008", "vector = 0x8", "entries.syscall.vector: 0x00000008 is in no"),
        ("interrupt      =", "irq      =", "entries: none is called interrupt"),
        ("0xF8000058,", "0x68000058,", "pending: 0x68000058 is in no [[memory]]"),
        ("0xF800005C]", "0xF800005E]", "pending: 0xf800005e is no address of a word"),
        ("\n[entries]", NUMBERS, "controller.field[0]: 1,020 lines, each of which is an analysis"),
        ("\n[entries]", STORES, "controller.stores: 0x40000000 is in no [[memory]] of kind device"),
        ("bytes = 1_048_576", "bytes = 1_048_577", "tlb.large: 0xf0000000 to 0xf7ffffff is not"),
        ("value = 48", "value = 0", "core.fetch_ahead: 0 bytes"),
        ("l1 = true", "l1 = false", "dirty_victims.l1: false"),
    ],
)  # fmt: skip
def test_what_can_hardly_be_is_said(
    old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = board((old, new))
    assert said in run(capsys, 1 if said else 0, "check", file)


@pytest.mark.parametrize("name", controllers())
def test_a_new_platform_with_a_controller_loads(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("new", "mine", "--from", "kzm", "--controller", f"{name}@0xF8000000")
    run(capsys, 0, *asked)
    board = load("mine.toml").pending
    assert all(one.key.startswith("controller.") for one in board.fields)
    assert {register >> 16 for register in (*board.registers, *board.stores)} == {0xF800}
    run(capsys, 0, "new", "again", "--from", "mine.toml")
    assert load("again.toml").pending == board
    run(capsys, 0, "new", "words", "--from", "mine.toml", "--controller", "nonzero@0xF8000010,4096")
    assert load("words.toml").pending.registers == (4096, 0xF800_0010)
    assert len(load("words.toml").pending.fields) == 1


@pytest.mark.parametrize(
    ("controller", "said"),
    [
        ("nvic@0xE000E000", "no controller 'nvic'"),
        ("gic", "'gic' names no address"),
        ("gic@here", "'gic@here' names no address"),
        ("gic@1,2", "'gic@1,2' names no address"),
        ("gic@-4", "'gic@-4' names no address"),
        ("gic@0xFFFFF000", "the registers of 'gic@0xFFFFF000' end behind the last address"),
    ],
)
def test_a_controller_that_is_not_there_is_refused(
    controller: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in run(capsys, 2, "new", "mine", "--from", "kzm", "--controller", controller)
    assert not Path("mine.toml").exists()


def test_memory_that_is_nowhere_cached(capsys: pytest.CaptureFixture[str]) -> None:
    file = board(*[('kind = "cached"', 'kind = "uncached"')] * 2)
    assert "memory: no entry is cached" in run(capsys, 1, "check", file)


@pytest.mark.parametrize("name", ["kzm", "cubieboard"])
def test_the_shipped_ones_are_plausible(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, 0, "check", name).endswith(f"{name}.toml: nothing implausible\n")


def test_a_binary_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    elf = str(build(SOURCE, link=KERNEL))
    assert "nothing implausible" in run(capsys, 0, "check", "kzm", elf)


def test_writing_the_memory_that_is_missing_helps(capsys: pytest.CaptureFixture[str]) -> None:
    elf = str(build(SOURCE, link=("-Wl,-Ttext=0x80000000",)))
    run(capsys, 0, "new", "mine", "--from", "kzm")
    out = run(capsys, 1, "check", "mine.toml", elf)
    assert "memory: .text of the binary is in no [[memory]]" in out
    lines = out[out.index("[[memory]]\n") :].split("  not looked up")[0]
    with Path("mine.toml").open("a") as file:
        file.write(lines)
    assert "nothing implausible" in run(capsys, 0, "check", "mine.toml", elf)


def test_a_binary_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    plain = str(build("unsigned main(void) { return 1; }", link=KERNEL))
    out = run(capsys, 1, "check", "kzm", plain)
    assert "entries: the binary has none of them" in out
    assert "exits: no symbol of the binary" in out
    other = str(build(SOURCE, link=KERNEL, cpu="cortex-a8"))
    assert "not built for an ARM1136" in run(capsys, 3, "check", "kzm", other)
    file = board(("[caches.l1i]", '[caches.l1i]\nlocked = ["no..0x9"]\nlocked_ways = 1'))
    assert "'no' is neither an address" in run(capsys, 3, "check", file, plain)
