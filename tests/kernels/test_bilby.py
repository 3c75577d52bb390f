# SPDX-License-Identifier: BSD-2-Clause
"""The kernel `bilby`: it builds from any folder, and it passes its tests on KZM."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.testing.bilby.build import (
    BILBY,
    BOARDS,
    ROOT,
    RUN,
    check_exceptions,
    make,
    output,
    run_program,
    symbols,
    tables,
)
from tests.testing.bilby.tap import PROMISES, check_tap
from tests.testing.harness import build as products
from tests.testing.harness.cases import spread


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok 1 - no plan\n",
        "1..2\nok 1 - one is missing\n",
        "1..1\nok 1 - a\nok 2 - one too many\n",
        "1..2\nok 2 - out of\nok 1 - order\n",
        "1..1\nnot ok 1 - failed\n",
        "1..1\nok 1 - a\nBail out! reason\n",
        "1..1\n1..1\nok 1 - two plans\n",
    ],
)
def test_bad_tap_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        check_tap(text)


INTERRUPTS = re.compile(r"# interrupts \d+\r?\n")
Run = tuple[str, Path]


@pytest.fixture(scope="module")
def logged(suite_run: Path) -> Run:
    """The user-level test suite, and the log of every exception that is taken."""
    text = (suite_run / "output").read_text(encoding="utf-8")
    return text, suite_run / "exceptions"


def test_user_level_tests_pass(logged: Run) -> None:
    tap = check_tap(logged[0])
    sentences = [sentence for _, _, sentence in tap.lines]
    assert len(set(sentences)) == len(sentences)
    for promise in PROMISES:
        assert any(promise in sentence for sentence in sentences), promise


@pytest.mark.parametrize("board", spread(BOARDS, 1))
def test_reply_and_receive_has_a_preemption_point(board: str) -> None:
    assert "preemption_point_8" in symbols(products.kernel(f"{board}-latency", "kernel.elf"))


@pytest.mark.parametrize("board", spread(BOARDS, 1))
def test_preemption_points_are_missing_before_the_changes(board: str) -> None:
    table = symbols(products.kernel(f"{board}-before", "kernel.elf"))
    assert "ready_bits" not in table
    assert not {f"preemption_point_{number}" for number in (2, 3, 4, 6, 8)} & set(table)


# Ten seconds each. test_bilby_cubieboard.py runs the suite on the preset ``after`` of that board.
SUITES = [f"{board}-{preset}" for preset in ("latency", "before") for board in BOARDS]


@pytest.mark.parametrize("name", spread(SUITES, 1))
def test_user_level_tests_pass_in_other_presets(name: str) -> None:
    products.kernel(name, "kernel.elf", "tests.elf")
    check_tap(output(RUN, name, "tests"))


def test_hello(build: Path) -> None:
    done = run_program("hello")
    assert done.returncode == 0
    assert check_tap(done.stdout).plan == 1


@pytest.mark.parametrize("program", ["pingpong", "latency"])
def test_runs_are_identical(build: Path, program: str, tmp_path: Path) -> None:
    """Also without a log, so that recordings show the usual execution; one with interrupts."""
    logged = run_program(program, "-d", "int", "-D", str(tmp_path / "exceptions"))
    assert check_tap(INTERRUPTS.sub("", logged.stdout)).lines
    assert run_program(program).stdout == logged.stdout


def test_each_entry_is_exercised_and_the_kernel_never_faults(logged: Run) -> None:
    check_exceptions(logged[1], idle="1")


def test_run_refuses_what_does_not_exist(build: Path) -> None:
    done = run_program("no-such-program")
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    assert subprocess.run([str(RUN)], capture_output=True, check=False).returncode == 2


PROGRAMS = [
    "tests", "linger", "hello", "pingpong", "latency", "steer", "loading", "demo", "ordinary",
    "thumb-ordinary",
]  # fmt: skip
KERNEL = ["kernel.elf", "kernel.facts", "kernel.loops.csv"]
PRODUCTS = [*KERNEL, *(f"{p}.elf" for p in PROGRAMS)]
ELSEWHERE = [
    *KERNEL,
    *(f"{p}.elf" for p in spread(["hello", "demo", "thumb-ordinary", *PROGRAMS], 1)),
]


def test_another_folder_gives_the_same_bytes_and_follows_headers(
    build: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "a folder, with spaces"
    folder = elsewhere / "kernels" / "bilby"
    shutil.copytree(BILBY, folder)
    goals = [f"../../build/bilby/kzm-after/{product}" for product in ELSEWHERE]
    make(folder, *goals)
    products = elsewhere / "build" / "bilby" / "kzm-after"
    for product in ELSEWHERE:
        assert (products / product).read_bytes() == (build / product).read_bytes(), product
    run = [str(folder / "run"), "kzm-after", "hello"]
    assert subprocess.run(run, capture_output=True, check=False).returncode == 0
    assert make(folder, *goals).count("is up to date") == len(goals)
    limits = folder / "include" / "limits.h"
    text = limits.read_text(encoding="utf-8")
    limits.write_text(
        text.replace("#define RETYPE_OBJECTS_MAX 32", "#define RETYPE_OBJECTS_MAX 16"),
        encoding="utf-8",
    )
    assert limits.read_text(encoding="utf-8") != text
    of_one = products / "obj" / "untyped.c.o"
    before = of_one.read_bytes()
    assert "untyped.c" in make(folder, "--dry-run", goals[0])
    make(
        folder,
        *(f"../../build/bilby/kzm-after/{one}" for one in ("kernel.loops.csv", "obj/untyped.c.o")),
    )
    assert of_one.read_bytes() != before
    assert re.search(r"untyped\.c:\d+,17,", (products / "kernel.loops.csv").read_text())


def test_no_path_of_the_machine_in_the_elf(build: Path) -> None:
    for product in PRODUCTS:
        assert str(ROOT).encode() not in (build / product).read_bytes()


def test_every_file_names_its_licence() -> None:
    skipped = {".md"}
    for path in sorted(BILBY.rglob("*")):
        if (
            path.is_file()
            and path.suffix not in skipped
            and path.name != "EXITS"
            and "__pycache__" not in path.parts
        ):
            head = path.read_text(encoding="utf-8")[:200]
            assert "SPDX-License-Identifier: BSD-2-Clause" in head, path


LAYOUT = BILBY / "tools" / "layout.py"


def test_layout_page_is_current() -> None:
    page = output("python3", LAYOUT, *tables(), "doc")
    assert (BILBY / "docs" / "layout.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('capability a 1 "x"\n  f 0 7:4 "overlaps the number"\n', "line 2"),
        ('capability a 1 "x"\n  f 1 7:0 "x"\n  g 1 8:7 "overlaps f"\n', "line 3"),
        ('capability a 1 "x"\n  f 2 7:0 "no such word"\n', "line 2"),
        ('object a 16 "x"\n  f 0 word_t "x"\n  g 8 word_t[2] "a gap"\n', "line 3"),
        ('object a 16 "x"\n  f 0 word_t[3] "too short"\n', "12 bytes"),
        ('object a 8 "x"\n  f 0 word_t[2] "x"\n  g 5 word_t inside f "leaves f"\n', "line 3"),
        ('object a 4 "x"\n  f 0 word_t "x"\n  g 0 byte_t inside h "not f"\n', "line 3"),
        ('capability a 1 "x"\ncapability b 1 "same number"\n', "same number"),
        ('object a 4 "x"\n  f 0 word_t "x"\nextend b 8\n', "line 3"),
        ('object a 4 "x"\n  f 0 word_t "x"\nextend a 16\n  g 4 word_t "x"\n', "8 bytes, not 16"),
    ],
)
def test_bad_layout_is_refused(tmp_path: Path, table: str, message: str) -> None:
    path = tmp_path / "table"
    path.write_text(table, encoding="utf-8")
    done = subprocess.run(
        ["python3", str(LAYOUT), str(path), "c"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert message in done.stderr
