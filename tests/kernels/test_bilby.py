# SPDX-License-Identifier: BSD-2-Clause
"""The kernel `bilby`: it builds, it is what it claims to be, and it passes its tests.

What is read from the ELF is read with objdump and nm of the cross tool chain, so
that these tests share no code with the analyser.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness import build as products

ROOT = Path(__file__).resolve().parents[2]
BILBY = ROOT / "kernels" / "bilby"
BUILD = ROOT / "build" / "bilby" / "kzm-after"
RUN = BILBY / "run"
CROSS = "arm-none-eabi-"

TEXT_LIMIT = 36 * 1024
STACK_BYTES = 4096


def output(*command: str | Path, **options: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def make(folder: Path, *arguments: str) -> str:
    return output("make", "-C", folder, *arguments)


@pytest.fixture(scope="session")
def build() -> Path:
    """The build folder, up to date; made by one test process at a time."""
    BUILD.parent.mkdir(parents=True, exist_ok=True)
    with (BUILD.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(BILBY)
    return BUILD


# ---- TAP -----------------------------------------------------------------


@dataclass
class Tap:
    plan: int | None = None
    lines: list[tuple[bool, int, str]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


def read_tap(text: str) -> Tap:
    tap = Tap()
    for line in text.replace("\r", "").splitlines():
        if match := re.fullmatch(r"1\.\.(\d+)", line):
            assert tap.plan is None, "two plans"
            tap.plan = int(match[1])
        elif match := re.fullmatch(r"(ok|not ok) (\d+) - (.+)", line):
            tap.lines.append((match[1] == "ok", int(match[2]), match[3]))
        elif line != "TAP version 13":
            tap.other.append(line)
    return tap


def check_tap(text: str) -> Tap:
    """Fail unless every planned test ran, in order, and held."""
    tap = read_tap(text)
    assert tap.plan is not None, f"no plan in:\n{text}"
    assert [number for _, number, _ in tap.lines] == list(range(1, tap.plan + 1))
    assert not tap.other, tap.other
    assert all(good for good, _, _ in tap.lines), text
    return tap


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


def run_program(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(RUN), "kzm-after", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BILBY_TIMEOUT": "60"},
    )


# What issue "First light" promises, as words that some test's sentence contains.
PROMISES = [
    "send crosses address spaces",
    "non-blocking send",
    "receiver blocks",
    "reply-and-receive",
    "reply alone",
    "yield",
    "120 words",
    "capability arrives",
    "receive slot",
    "timer interrupts wake",
    "unmapped page reaches its handler",
    "cannot be executed reaches its handler",
    "undefined instruction reaches its handler",
    "32 levels deep",
    "random invocations",
]


def test_user_level_tests_pass(build: Path) -> None:
    done = run_program("tests")
    assert done.returncode == 0, done.stdout + done.stderr
    tap = check_tap(done.stdout)
    sentences = [sentence for _, _, sentence in tap.lines]
    assert len(set(sentences)) == len(sentences)
    for promise in PROMISES:
        assert any(promise in sentence for sentence in sentences), promise


@pytest.mark.parametrize("board", ["kzm", "cubieboard"])
def test_user_level_tests_pass_with_preemptible_reply_and_receive(board: str) -> None:
    name = f"{board}-latency"
    elf = products.kernel(name)
    assert "preemption_point_8" in symbols(elf)
    check_tap(output(RUN, name, "tests"))


@pytest.mark.parametrize("board", ["kzm", "cubieboard"])
def test_user_level_tests_pass_before_the_changes(board: str) -> None:
    name = f"{board}-before"
    table = symbols(products.kernel(name))
    assert "ready_bits" not in table
    assert not {f"preemption_point_{number}" for number in (2, 3, 4, 6, 8)} & set(table)
    check_tap(output(RUN, name, "tests"))


def test_hello(build: Path) -> None:
    done = run_program("hello")
    assert done.returncode == 0
    assert check_tap(done.stdout).plan == 1


def test_runs_are_identical(build: Path) -> None:
    assert run_program("tests").stdout == run_program("tests").stdout


EXCEPTION = re.compile(r"Taking exception \d+ \[(.+?)\] on CPU 0\n\.\.\.from EL(\d) to EL(\d)")


def test_each_entry_is_exercised_and_the_kernel_never_faults(build: Path, tmp_path: Path) -> None:
    log = tmp_path / "exceptions"
    done = run_program("tests", "-d", "int", "-D", str(log))
    assert done.returncode == 0
    taken: dict[str, set[str]] = {}
    for name, origin, _ in EXCEPTION.findall(log.read_text(encoding="utf-8")):
        taken.setdefault(name, set()).add(origin)
    taken.pop("Semihosting call", None)
    assert taken == {
        "SVC": {"0"},
        "Undefined Instruction": {"0"},
        "Prefetch Abort": {"0"},
        "Data Abort": {"0"},
        "IRQ": {"0", "1"},  # 1: the idle thread
    }


def test_run_refuses_what_does_not_exist(build: Path) -> None:
    done = run_program("no-such-program")
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    assert subprocess.run([str(RUN)], capture_output=True, check=False).returncode == 2


# ---- the build --------------------------------------------------------------

PRODUCTS = ["kernel.elf", "kernel.facts", "tests.elf", "linger.elf", "hello.elf"]


def copy_source(target: Path) -> Path:
    shutil.copytree(BILBY, target / "kernels" / "bilby")
    return target


def test_same_bytes_from_any_folder(build: Path, tmp_path: Path) -> None:
    short = copy_source(tmp_path / "a")
    spaces = copy_source(tmp_path / "a folder, with spaces")
    for folder in (short, spaces):
        make(folder / "kernels" / "bilby")
    for product in PRODUCTS:
        expected = (build / product).read_bytes()
        for folder in (short, spaces):
            built = folder / "build" / "bilby" / "kzm-after" / product
            assert built.read_bytes() == expected, built
    run = spaces / "kernels" / "bilby" / "run"
    done = subprocess.run([str(run), "kzm-after", "hello"], capture_output=True, check=False)
    assert done.returncode == 0


def test_build_is_incremental_and_follows_headers(build: Path, tmp_path: Path) -> None:
    folder = copy_source(tmp_path) / "kernels" / "bilby"
    make(folder)
    assert "Nothing to be done" in make(folder)
    limits = folder / "include" / "limits.h"
    text = limits.read_text(encoding="utf-8")
    limits.write_text(
        text.replace("#define RETYPE_OBJECTS_MAX 32", "#define RETYPE_OBJECTS_MAX 16"),
        encoding="utf-8",
    )
    assert limits.read_text(encoding="utf-8") != text
    products = tmp_path / "build" / "bilby" / "kzm-after"
    kernel = (products / "kernel.elf").read_bytes()
    assert "untyped.c" in make(folder)
    assert (products / "kernel.elf").read_bytes() != kernel
    assert re.search(r"loop untyped\.c:\d+ at most 17 ", (products / "kernel.facts").read_text())


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


# ---- the layout table ----------------------------------------------------------

LAYOUT = BILBY / "tools" / "layout.py"


def tables(preset: str = "after") -> list[Path]:
    """The layout tables of a preset."""
    names = output("make", "--silent", "-C", BILBY, f"PRESET={preset}", "tables").split()
    return [BILBY / name for name in names]


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
        ('capability a 1 "x"\ncapability b 1 "same number"\n', "same number"),
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


# ---- the ELF -------------------------------------------------------------------


@dataclass(frozen=True)
class Insn:
    address: int
    word: int
    mnemonic: str
    operands: str


@dataclass
class Function:
    name: str
    insns: list[Insn]
    data: dict[int, int] = field(default_factory=dict)  # words among the instructions


LINE = re.compile(r"^\s*([0-9a-f]+):\s+([0-9a-f]{8})\s+(\S+)\s*(.*)$")
LABEL = re.compile(r"^([0-9a-f]+) <(.+)>:$")
CODE = [".vectors", ".text", ".idle", ".boot"]


def disassemble(elf: Path, sections: list[str]) -> list[Function]:
    """Functions as objdump sees them."""
    functions: list[Function] = []
    arguments = [part for section in sections for part in ("-j", section)]
    for line in output(f"{CROSS}objdump", "-d", *arguments, elf).splitlines():
        if match := LABEL.match(line):
            functions.append(Function(match[2], []))
        elif (match := LINE.match(line)) and match[3].startswith("."):
            functions[-1].data[int(match[1], 16)] = int(match[2], 16)
        elif match:
            operands = match[4].split(";")[0].split("@")[0].strip()
            functions[-1].insns.append(
                Insn(int(match[1], 16), int(match[2], 16), match[3], operands)
            )
    return functions


def merge_labels(functions: list[Function]) -> list[Function]:
    """Labels inside a function (exit_to_user, preemption_point_1) belong to it."""
    merged: list[Function] = []
    for function in functions:
        if function.name.startswith(("exit_to_", "preemption_")) and merged:
            merged[-1].insns += function.insns
            merged[-1].data |= function.data
        else:
            merged.append(function)
    return merged


@pytest.fixture(scope="session")
def functions(build: Path) -> list[Function]:
    return merge_labels(disassemble(build / "kernel.elf", CODE))


def symbols(elf: Path) -> dict[str, int]:
    table = {}
    for line in output(f"{CROSS}nm", elf).splitlines():
        parts = line.split()
        if len(parts) == 3:
            table[parts[2]] = int(parts[0], 16)
    return table


# Encodings that the r0p4 ARM1136 lacks: (mask, value, what).
FORBIDDEN = [
    (0x0FF00000, 0x03000000, "movw"),
    (0x0FF00000, 0x03400000, "movt"),
    (0x0FFFFF00, 0x0320F000, "hint (nop, yield, wfe, wfi, sev)"),
    (0xFFFFFFF0, 0xF57FF040, "dsb"),
    (0xFFFFFFF0, 0xF57FF050, "dmb"),
    (0xFFFFFFF0, 0xF57FF060, "isb"),
    (0xFFFFFFFF, 0xF57FF01F, "clrex"),
    (0x0FF00FFF, 0x01B00F9F, "ldrexd"),
    (0x0FF00FFF, 0x01D00F9F, "ldrexb"),
    (0x0FF00FFF, 0x01F00F9F, "ldrexh"),
    (0x0FF00FF0, 0x01A00F90, "strexd"),
    (0x0FF00FF0, 0x01C00F90, "strexb"),
    (0x0FF00FF0, 0x01E00F90, "strexh"),
    (0x0FF0F0F0, 0x0730F010, "udiv"),
    (0x0FF0F0F0, 0x0710F010, "sdiv"),
    (0x0FE00070, 0x07C00010, "bfi, bfc"),
    (0x0FE00070, 0x07E00050, "ubfx"),
    (0x0FE00070, 0x07A00050, "sbfx"),
    (0x0FF000F0, 0x00600090, "mls"),
    (0x0FFF0FF0, 0x06FF0F30, "rbit"),
    (0x0FFFFFF0, 0x01600070, "smc"),
    (0x0F100010, 0x0E000010, None),  # mcr: see coprocessor()
    (0x0F100010, 0x0E100010, None),  # mrc
    (0x0F000010, 0x0E000000, "cdp or floating point"),
    (0x0E000000, 0x0C000000, None),  # ldc, stc, mcrr, mrrc
    (0x0F000000, 0x0F000000, "svc"),
    (0xFF000000, 0xF2000000, "Advanced SIMD"),
    (0xFF000000, 0xF3000000, "Advanced SIMD"),
]

# Coprocessor accesses the kernel may use: (opc1, CRn, CRm, opc2) of p15.
CP15 = {
    (0, 1, 0, 0), (0, 2, 0, 0), (0, 2, 0, 2), (0, 3, 0, 0),
    (0, 5, 0, 0), (0, 5, 0, 1), (0, 6, 0, 0),
    (0, 7, 0, 4),  # wait for interrupt
    (0, 7, 5, 0), (0, 7, 5, 4), (0, 7, 7, 0), (0, 7, 10, 1), (0, 7, 10, 4),
    (0, 8, 7, 0), (0, 8, 7, 2), (0, 13, 0, 1),
}  # fmt: skip


def refusal(word: int) -> str | None:
    """Why this instruction may not be in the kernel; None if it may."""
    for mask, value, name in FORBIDDEN:
        if word & mask != value or (word >> 28 == 0xF and mask >> 28 == 0):
            continue
        if name is not None:
            return name
        if (word >> 24) & 0xF == 0xE:
            place = (word >> 21 & 7, word >> 16 & 15, word & 15, word >> 5 & 7)
            if word >> 8 & 15 == 15 and place in CP15:
                return None
        return "coprocessor access"
    return None


REFUSED_SAMPLES = """
    movw r0, #1; movt r0, #1; nop; wfi; wfe; sev; yield; dsb; dmb; isb; clrex
    ldrexb r0, [r1]; ldrexh r0, [r1]; ldrexd r0, r1, [r2]
    strexb r0, r1, [r2]; strexh r0, r1, [r2]; strexd r0, r2, r3, [r4]
    udiv r0, r1, r2; sdiv r0, r1, r2; bfi r0, r1, #1, #2; bfc r0, #1, #2
    ubfx r0, r1, #1, #2; sbfx r0, r1, #1, #2; mls r0, r1, r2, r3; rbit r0, r1
    smc #0; svc #0; mrc p15, 0, r0, c13, c0, 2; mcr p15, 0, r0, c13, c0, 3
    mcr p15, 0, r0, c13, c0, 4; mrc p14, 0, r0, c0, c0, 0; mrrc p15, 0, r0, r1, c2
    vmov s0, r0; vadd.f32 s0, s1, s2; vadd.i32 d0, d1, d2; vldr s0, [r0]
