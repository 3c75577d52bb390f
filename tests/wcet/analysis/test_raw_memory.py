"""Memory and symbols beside the ELF: code that was dumped from a running system."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from quoll.errors import InputError
from quoll.image.symbols import read_names
from tests.testing.quoll.building import build
from wcet.cli import main

ROM = 0xF0100000
KERNEL = """
extern unsigned scale(unsigned);
unsigned main(unsigned a) { return scale(a) + scale(a + 1); }
"""
CODE = """
static const unsigned table[4] = {3, 1, 4, 1};
__attribute__((noinline)) unsigned pick(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 23; i++) sum += table[(x + i) & 3];
    return sum;
}
unsigned scale(unsigned x) { return pick(x) * 5; }
unsigned main(unsigned x) { return scale(x); }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A kernel that calls into a ROM, the ROM's bytes, and the output of nm for it."""
    folder = tmp_path_factory.mktemp("rom")
    rom = build(CODE, optimise="-O1", link=(f"-Wl,-Ttext={ROM:#x}",))
    run(folder, "objcopy", "-O", "binary", "-j", ".text", "-j", ".rodata", str(rom), "rom.bin")
    names = run(folder, "nm", str(rom))
    (folder / "rom.map").write_text(names)
    scale = next(line.split()[0] for line in names.splitlines() if line.endswith(" scale"))
    link = ("-Wl,-Ttext=0xf0010000", f"-Wl,--defsym=scale=0x{scale}")
    return build(KERNEL, optimise="-O1", link=link), folder / "rom.bin", folder / "rom.map"


def run(folder: Path, tool: str, *arguments: str) -> str:
    done = subprocess.run([f"arm-none-eabi-{tool}", *arguments], cwd=folder, check=True,
                          capture_output=True, text=True)  # fmt: skip
    return done.stdout


def options(files: tuple[Path, Path, Path]) -> list[str]:
    return ["--raw", f"{files[1]}@{ROM:#x}:r", "--symbols", str(files[2])]


def test_dumped_code_is_followed_and_named(
    files: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    elf = str(files[0])
    assert main(["cfg", elf, "--entry", "main", "--json", "-"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert "not code" in alone["unresolved"][0]["reason"]
    assert main(["cfg", elf, "--entry", "0xf0010000", *options(files), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unresolved"] == []
    assert {f["name"] for f in found["functions"]} == {"main", "scale", "pick"}
    assert found["sha256"] != alone["sha256"]
    for command in (["disasm", elf, "pick"], ["callgraph", elf], ["loops", elf, "--nest"]):
        assert main([*command, "--entry", "0xf0010000", *options(files)]) == 0
        assert "pick" in capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_dumped_code_is_bounded(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    arguments = ["analyse", str(files[0]), "--platform", "kzm", "--entry", "0xf0010000", "--quiet"]
    assert main([*arguments, "--no-cache", *options(files), "--json", str(out)]) == 0
    entry = json.loads(out.read_text())["entries"]["0xf0010000"]
    assert [loop["bound"] for loop in entry["loops"]] == [23, 23]
    assert main([*arguments, "--no-cache"]) == 5
    assert "not code" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--raw", "rom.bin"], 2, "is not FILE@ADDRESS"),
        (["--raw", "rom.bin@100"], 2, "is not FILE@ADDRESS"),
        (["--raw", "absent.bin@0x100"], 3, "absent.bin cannot be read: No such file"),
        (["--symbols", "absent.map"], 3, "the list of symbols absent.map cannot be read"),
    ],
)
def test_wrong_options_are_refused(
    files: tuple[Path, Path, Path],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    assert main(["cfg", str(files[0]), *arguments]) == status
    assert message in capsys.readouterr().err


def test_lists_of_symbols(tmp_path: Path) -> None:
    path = tmp_path / "System.map"
    path.write_text(
        "c0008000 T stext\n         U absent\n         w weak\n\nc0008240 00000030 t local\n"
        "bf000001 t thumb\t[module]\nc0700000 B jiffies\nffff0000 A vectors\n"
    )
    found = [(s.name, s.value, s.size, s.kind, s.binding) for s in read_names(path)]
    assert found == [
        ("stext", 0xC0008000, 0, "STT_FUNC", "STB_GLOBAL"),
        ("local", 0xC0008240, 0x30, "STT_FUNC", "STB_LOCAL"),
        ("thumb", 0xBF000001, 0, "STT_FUNC", "STB_LOCAL"),
        ("jiffies", 0xC0700000, 0, "STT_OBJECT", "STB_GLOBAL"),
        ("vectors", 0xFFFF0000, 0, "STT_NOTYPE", "STB_GLOBAL"),
    ]
    for bad in ("stext", "c0008000 stext", "1c0008000 T stext", "zzz T stext"):
        path.write_text(f"c0000000 T first\n{bad}\n")
        with pytest.raises(InputError, match=r"System\.map:2: "):
            read_names(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_names(path)
