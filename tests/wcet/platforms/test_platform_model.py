"""Platform files: the two that ship, the choice of one, and refused contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from cache.initial import InitialContentsKind
from cache.reference import HitClass
from quoll.assumptions import RETURN_STACK, WRONG_PATHS, WRONG_RETURNS
from quoll.errors import InputError
from quoll.image.image import Image
from quoll.image.memory_map import Cacheability
from wcet.platforms.platform_model import DIRECTORY, Platform, for_image, load, names

KZM = (DIRECTORY / "kzm.toml").read_text()


OFF = 'predictor = "off"\nmodel = "flag-distance"'
PREDICTED = 'predictor = "arm1136-static"\nmodel = "flag-distance"'


def test_shipped_platforms_load() -> None:
    assert {"cubieboard", "kzm", "kzm-paper"} <= set(names())
    for name in names():
        platform = load(name)
        assert platform.name == name
        assert set(platform.entries) == {
            "syscall",
            "undefined",
            "prefetch-abort",
            "data-abort",
            "interrupt",
        }
        assert all(text.startswith(f"platform {name}: ") for text in map(str, platform.assumptions))


@pytest.mark.parametrize(
    ("cpu", "architecture"), [("6J", "v6"), ("ARM1136JF-S", None), ("arm1136j(f)-s", "v6")]
)
def test_chosen_by_build_attributes(cpu: str, architecture: str | None) -> None:
    platform, reason = for_image(cpu, architecture)
    assert platform.name == "kzm"
    assert reason == f"Tag_CPU_name is {cpu}"


def test_the_cortex_a8_is_chosen_by_what_gcc_writes() -> None:
    assert for_image("7-A", "v7")[0].name == "cubieboard"
    assert for_image("Cortex-A8", None)[0].name == "cubieboard"


def test_chosen_by_architecture_when_the_cpu_is_unknown() -> None:
    assert for_image("Gadget-3", "v6")[1] == "Tag_CPU_arch is v6"


@pytest.mark.parametrize(("cpu", "architecture"), [(None, None), ("Cortex-M3", "v7-M")])
def test_no_platform_fits(cpu: str | None, architecture: str | None) -> None:
    with pytest.raises(InputError, match="no platform is known"):
        for_image(cpu, architecture)


def test_assumptions_quote_the_figures() -> None:
    texts = list(map(str, load("kzm").assumptions))
    assert (
        "platform kzm: fetch-ahead: at most 48 bytes are fetched past a transfer of control"
        in texts
    )


def test_miss_costs_are_computed_from_their_parts() -> None:
    off, on = load("kzm").timing.memory, load("kzm").with_l2(True).timing.memory
    assert (off.fetch_miss(None), off.load_miss(None), off.store_word(None)) == (63, 123, 60)
    assert (on.fetch_miss(HitClass.AH), on.fetch_miss(HitClass.NC)) == (29, 195)
    assert (on.load_miss(HitClass.AH), on.load_miss(HitClass.NC)) == (29 + 192, 195 + 192)
    assert (on.store_word(HitClass.AH), on.store_word(HitClass.NC)) == (26, 192)
    paper = load("kzm-paper").with_l2(True).timing.memory
    assert (
        paper.fetch_miss(HitClass.AH),
        paper.fetch_miss(HitClass.NC),
        paper.load_miss(HitClass.NC),
    ) == (
        26,
        96,
        96,
    )


def test_l2_is_off_unless_asked_for() -> None:
    platform = load("kzm")
    assert not platform.l2_enabled
    assert platform.with_l2(True).l2_enabled
    assert platform.with_l2(True).with_l2(False) == platform


def test_memory_map() -> None:
    memory = load("kzm").hierarchy.memory
    assert memory.cacheability(0xF0010000, 0xF001FFFF) is Cacheability.ALWAYS
    assert memory.cacheability(0xF8000000, 0xF8000003) is Cacheability.NEVER
    assert memory.cacheability(0xF7FFFFFC, 0xF8000003) is Cacheability.MAYBE
    assert memory.cacheability(0x10000, 0x10003) is Cacheability.MAYBE
    assert memory.physical(0xF0010234) == 0x80010234
    assert memory.physical(0xFFFF0008) is None
    assert memory.fixed(0xFFFF0008)
    assert not memory.fixed(0x8000)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("l2_hit = {", "l2_hitt = {", "latency.l2_hit: missing"),
        ('kind = "device"', 'kind = "magic"', r"memory\[1\].kind: must be one of"),
        ("[caches.l1d]", '[caches.l1d]\ninitial = "empty"', "caches.l1d.initial: must be one of"),
        ("[caches.l1i]", "[caches.l1i]\nwrite_through = true", "write_through: unknown key"),
        ("size = 16_384", "size = 16_383", "caches.l1i.size: must be a power of two"),
        ("value = 60,", "value = true,", "latency.memory_l2_off.value: must be an integer"),
        ("value = 60,", "value = 0,", "must be from 1"),
        ("0xF8000FFF]", "0xF7000000]", r"memory\[1\].virtual: must be"),
        ("[0xF8000000,", "[0xF7FFFFFF,", "overlap"),
        ("fixed = true", "fixed = 1", r"memory\[0\].fixed: must be true or false"),
        ("[tlb]\n", "[tlb]\nextra = 1\n", "tlb.extra: unknown key"),
        (
            OFF,
            PREDICTED.replace("flag-distance", "core-rows"),
            "needs branch.model = flag-distance",
        ),
        (OFF, PREDICTED.replace("static", "perfect"), "branch.predictor: must be one of"),
        ("name =", "nom =", ": name: missing"),
        ("[entries]", "[entries", "not a TOML file"),
        ("[assumptions]", "[assumption]", "assumptions: missing"),
        ("{fetch_ahead} bytes", "{fetchahead} bytes", "assumptions.fetch-ahead: unknown figure"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in KZM
    file = tmp_path / "board.toml"
    file.write_text(KZM.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as error:
        load(str(file))
    assert str(file) in str(error.value)


def test_predicted_branches_are_of_one_core_and_assume_translations(tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    file.write_text(KZM.replace(OFF, PREDICTED))
    board = load(str(file))
    assert board.hierarchy.prediction is board.timing.branches.prediction is not None
    assert any(assumed.kind is WRONG_PATHS for assumed in board.assumptions)
    assert not any(assumed.kind is WRONG_PATHS for assumed in load("kzm").assumptions)
    file.write_text(KZM.replace(OFF, PREDICTED.replace("static", "returns")))
    assumed = {assumption.kind for assumption in load(str(file)).assumptions}
    assert {WRONG_RETURNS, RETURN_STACK} <= assumed
    file.write_text(KZM.replace(OFF, PREDICTED.replace("static", "any-returns")))
    assumed = {assumption.kind for assumption in load(str(file)).assumptions}
    assert WRONG_RETURNS in assumed
    assert not assumed & {WRONG_PATHS, RETURN_STACK}
    with pytest.raises(InputError, match="wrong paths are not charged"):
        board.with_tlb("last-page")
    file.write_text(KZM.replace(OFF, PREDICTED).replace("value = 48", "value = 200"))
    with pytest.raises(InputError, match="fetch_ahead is at most 128"):
        load(str(file))
    file.write_text(KZM.replace(OFF, PREDICTED).replace('"arm1136"', '"cortex-a8"'))
    with pytest.raises(InputError, match="issues two instructions"):
        load(str(file))


def test_unknown_name_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no platform 'kzn'.*kzm"):
        load("kzn")
    with pytest.raises(InputError, match="No such file"):
        load(str(tmp_path / "none.toml"))


def test_translations_are_assumed_or_charged() -> None:
    platform = load("kzm")
    assert platform.timing.tlb is None
    charged = platform.with_tlb("last-page")
    assert charged.timing.tlb is not None
    assert charged.timing.tlb.walk(60) == 130
    assert charged.timing.tlb.page(0xF0123456) == 0xF0100000
    assert not any("are in the TLBs" in text for text in map(str, charged.assumptions))
    assert any(
        text.startswith("platform kzm: tlb-walks: a translation that is not")
        for text in map(str, charged.assumptions)
    )
    with pytest.raises(InputError, match="no figures for table walks"):
        load("kzm-paper").with_tlb("last-page")


def test_writes_and_initial_states(tmp_path: Path, kernel: Path) -> None:
    """Keys of L1D, and of both first-level caches; their assumptions are listed."""
    path = tmp_path / "board.toml"

    def board(text: str, level: str = "l1d") -> Platform:
        path.write_text(KZM.replace(f"[caches.{level}]\n", f"[caches.{level}]\n{text}\n"))
        return load(str(path)).locking(Image.load(kernel))

    through = board("write_allocate = true\nwrite_through = true")
    assert through.hierarchy.l1d.write_allocate
    assert through.timing.memory.write_allocate
    assert not through.timing.memory.dirty_l1_victims, "no line is dirty"
    held = board('initial = "cold"\nheld = ["vector_irq..0xFFFF0020"]', "l1i").hierarchy
    assert held.initial_i.contents is InitialContentsKind.COLD
    assert held.initial_i.held.holds(0xFFFF0018, 0xFFFF001F)
    assert not held.initial_d
    assert not held.from_anywhere.initial_i
    for text, said in (
        ('held = ["0xF0010000..0xF0018000"]', "4 ways do not hold all of it"),
        ('held = ["0x10000..0x10020"]', "not in cached memory of fixed translation"),
        ('held = ["nothing..0xF0012000"]', "caches.l1d.held: 'nothing' is neither"),
    ):
        with pytest.raises(InputError, match=said):
            board(text)


def test_lines_locked_in_l1(tmp_path: Path, kernel: Path) -> None:
    """As in L2: one way stays free, and the locked lines have to fit the others."""
    start = "[caches.l1i]\n"
    assert start in KZM

    def locking(text: str) -> Path:
        path = tmp_path / "locking.toml"
        path.write_text(KZM.replace(start, f"{start}{text}\n"))
        return path

    image = Image.load(kernel)
    path = locking('locked = ["vector_irq..0xFFFF0020", "0xF0010000..0xF0011000"]\nlocked_ways = 2')
    board = load(str(path)).locking(image).hierarchy
    assert board.locked_i.holds(0xF0010000, 0xF0010FFF)
    assert not board.locked_i.holds(0xF0011000, 0xF0011000)
    assert (board.l1i.free_ways, board.l1d.free_ways) == (2, 4)
    assert not board.locked_d
    for text, said in (
        ('locked = ["0xF0010000..0xF0012000"]\nlocked_ways = 1', "do not hold all"),
        ('locked = ["nothing..0xF0012000"]\nlocked_ways = 1', "neither an address nor a symbol"),
        ('locked = ["0xF0010000..0xF0010020"]\nlocked_ways = 4', "stays free"),
    ):
        with pytest.raises(InputError, match=said):
            load(str(locking(text))).locking(image)
