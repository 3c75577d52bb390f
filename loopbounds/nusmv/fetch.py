"""Download NuSMV from the package index into the user's data folder, with a checked checksum.

Debian has no package of it. A wheel carries it whole, as one library; pip compares the checksum of
the wheel with the one in ``requirements.txt`` beside this file. The library is put into its place
only after it has proved and refuted an invariant.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from loopbounds.budgets.budget import ProcessLimits
from loopbounds.nusmv.nusmv_library import of_user
from loopbounds.nusmv.nusmv_run import check_invariants
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from quoll.errors import SolverError

__all__ = ["fetch"]

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSIDE = "lib/libdependencies.so"  # of the wheel
MACHINE = ("Linux", "x86_64")
# The wheel is never installed: it is for an obsolete version of Python.
DOWNLOAD = (
    *("download", "--quiet", "--pre", "--no-deps", "--only-binary", ":all:"),
    *("--python-version", "3.6", "--implementation", "cp", "--abi", "cp36m"),
    *("--platform", "manylinux1_x86_64", "--require-hashes", "-r", str(REQUIREMENTS)),
)
TRIAL = """\
MODULE main
VAR low : boolean;
ASSIGN init(low) := FALSE; next(low) := low;
DEFINE kept := !low; changed := low;
INVARSPEC NAME spec_kept := kept
INVARSPEC NAME spec_changed := changed
"""
PROVES = (InvariantVerdict.TRUE, InvariantVerdict.FALSE)
ELSEWHERE = "put NuSMV on PATH (https://nusmv.fbk.eu), or prove with --checker smt"


def fetch() -> Path:
    """The path of NuSMV's library, which is put into the user's data folder.

    Raises SolverError where it does not run, cannot be downloaded, or differs from the expected
    file; then nothing is left behind, and an earlier library stays.
    """
    machine = (platform.system(), platform.machine())
    if machine != MACHINE:
        raise SolverError(
            f"the NuSMV that can be downloaded runs on {' '.join(MACHINE)} only, and this is "
            f"{' '.join(machine)}",
            hint=ELSEWHERE,
        )
    library = of_user()
    if library is None:
        raise SolverError(
            "there is no folder for NuSMV", hint="set HOME, or XDG_DATA_HOME to an absolute path"
        )
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            part = _taken_out(_downloaded(Path(folder)))
            _try(part)
            os.replace(part, library)
    except OSError as error:
        raise SolverError(f"cannot write {library}: {error.strerror or error}") from error
    return library


def _downloaded(folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    ended = subprocess.run(
        [*pip, *DOWNLOAD, "--dest", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if ended.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    if "DO NOT MATCH THE HASHES" in ended.stdout:
        raise SolverError(
            "the checksum of NuSMV (the pynusmv wheel) is not the expected one, so it was not "
            "installed",
            hint="somebody changed the file, such as a mirror or a proxy: try another network",
        )
    if "No module named pip" in ended.stdout:
        raise SolverError(
            f"{sys.executable} has no pip to download NuSMV with",
            hint=f"run '{sys.executable} -m ensurepip', or {ELSEWHERE}",
        )
    said = " ".join(ended.stdout.split())[-300:]
    raise SolverError(
        f"NuSMV (the pynusmv wheel) cannot be downloaded: {said}",
        hint="see whether the network and the package index of pip can be reached",
    )


def _taken_out(wheel: Path) -> Path:
    part = wheel.with_name("libdependencies.so")
    try:
        part.write_bytes(zipfile.ZipFile(wheel).read(INSIDE))
    except (zipfile.BadZipFile, KeyError) as error:
        raise SolverError(f"there is no {INSIDE} in the pynusmv wheel: {error}") from error
    return part


def _try(library: Path) -> None:
    """Raise SolverError unless the library proves and refutes an invariant."""
    verdicts = check_invariants(
        TRIAL, [InvariantQuery("kept"), InvariantQuery("changed")], ProcessLimits(), library
    )
    if tuple(answer.verdict for answer in verdicts) != PROVES:
        reason = next((a.reason for a in verdicts if a.reason), "its answers are wrong")
        raise SolverError(f"the downloaded NuSMV does not run here: {reason}", hint=ELSEWHERE)
