"""Code by others to extract: ``python -m campaigns.corpora [NAME...] [--seeds N]``.

    newlib      libc, libm and libgcc of Debian's cross compiler, per multilib
    picolibc    libc and libgcc of picolibc-arm-none-eabi, per multilib
    csmith      random programs, GCC and Clang, -O0 to -O3 and -Os, ARM and Thumb
    library     a program that runs much of newlib or of picolibc, per multilib, for execution
    kernel      the kernel of this repository, GCC and Clang, -O0 to -O2 and -Os

All programs go to ``build/corpora/NAME/*.elf``; existing files stay. Libraries are linked as a
whole, so that calls of functions that never return are real. Undefined symbols of a library become
functions that return at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from campaigns.corpora_kernel import build_kernel
from campaigns.corpora_packages import CORPORA, UNPACKED, environment, run, unpack_missing

__all__ = ["BUILDERS", "corpus", "main"]

GCC = "arm-none-eabi-gcc"
PACKAGES = ("csmith", "libcsmith-dev", "clang", "lld", "picolibc-arm-none-eabi")
NEWLIB = Path("/usr/lib/arm-none-eabi/newlib")
PICOLIBC = Path("usr/lib/picolibc/arm-none-eabi")
M_PROFILE = ("thumb/v6-m/nofp",)
THUMB_1 = ("thumb/nofp", *M_PROFILE)
LEVELS = ("O0", "O1", "O2", "O3", "Os")
CSMITH_SEEDS = 5
RUNNABLE = ("-nostartfiles", "-Wl,--no-warnings,--section-start=.init=0x20000")
WHOLE = ("-nostdlib", "-Wl,-e,memcpy", "-Wl,-z,muldefs", "-Wl,--no-warnings")
STUB = "void {}(void) {{}}\n"
STUBS = {"_exit": "void {}(void) {{ for (;;); }}\n"}
START = Path(__file__).with_name("corpora_start.c")


def corpus(name: str, seeds: int = CSMITH_SEEDS) -> list[Path]:
    """The programs of a corpus, built first where they are missing."""
    folder = CORPORA / name
    folder.mkdir(parents=True, exist_ok=True)
    return BUILDERS[name](folder, seeds)


def multilibs() -> list[tuple[str, list[str]]]:
    """Folders and flags of the A and R profiles up to ARMv7, and of Thumb-1."""
    found = []
    for line in run([GCC, "-print-multi-lib"]).splitlines():
        folder, _, flags = line.partition(";")
        m_profile = any(part.startswith(("v6-m", "v7-m", "v7e-m")) for part in folder.split("/"))
        v8 = "/v8" in folder
        if folder in THUMB_1 or not (m_profile or v8):
            found.append((folder, ["-" + flag for flag in flags.split("@") if flag]))
    return found


def _newlib(folder: Path, seeds: int) -> list[Path]:
    return [
        _whole(
            folder,
            name,
            flags,
            [NEWLIB / name / part for part in ("libc.a", "libm.a")],
        )
        for name, flags in multilibs()
    ]


def _picolibc(folder: Path, seeds: int) -> list[Path]:
    library = _picolibc_root() / "lib"
    return [_whole(folder, name, flags, [library / name / "libc.a"]) for name, flags in multilibs()]


def _picolibc_root() -> Path:
    """The folder of the installed or unpacked picolibc."""
    unpack_missing(PACKAGES)
    return next(path for root in (Path("/"), UNPACKED) if (path := root / PICOLIBC).is_dir())


def _whole(folder: Path, multilib: str, flags: Sequence[str], archives: Sequence[Path]) -> Path:
    """All members of ``archives`` and of libgcc in one program."""
    elf = folder / f"{_file_name(multilib)}.elf"
    if elf.exists():
        return elf
    libgcc = Path(run([GCC, *flags, "-print-libgcc-file-name"]).strip())
    parts: list[str | Path] = [*archives, libgcc]
    rest = elf.with_suffix(".undefined.o")
    source = rest.with_suffix(".c")
    source.write_text("".join(STUBS.get(name, STUB).format(name) for name in _undefined(parts)))
    run([GCC, *flags, "-w", "-fno-builtin", "-ffreestanding", "-c", source, "-o", rest])
    archived: list[str | Path] = ["-Wl,--whole-archive", *parts, "-Wl,--no-whole-archive"]
    run([GCC, *flags, *WHOLE, *archived, rest, "-o", elf])
    return elf


def _file_name(multilib: str) -> str:
    return "default" if multilib == "." else multilib.replace("/", "-")


def _undefined(archives: Sequence[str | Path]) -> list[str]:
    """Names that ``archives`` use and none of them defines."""
    used: set[str] = set()
    defined: set[str] = set()
    for line in run(["arm-none-eabi-nm", *archives]).splitlines():
        words = line.split()
        if words[-2:-1] == ["U"]:
            used.add(words[-1])
        elif len(words) == 3:
            defined.add(words[-1])
    return sorted(used - defined)


def _csmith(folder: Path, seeds: int) -> list[Path]:
    unpack_missing(PACKAGES)
    return [
        _random_program(folder, seed, compiler, level, thumb)
        for seed in range(1, seeds + 1)
        for compiler in ("gcc", "clang")
        for level in LEVELS
        for thumb in (False, True)
    ]


def _random_program(folder: Path, seed: int, compiler: str, level: str, thumb: bool) -> Path:
    state = "thumb" if thumb else "arm"
    elf = folder / f"{seed}-{compiler}-{level}-{state}.elf"
    if elf.exists():
        return elf
    source = folder / f"{seed}.c"
    if not source.exists():
        run(["csmith", "--seed", str(seed), "-o", source], cwd=folder, env=environment())
    target = ["-march=armv7-a", "-mfloat-abi=soft", f"-m{state}"]
    headers: list[str | Path] = ["-isystem", UNPACKED / "usr/include/csmith"]
    if compiler == "clang":
        headers += ["--target=arm-none-eabi", "-fshort-enums", "-isystem", "/usr/include/newlib"]
    item = elf.with_suffix(".o")
    command = [
        compiler if compiler == "clang" else GCC,
        *target,
        f"-{level}",
        "-g",
        "-w",
        "-std=gnu11",
    ]
    run([*command, *headers, "-c", source, "-o", item], env=environment())
    run([GCC, *target, *RUNNABLE, START, item, "-o", elf])
    item.unlink()
    return elf


def _library(folder: Path, seeds: int) -> list[Path]:
    """``corpora_library.c`` with both libraries, for each multilib that user-mode QEMU runs."""
    sources = [START, START.with_name("corpora_library.c")]
    picolibc = _picolibc_root()
    found = []
    for name, flags in multilibs():
        if name in M_PROFILE or name.startswith(("thumb/v7/", "thumb/v7+fp/")):
            continue  # no ARM code, as in corpora_start.c
        parts = [picolibc / "lib" / name / f"lib{part}.a" for part in ("c", "m", "dummyhost")]
        rest = ["-isystem", picolibc / "include", "-nostdlib", "-Wl,-e,begin"]
        rest += ["-Wl,--start-group", *parts, "-lgcc"]
        for library, options in (("", ["-lm"]), ("picolibc-", rest)):
            elf = folder / f"{library}{_file_name(name)}.elf"
            found.append(elf)
            if not elf.exists():
                run([GCC, *flags, "-O2", "-g", "-w", *RUNNABLE, *sources, *options, "-o", elf])
    return found


def _kernel(folder: Path, seeds: int) -> list[Path]:
    unpack_missing(PACKAGES)
    return [
        build_kernel(folder, compiler, level)
        for compiler in ("gcc", "clang")
        for level in ("O0", "O1", "O2", "Os")
    ]


BUILDERS: dict[str, Callable[[Path, int], list[Path]]] = {
    "newlib": _newlib,
    "picolibc": _picolibc,
    "csmith": _csmith,
    "library": _library,
    "kernel": _kernel,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the corpora that extraction is tried on.")
    parser.add_argument("names", nargs="*", choices=[*BUILDERS, []], help="all without any")
    parser.add_argument("--seeds", type=int, default=CSMITH_SEEDS, help="of csmith programs")
    options = parser.parse_args()
    for name in options.names or BUILDERS:
        programs = corpus(name, options.seeds)
        print(f"{name}: {len(programs)} programs")


if __name__ == "__main__":
    main()
