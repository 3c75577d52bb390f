# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark for other analysers: one archive, unpacked and checked against the kernel."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench import benchmark
from bench.archive import write_archive
from bench.benchmark import Build, main, pack
from bench.neutral import facts_table, parameters_of
from quoll.errors import InputError
from quoll.image.image import Image
from quoll.recordings.trace import Trace
from tests.testing.harness import build as products

pytestmark = pytest.mark.xdist_group("benchmark")  # one archive is made

BUILD = Build("kzm", "after", "O2")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The kernel's analysis, for all archives."""
    products.kernel("kzm-after", "kernel.elf", "kernel.facts", "kernel.loops.csv", "hello.elf")
    return benchmark.analysed(BUILD, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def archive(report: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    products.recorder()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(benchmark, "analysed", lambda *_: report)
        return pack(BUILD, ["hello"], tmp_path_factory.mktemp("benchmark"))


@pytest.fixture(scope="module")
def folder(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", target], check=True)
    return target / "bilby-kzm-after-O2"


def rows(path: Path) -> list[dict[str, str]]:
    text = path.read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_same_bytes_again(
    archive: Path, report: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same analysis."""
    monkeypatch.setattr(benchmark, "analysed", lambda *_: report)
    assert pack(BUILD, ["hello"], tmp_path).read_bytes() == archive.read_bytes()


def test_members_have_no_time_and_no_owner(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
    assert [m.name for m in members] == sorted(m.name for m in members)
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}


def test_sums_hold_and_every_file_is_explained(folder: Path) -> None:
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert files == {line.split("  ")[1].removesuffix(": OK") for line in
                     (folder / "SHA256SUMS").read_text().splitlines()} | {"SHA256SUMS"}  # fmt: skip
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for name in files - {"README.md", "hello.elf", "traces/hello.trace"}:
        assert f"`{name}`" in readme or f" {name}`" in readme, name


def test_the_kernel_is_the_one_that_is_tested(folder: Path) -> None:
    built = products.ROOT / "build" / "bilby" / "kzm-after" / "kernel.elf"
    assert (folder / "kernel.elf").read_bytes() == built.read_bytes()
    assert "-O2" in (folder / "compiler.txt").read_text().split()


def test_lines_are_those_of_the_elf(folder: Path) -> None:
    image = Image.load(folder / "kernel.elf")
    table = rows(folder / "lines.tsv")
    assert len(table) > 1000
    for row in table:
        line = image.line(int(row["address"], 16))
        assert (row["file"], int(row["line"])) == ((line.path, line.line) if line else ("-", 0))


def test_each_loop_has_a_bound_an_argument_and_code(folder: Path) -> None:
    table = rows(folder / "facts.tsv")
    listed = (products.ROOT / "build/bilby/kzm-after/kernel.loops.csv").read_text(encoding="utf-8")
    assert len(table) == len(listed.splitlines()) - 1 > 15
    assert all(row["bound"] and row["argument"] for row in table)
    assert all(row["addresses"].startswith("0xf001") for row in table)
    stated = {row["place"]: int(row["bound"]) for row in table if row["kind"] == "loop"}
    found = {row["line"]: int(row["bound"]) for row in rows(folder / "loops.tsv")}
    assert len(found) > 10
    assert max(found.values()) <= max(stated.values())


def test_there_is_a_bound_for_every_entry(folder: Path) -> None:
    document = json.loads((folder / "bounds.json").read_text(encoding="utf-8"))
    entries = document["entries"]
    assert sorted(entries) == sorted(
        ["syscall", "undefined", "prefetch-abort", "data-abort", "interrupt"]
    )
    for entry in entries.values():
        assert entry["cycles"] == max(start["cycles"] for start in entry["starts"])
    latency = document["interrupt_latency"]["cycles"]
    assert latency == entries["syscall"]["cycles"] + entries["interrupt"]["cycles"]
    assert document["assumptions"]
    assert document["sizes"] == {}


def test_the_recording_can_be_read(folder: Path) -> None:
    trace = Trace.read(folder / "traces" / "hello.trace")
    assert any(execution.entry == 0xFFFF0008 for execution in trace.executions)


LOOPS = """place,bound,why
a.c:3,4,"N + 1: why, and how"
a.c:5,size + 1,by the system's use
a.c:7,,preempted at point 2
a.c:9,,counted at here
"""
FACTS = """# Generated
loop a.c:5 at most size + 1
here executes at most names times   # a reason
"""


def test_every_form_of_bound_has_a_row(folder: Path) -> None:
    found = facts_table(LOOPS, FACTS, Image.load(folder / "kernel.elf")).decode().splitlines()
    assert [line.split("\t") for line in found[1:]] == [
        ["loop", "a.c:3", "4", "N + 1: why, and how", "-"],
        ["loop", "a.c:5", "size + 1", "by the system's use", "-"],
        ["preempted", "a.c:7", "2", "preempted at point 2", "-"],
        ["counted", "a.c:9", "here", "counted at here", "-"],
        ["total", "here", "names", "by the system's use", "-"],
    ]


@pytest.mark.parametrize(
    ("loops", "facts"),
    [("place,bound,why\na.c:3,,somehow\n", ""), ("", "loop a.c:3 at least 4\n")],
)
def test_an_unknown_form_is_an_error(folder: Path, loops: str, facts: str) -> None:
    with pytest.raises(InputError, match="cannot express"):
        facts_table(loops, facts, Image.load(folder / "kernel.elf"))


def test_names_of_sizes() -> None:
    facts = "loop a.c:3 at most size + 1\nx executes at most others times\nloop b.c:1 at most 4\n"
    assert parameters_of(facts) == ["others", "size"]


def test_an_archive_depends_on_its_files_only(tmp_path: Path) -> None:
    files = {"b": b"2", "a/c.elf": b"1"}
    write_archive(tmp_path / "x.tar.xz", files)
    (tmp_path / "again").mkdir()
    write_archive(tmp_path / "again" / "x.tar.xz", dict(reversed(files.items())))
    first, second = (tmp_path / "x.tar.xz", tmp_path / "again" / "x.tar.xz")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(tmp_path / "x.tar.xz") as packed:
        assert [(m.name, oct(m.mode)) for m in packed] == [
            ("x/SHA256SUMS", "0o644"), ("x/a/c.elf", "0o755"), ("x/b", "0o644"),
        ]  # fmt: skip


def test_an_analysis_that_is_killed_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "wcet"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setattr(benchmark, "WCET", str(killed))
    with pytest.raises(subprocess.CalledProcessError):
        benchmark.analysed(BUILD, tmp_path)


def test_a_fact_is_cited_without_the_folder_that_it_was_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = {"assumptions": [f"loop bound by fact: {BUILD.folder}/kernel.facts:8"]}
    analyser = tmp_path / "wcet"
    analyser.write_text(
        '#!/bin/sh\nwhile [ "$1" != --json ]; do shift; done\n'
        f"cat > \"$2\" <<'END'\n{json.dumps(report)}\nEND\n"
    )
    analyser.chmod(0o755)
    monkeypatch.setattr(benchmark, "WCET", str(analyser))
    [assumption] = benchmark.analysed(BUILD, tmp_path)["assumptions"]
    assert assumption == "loop bound by fact: build/bilby/kzm-after/kernel.facts:8"


def test_what_is_not_complete_has_not_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tarfile.TarFile, "addfile", end)
    with pytest.raises(KeyboardInterrupt):
        write_archive(tmp_path / "x.tar.xz", {"a": b"1"})
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no build kzm-after-O9; there are: kzm-after-O1"):
        main([str(tmp_path), "--build", "kzm-after-O9"])