"""


def test_the_detector_refuses_each_forbidden_encoding(tmp_path: Path) -> None:
    source = tmp_path / "samples.s"
    source.write_text(
        ".syntax unified\n.arch armv7-a\n.arch_extension idiv\n.arch_extension sec\n.fpu neon\n"
        + REFUSED_SAMPLES.replace(";", "\n").strip()
        + "\n",
        encoding="utf-8",
    )
    output(f"{CROSS}as", source, "-o", tmp_path / "samples.o")
    insns = disassemble(tmp_path / "samples.o", [".text"])[0].insns
    assert len(insns) == REFUSED_SAMPLES.count(";") + REFUSED_SAMPLES.strip().count("\n") + 1
    for insn in insns:
        assert refusal(insn.word), f"{insn.word:08x} {insn.mnemonic} {insn.operands}"


def test_no_forbidden_instruction(functions: list[Function]) -> None:
    assert sum(len(function.insns) for function in functions) > 1000
    for function in functions:
        for insn in function.insns:
            reason = refusal(insn.word)
            assert reason is None, f"{function.name} {insn.address:#x}: {reason}"


def test_wait_for_interrupt_only_when_idle(functions: list[Function]) -> None:
    users = {f.name for f in functions for i in f.insns if i.word & 0x0FFF0FFF == 0x0E070F90}
    assert users == {"idle_loop"}


def test_attributes_say_armv6(build: Path) -> None:
    attributes = output(f"{CROSS}readelf", "-A", build / "kernel.elf")
    assert re.search(r"Tag_CPU_arch: v6\s*$", attributes, re.M), attributes


def test_no_library_and_nothing_undefined(build: Path) -> None:
    elf = build / "kernel.elf"
    assert output(f"{CROSS}nm", "-u", elf) == ""
    names = set(symbols(elf))
    assert not {n for n in names if n.startswith(("__aeabi", "__gnu", "__div", "__udiv"))}
    assert not names & {"memcpy", "memset", "memmove", "memcmp", "abort"}


BRANCH = re.compile(r"^([0-9a-f]+) <([^+>]+)(?:\+0x[0-9a-f]+)?>$")


def branches(function: Function) -> list[tuple[Insn, int, str]]:
    """Direct branches and calls: (instruction, target, symbol of the target)."""
    found = []
    for insn in function.insns:
        if re.match(r"^blx?|^b", insn.mnemonic) and (match := BRANCH.match(insn.operands)):
            found.append((insn, int(match[1], 16), match[2]))
    return found


def call_graph(functions: list[Function]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for function in functions:
        targets = graph.setdefault(function.name, set())
        for insn, _, symbol in branches(function):
            if symbol != function.name or (
                insn.mnemonic.startswith("bl") and insn.mnemonic not in ("bls", "blt", "ble", "blo")
            ):
                targets.add(symbol)
    return graph


def test_no_recursion(functions: list[Function]) -> None:
    graph = call_graph(functions)
    assert {"sched_switch"} <= graph["sched_run"]
    state: dict[str, int] = {}

    def visit(name: str, path: list[str]) -> None:
        assert state.get(name) != 1, f"recursion: {' -> '.join([*path, name])}"
        if name not in state:
            state[name] = 1
            for target in graph.get(name, set()):
                visit(target, [*path, name])
            state[name] = 2

    for name in graph:
        visit(name, [])


def writes_pc(insn: Insn) -> bool:
    """Not a direct branch, and yet it goes somewhere."""
    m, o = insn.mnemonic, insn.operands
    return (
        bool(re.match(r"^(bx|blx|bxj)", m))
        or (
            re.match(r"^(ldr|mov|add|sub|rfe)", m) is not None
            and (o.startswith("pc,") or m.startswith("rfe"))
        )
        or (m.startswith(("ldm", "pop")) and re.search(r"\bpc\b", o) is not None)
    )


def test_no_indirect_call(functions: list[Function]) -> None:
    """Only returns, jump tables, the vectors' literals, boot's jump, and the exit."""
    for function in functions:
        for insn in function.insns:
            if not writes_pc(insn) or (re.match(r"^b", insn.mnemonic) and "<" in insn.operands):
                continue
            m, o = insn.mnemonic, insn.operands
            allowed = (
                (m.startswith("bx") and o == "lr")
                or (m.startswith(("pop", "ldm")) and "pc" in o and "^" not in o)
                or (m.startswith("ldr") and o.startswith("pc, [sp]"))
                or re.match(r"^(addls|ldrls) ", f"{m} ") is not None
                or (function.name.startswith("vector_") and m == "ldr")
                or (function.name == "_start" and f"{m} {o}" == "bx r3")
                or (m == "movs" and o == "pc, lr")
            )
            assert allowed, f"{function.name} {insn.address:#x}: {m} {o}"


def exception_returns(functions: list[Function]) -> set[int]:
    return {
        insn.address
        for function in functions
        for insn in function.insns
        if (insn.operands.startswith("pc,") and re.match(r"^(movs|subs|adds|ldm)", insn.mnemonic))
        or insn.mnemonic.startswith("rfe")
        or (insn.mnemonic.startswith("ldm") and "pc" in insn.operands and "^" in insn.operands)
    }


def test_exits_are_all_and_only_the_exception_returns(
    build: Path, functions: list[Function]
) -> None:
    listed = (BILBY / "EXITS").read_text(encoding="utf-8").split()
    table = symbols(build / "kernel.elf")
    named = {name for name in table if name.startswith("exit_to_")}
    assert sorted(listed) == sorted(named)
    assert listed
    returns = {table[name] for name in listed if name != "exit_to_interrupt"}
    assert returns == exception_returns(functions)


def test_a_preempted_path_ends_where_the_interrupt_is_handled(
    build: Path, functions: list[Function]
) -> None:
    at = symbols(build / "kernel.elf")["exit_to_interrupt"]
    (insn,) = [i for f in functions for i in f.insns if i.address == at]
    assert (insn.mnemonic, insn.operands.split()[1]) == ("bl", "<handle_interrupt>")


POINTS = re.compile(r"\bPREEMPTION_POINT\((\d+)\)")


def test_preemption_points_are_numbered_once_and_have_their_symbols(build: Path) -> None:
    """Over all presets each number is used once; a point of this build has two symbols."""
    numbers = [
        int(number)
        for path in sorted((BILBY / "src").glob("*.c"))
        for number in POINTS.findall(path.read_text(encoding="utf-8"))
    ]
    assert sorted(numbers) == sorted(set(numbers))
    table = symbols(build / "kernel.elf")
    built = {int(m[1]) for n in table if (m := re.fullmatch(r"preemption_point_(\d+)", n))}
    assert built <= set(numbers)
    assert len(built) >= 6
    assert {f"preemption_start_{number}" for number in built} <= set(table)
    listed = (BILBY / "docs" / "guide.md").read_text(encoding="utf-8")
    in_guide = {int(number) for number in re.findall(r"^\| (\d+) \|", listed, re.M)}
    assert in_guide == set(numbers)


def test_vectors_are_linked_where_they_run(build: Path) -> None:
    table = symbols(build / "kernel.elf")
    order = ["reset", "undefined", "svc", "prefetch_abort", "data_abort", "unused", "irq", "fiq"]
    for number, name in enumerate(order):
        assert table[f"vector_{name}"] == 0xFFFF0000 + 4 * number
    headers = output(f"{CROSS}readelf", "-lW", build / "kernel.elf")
    assert re.search(r"LOAD\s+0x\w+ 0xffff0000 0x80\w{6} ", headers), headers


def test_entry_symbols_are_functions_with_sizes(build: Path) -> None:
    listing = output(f"{CROSS}readelf", "-sW", build / "kernel.elf")
    for name in ["entry_svc", "entry_irq", "entry_undefined", "entry_prefetch_abort",
                 "entry_data_abort", "return_to_current", "kernel_panic", "idle_loop",
                 "vector_svc", "_start"]:  # fmt: skip
        match = re.search(rf"\s(\d+) FUNC\s+GLOBAL\s+DEFAULT\s+\d+ {name}$", listing, re.M)
        assert match, name
        assert int(match[1]) > 0, name


def test_size(build: Path) -> None:
    sizes = dict(
        re.findall(r"^(\.\w+)\s+(\d+)", output(f"{CROSS}size", "-A", build / "kernel.elf"), re.M)
    )
    total = sum(int(sizes.get(name, 0)) for name in (".text", ".rodata", ".idle", ".vectors"))
    assert 4096 < total <= TEXT_LIMIT


def test_the_stack_is_deep_enough(build: Path, functions: list[Function]) -> None:
    frames: dict[str, int] = {}
    for path in (build / "obj").glob("*.su"):
        for line in path.read_text(encoding="utf-8").splitlines():
            place, size, kind = line.split("\t")
            assert kind == "static", line
            frames[place.rsplit(":", 1)[1]] = int(size)
    graph = call_graph(functions)
    deepest: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in deepest:
            below = max((depth(target) for target in graph.get(name, ())), default=0)
            deepest[name] = frames.get(name, 0) + below
        return deepest[name]

    handlers = ["handle_syscall", "handle_interrupt", "handle_undefined",
                "handle_prefetch_abort", "handle_data_abort", "boot_main"]  # fmt: skip
    assert all(name in frames for name in handlers)
    worst = max(depth(name) for name in handlers)
    assert 0 < worst <= STACK_BYTES


# ---- loops ---------------------------------------------------------------------

FACTS = BILBY / "tools" / "facts.py"
FACT = re.compile(r"^(?:# )?loop (\S+):(\d+) (at most \w|is preempted)", re.M)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("for (i = 0; i < 3; i++)\n", "x.c:1: a loop without a bound"),
        ("/* bound: 3 */\nx = 1;\n", "x.c:1: a bound without a loop"),
        ("/* bound: NO_SUCH_LIMIT */\nfor (;x;)\n", "x.c:2"),
        ("do {\n", "x.c:1"),
        ("for (;;)\n", "x.c:1"),
        ("while (1)\n", "x.c:1"),
        ("goto out;\n", "x.c:1"),
    ],
)
def test_facts_refuse_a_loop_without_a_bound(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "x.c"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["python3", str(FACTS), "-I", str(BILBY / "include"), str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert message in done.stderr


def test_every_source_loop_is_annotated() -> None:
    sources = sorted((BILBY / "src").glob("*.c")) + sorted((BILBY / "include").glob("*.h"))
    text = output("python3", FACTS, "-I", BILBY / "include", *sources)
    loops = sum(
        len(re.findall(r"^\s*(?:for|while) \(", path.read_text(encoding="utf-8"), re.M))
        for path in sources
    )
    assert len(FACT.findall(text)) == loops > 10


def successors(function: Function) -> dict[int, set[int]]:
    """Control flow inside one function, calls stepped over."""
    inside = {insn.address for insn in function.insns}
    target_of = {insn.address: target for insn, target, _ in branches(function)}
    graph: dict[int, set[int]] = {}
    for position, insn in enumerate(function.insns):
        m = insn.mnemonic
        call = re.fullmatch(r"blx?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)?", m) \
            and m not in ("bls", "blt", "ble")  # fmt: skip
        out = graph.setdefault(insn.address, set())
        ends = m in ("b", "bx", "pop", "movs") and (m != "pop" or "pc" in insn.operands)
        if not ends or call:
            out.add(insn.address + 4)
        if insn.address in target_of and not call:
            out.add(target_of[insn.address])
        if m == "addls" and insn.operands.startswith("pc, pc"):
            for entry in function.insns[position + 1 :]:  # a table of branches
                if entry.mnemonic != "b":
                    break
                out.add(entry.address)
        if m == "ldrls" and re.match(r"pc, \[pc, \w+, lsl #2\]", insn.operands):
            at = insn.address + 8  # a table of addresses, after the branch to the default
            assert function.data.get(at) in inside, f"no table at {at:#x}"
            while function.data.get(at) in inside:
                out.add(function.data[at])
                at += 4
        out &= inside
    return graph


def components(graph: dict[int, set[int]], nodes: set[int]) -> list[set[int]]:
    """Strongly connected components with a cycle (Kosaraju, without recursion)."""
    order: list[int] = []
    seen: set[int] = set()
    for root in sorted(nodes):
        stack = [(root, iter(graph[root] & nodes))] if root not in seen else []
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(graph[target] & nodes)))
                    break
            else:
                order.append(node)
                stack.pop()
    before: dict[int, set[int]] = {node: set() for node in nodes}
    for node in nodes:
        for target in graph[node] & nodes:
            before[target].add(node)
    found, done = [], set()
    for root in reversed(order):
        if root in done:
            continue
        component, work = set(), [root]
        done.add(root)
        while work:
            node = work.pop()
            component.add(node)
            for source in before[node] - done:
                done.add(source)
                work.append(source)
        if len(component) > 1 or root in graph[root]:
            found.append(component)
    return found


def binary_loops(function: Function) -> list[set[int]]:
    """Natural loops, outermost first: components, then again without their headers."""
    graph = successors(function)
    loops: list[set[int]] = []
    work = [set(graph)]
    while work:
        nodes = work.pop()
        for component in components(graph, nodes):
            loops.append(component)
            headers = {n for n in component for s in set(graph) - component if n in graph[s]}
            work.append(component - (headers or {min(component)}))
    return loops


def source_lines(elf: Path) -> dict[int, set[tuple[str, int]]]:
    lines: dict[int, set[tuple[str, int]]] = {}
    pattern = re.compile(r"^(\S+)\s+(\d+)\s+0x([0-9a-f]+)")
    for line in output(f"{CROSS}objdump", "--dwarf=decodedline", elf).splitlines():
        if match := pattern.match(line):
            place = (match[1].rsplit("/", 1)[-1], int(match[2]))
            lines.setdefault(int(match[3], 16), set()).add(place)
    return lines


def test_every_loop_of_the_binary_has_a_fact_and_every_fact_a_loop(
    build: Path, functions: list[Function]
) -> None:
    text = (build / "kernel.facts").read_text(encoding="utf-8")
    facts = {(name, int(line)) for name, line, _ in FACT.findall(text)}
    lines = source_lines(build / "kernel.elf")
    found: set[tuple[str, int]] = set()
    boot = symbols(build / "kernel.elf")["_start"]
    count = 0
    for function in functions:
        if function.name in ("kernel_panic", "idle_loop"):
            continue  # for ever, by intention
        if function.insns and boot <= function.insns[0].address < 0xFFFF0000:
            continue
        for loop in binary_loops(function):
            here = {place for address in loop for place in lines.get(address, ())} & facts
            assert here, f"{function.name}: loop at {min(loop):#x} without a fact"
            found |= here
            count += 1
    assert found == facts
    assert count >= len(facts)
