# SPDX-License-Identifier: BSD-2-Clause
"""Lines locked in L1 and L2 (`PIN=l1`, `l2`): tables, kernels with them, forbidden operations."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from kernels.bilby.verification.fuzz.host import program, running
from kernels.bilby.verification.fuzz.run import symbols as host_symbols
from kernels.bilby.verification.spec.layout import API
from quoll.image.image import Image
from tests.testing.bilby.build import BILBY, CROSS, RUN, output, symbols
from tests.testing.bilby.region import FREE, OK, REGION, Region
from tests.testing.bilby.tap import check_tap
from tests.testing.harness import build as products
from tests.testing.harness.cases import spread
from wcet.platforms.platform_model import load

TOOL = BILBY / "tools" / "pinned.py"
LINE, SETS = 32, 128
NAME, OUTER = "kzm-latency-l1", "kzm-latency-l2"
EXECUTED = 0x001F3000  # an address of the first thread's table
NM = "f0010000 00000040 T first\nf0011020 00000004 T second\nf0012000 T top\n"


def pinned(folder: Path, text: str, *what: str, nm: str = NM) -> subprocess.CompletedProcess[str]:
    (folder / "list").write_text(text, encoding="utf-8")
    (folder / "nm").write_text(nm, encoding="utf-8")
    command = ["python3", str(TOOL), str(folder / "list"), str(folder / "nm"), *what]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_line_whose_place_is_taken_is_left_out(tmp_path: Path) -> None:
    text = "instructions\n  first\n  second\ndata\n  top -64\n"
    done = pinned(tmp_path, text, "report")
    assert done.stdout.splitlines() == [
        "instructions: 2 of 128 lines",
        "  left out: second 0xf0011020",
        "data: 2 of 128 lines",
    ]


def test_tables_take_the_same_room_without_symbols(tmp_path: Path) -> None:
    text = "instructions\n  first\ndata\n  top -64\n"
    full, empty = (pinned(tmp_path, text, "asm", nm=nm).stdout for nm in (NM, ""))
    assert full.count(".word") == empty.count(".word") == 2 * (SETS + 1)
    assert re.findall(r"word (0x0*[1-9a-f]\w*)", full) == [
        "0xf0010000", "0xf0010020", "0xf0011fc0", "0xf0011fe0",
    ]  # fmt: skip
    assert not re.findall(r"word 0x0*[1-9a-f]", empty)


def test_a_line_within_a_symbol(tmp_path: Path) -> None:
    done = pinned(tmp_path, "instructions\n  first+0x20 32\ndata\n", "asm")
    assert re.findall(r"word (0x0*[1-9a-f]\w*)", done.stdout) == ["0xf0010020"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("instructions\n  third\n", "list:2: the kernel has no symbol third"),
        ("data\n  top\n", "list:2: top has no size"),
        ("data\n  first+x 32\n", "list:2: 'x' is no number"),
        ("data\n  first+0x20\n", "list:2: first+0x20 has no size"),
        ("  first\n", "list:1: 'first' is in no section"),
        ("others\n  first\n", "list:1"),
    ],
)
def test_a_wrong_list_is_refused(tmp_path: Path, text: str, message: str) -> None:
    done = pinned(tmp_path, text, "report")
    assert done.returncode == 1
    assert message in done.stderr


@pytest.fixture(scope="module")
def folder() -> Path:
    return products.kernel(NAME, "kernel.elf", "platform.toml").parent


def words(kernel: Path, symbol: str) -> list[int]:
    """A table of the kernel, up to its end marker, as the ELF has it."""
    table = {s[2]: int(s[0], 16) for s in map(str.split, output(CROSS + "nm", kernel).splitlines())}
    at = table[symbol]
    dump = output(CROSS + "objdump", "-s", "-j", ".boot", f"--start-address={at:#x}",
                  f"--stop-address={at + 4 * (SETS + 1):#x}", kernel)  # fmt: skip
    rows = re.findall(r"^ [0-9a-f]{8} ((?:[0-9a-f]{8} ){1,4})", dump, re.M)
    found = [int.from_bytes(bytes.fromhex(word), "little") for row in rows for word in row.split()]
    return found[: found.index(0)]


def test_the_kernel_has_the_lines_of_its_own_symbols(folder: Path, tmp_path: Path) -> None:
    """Linked twice, it stays where it was; the analyser is told the same lines."""
    nm = output(CROSS + "nm", "-S", folder / "kernel.elf")
    done = pinned(tmp_path, (BILBY / "pinned.list").read_text(), "asm", nm=nm)
    assert done.stdout == (folder / "pinned.S").read_text()
    platform = tomllib.loads((folder / "platform.toml").read_text())
    for name, cache in (("instructions", "l1i"), ("data", "l1d")):
        lines = words(folder / "kernel.elf", f"pinned_{name}")
        assert 40 <= len(lines) <= SETS
        assert len({line // LINE % SETS for line in lines}) == len(lines)
        told = [[int(end, 0) for end in text.split("..")]
                for text in platform["caches"][cache]["locked"]]  # fmt: skip
        assert sorted(lines) == [at for low, high in told for at in range(low, high, LINE)]
        assert platform["caches"][cache]["locked_ways"] == 1


@pytest.mark.parametrize("name", [NAME, OUTER])
def test_nothing_after_boot_drops_or_unlocks_more_than_a_line(name: str) -> None:
    kernel = products.kernel(name, "kernel.elf")
    text = output(CROSS + "objdump", "-d", "-j", ".text", kernel)
    assert re.search(r"mcr\s+15, 0, \w+, cr7, cr5, \{1\}", text)
    assert not re.findall(r"mcr\s+15, 0, \w+, cr7, cr5, \{[02]\}", text)
    assert not re.findall(r"mcr\s+15, 0, \w+, cr7, cr(?:6|7),", text)
    assert not re.findall(r"mcr\s+15, 0, \w+, cr7, cr14, \{[02]\}", text)
    assert not re.findall(r"mcr\s+15, 0, \w+, cr9,", text)


def test_after_boot_one_function_writes_to_the_level_2_controller() -> None:
    """And only to its registers of operations on one line, and of completion."""
    kernel = products.kernel(OUTER, "kernel.elf")
    code = output(CROSS + "objdump", "-d", "-j", ".text", kernel)
    functions = re.split(r"^[0-9a-f]+ (?=<\w+>:$)", code, flags=re.M)
    (user,) = [function for function in functions if ".word\t0xf8003" in function]
    assert user.startswith("<pin_reach_memory>")
    assert set(re.findall(r"str\s+\w+, \[(?:\w+), #(\d+)\]", user)) == {"1840", "2032"}


def test_the_analyser_is_told_the_whole_image_in_level_2() -> None:
    kernel = products.kernel(OUTER, "kernel.elf", "platform-paper.toml")
    board = load(str(kernel.parent / "platform-paper.toml"))
    known = board.locking(Image.load(kernel)).hierarchy
    table = symbols(kernel)
    assert known.l2 is not None
    assert known.locked.holds(table["__image_start"], table["__vectors_load"] - 1)
    assert known.locked.holds(table["__bss_start"], table["__image_end"] - 1)
    assert known.memory.physical(table["vector_irq"]) == table["__vectors_physical"] + 0x18
    assert known.locked_i.holds_line(table["entry_irq"] // LINE)


def test_a_platform_without_level_2_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text("[caches.l1i]\n[caches.l1d]\n", encoding="utf-8")
    nm = NM + "f0010000 T __image_start\nf0014001 T __image_end\n"
    listed = "instructions\n  first\ndata\n"
    done = pinned(tmp_path, listed, "platform-l2", str(base), nm=nm)
    assert "the kernel has no symbol __vectors_physical" in done.stderr
    nm += "80012000 A __vectors_physical\n"
    done = pinned(tmp_path, listed, "platform-l2", str(base), nm=nm)
    assert done.returncode == 1
    assert "the platform file has no '[caches.l2]" in done.stderr


@pytest.mark.parametrize(("name", "program"), spread([(NAME, "loading"), (OUTER, "loading")], 2))
def test_programs_run(name: str, program: str) -> None:
    """Programs are loaded into pages that are made, written and executed."""
    products.kernel(name, "kernel.elf", f"{program}.elf")
    check_tap(output(RUN, name, program))


def test_the_other_board_has_no_way_to_lock() -> None:
    done = subprocess.run(
        ["make", "-C", str(BILBY), "BOARD=cubieboard", "PRESET=latency", "PIN=l1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "the L1 caches of the Cortex-A8 cannot be locked" in done.stderr


def test_new_memory_has_no_old_instructions() -> None:
    """Executed, deleted, made again: its lines were dropped one by one."""
    path = program("latency", "plain", "l1")
    with running(path) as host:
        region = Region(host, host_symbols(path))
        assert region.retype("FRAME_4K", 0) == OK
        words_ = [EXECUTED, API["RIGHT_READ"], API["MAP_EXECUTE"]]
        assert (
            region.invoke(FREE, API["LABEL_FRAME_MAP"], words_, [API["ROOT_PAGE_DIRECTORY"]]) == OK
        )
        host.syscall(API["SYS_YIELD"], [0] * 6)  # before it, the user executes the old content
        assert not host.is_published(REGION, 4096)
        assert region.delete(0) == OK
        assert region.retype("FRAME_4K", 0) == OK
        assert host.is_published(REGION, 4096)
