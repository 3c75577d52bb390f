"""Text files of executed addresses: each form of a line, and every malformed one."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from quoll.errors import InputError
from quoll.image.image import Image
from quoll.recordings.address_trace import parse_addresses, read_recording
from tests.testing.harness.build import ROOT
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import address, build
from tests.testing.wcet.programs import run

PROGRAM = """
int table[8];
__attribute__((noinline))
int work(int n) { int x = 0; while (n-- > 0) x += table[n & 7]; return x; }
int main(int n) { return n & 1 ? work(n & 7) : work(2) + 1; }
"""
PAGE = (ROOT / "docs" / "hardware-traces.md").read_text()


@pytest.fixture(scope="module", params=[False, True], ids=["arm", "thumb"])
def image(request: pytest.FixtureRequest) -> Image:
    thumb: bool = request.param
    return Image.load(build(PROGRAM, thumb=thumb, cpu="cortex-a8"))


def parsed(text: str, image: Image) -> list[tuple[list[int], int | None]]:
    trace = parse_addresses(text, "t.txt", image)
    return [(list(one.pcs), one.measured) for one in trace.executions]


def size_at(addr: int, image: Image) -> int:
    code = image.read(addr, 2)
    assert code is not None
    return 4 if image.thumb_at(addr) is not True or code[1] >> 3 >= 0x1D else 2


def ranges(pcs: list[int], image: Image) -> str:
    """The execution as a decoder prints it: a line for each run of code."""
    first, lines = pcs[0], []
    for here, following in pairwise([*pcs, 0]):
        end = here + size_at(here, image)
        if following != end:
            lines.append(f"{first:x}:{end:x}")
            first = following
    return "\n".join(lines)


def test_addresses_and_ranges_give_the_executed_path(image: Image) -> None:
    """The executions of the interpreter, written in both forms."""
    main = address(image, "main")
    thumb = image.thumb_at(main) is True
    for seed in range(cases(6)):
        pcs, _ = run(image, main, Random(seed), thumb=thumb)
        assert parsed("\n".join(f"{pc | thumb:08x}" for pc in pcs), image) == [(pcs, None)]
        assert parsed(ranges(pcs, image) + "\ncycles 12\n", image) == [(pcs, 12)]


def test_executions_end_at_empty_lines_and_cycles(image: Image) -> None:
    text = "# a\n8000\n0x8004 # b\ncycles 5\n\n\n8000\n# c\n8004\n\n8008"
    assert parsed(text, image) == [
        ([0x8000, 0x8004], 5),
        ([0x8000, 0x8004], None),
        ([0x8008], None),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("8000\nhello\n", "t.txt:2"),
        ("8000\ncycles -1\n", "t.txt:2"),
        ("0:100\n", "t.txt:1: 0x0 is not code"),
        ("123456789\n", "t.txt:1"),
        ("# nothing\n\n", "no executed address"),
    ],
)
def test_a_malformed_line_is_named(text: str, where: str, image: Image) -> None:
    with pytest.raises(InputError, match=where):
        parse_addresses(text, "t.txt", image)


PERF = "        0000000080000138 \n80000140\n 80000138\n"
OPENCSD = """\
Idx:26; ID:10; OCSD_GEN_TRC_ELEM_INSTR_RANGE(exec range=0x80000138:[0x80000140] num_i(2) E --- )
Idx:27; ID:10; OCSD_GEN_TRC_ELEM_CYCLE_COUNT( [CC=40]; )
Idx:28; ID:10; OCSD_GEN_TRC_ELEM_INSTR_RANGE(exec range=0x80000164:[0x8000016c] num_i(2) E BR )
Idx:29; ID:10; OCSD_GEN_TRC_ELEM_CYCLE_COUNT( [CC=2]; )
Idx:30; ID:10; OCSD_GEN_TRC_ELEM_INSTR_RANGE(exec range=0x80000138:[0x80000140] num_i(2) E --- )
"""


@pytest.mark.parametrize(
    ("tool", "printed", "lines"),
    [
        ("perf", PERF, ["80000138", "80000140", "", "80000138"]),
        (
            "trc_pkt_lister",
            OPENCSD,
            ["80000138:0x80000140", "80000164:0x8000016c", "cycles 42", "80000138:0x80000140"],
        ),
    ],
)
def test_the_converters_of_the_page(tool: str, printed: str, lines: list[str]) -> None:
    """Each command of the page is run with the output of the tool in its place."""
    start = PAGE.index(f"    {tool} ")
    command = PAGE[start : PAGE.index("\n\n", start)].partition("|")[2]
    done = subprocess.run(
        ["sh", "-c", command], input=printed, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines() == lines


def test_a_file_of_neither_kind_is_refused(tmp_path: Path, image: Image) -> None:
    file = tmp_path / "file"
    for content, said in ((b"\0\1", "not a recording"), (b"\xff\xfe", "file:1")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=said):
            read_recording(file, image)
