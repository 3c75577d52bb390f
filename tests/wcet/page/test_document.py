"""A page shows the figures of the result, and its figures agree with each other."""

from __future__ import annotations

import json
import re
import subprocess
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from quoll.errors import WcetError
from quoll.inlining.vivu import FULL, VivuSettings
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from tests.testing.wcet.calling import calling_program
from tests.testing.wcet.programs import bound, program
from wcet.cli import main
from wcet.page.document import page_document
from wcet.page.web_scripts import script_texts
from wcet.page.write import page, source_hash
from wcet.platforms.platform_model import load

SOURCE = """\
volatile unsigned left;
__attribute__((noinline)) unsigned part(unsigned a) {
    for (unsigned i = 0; i < 20; i++)
        left = a;
    return a + left;
}
unsigned handler(unsigned a) { return part(a) + part(a + 1); }
"""
COMPILER = ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-marm", "-O1", "-g", "-ffreestanding"]
LINKED = ["-nostdlib", "-Wl,-Ttext=0xf0010000", "-Wl,-e,handler", "-Wl,--no-warn-rwx-segments"]
ASKED = ["--entry", "handler", "--platform", "kzm", "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    (folder / "kernel.c").write_text(SOURCE)
    command = [*COMPILER, *LINKED, "kernel.c", "-o", "kernel.elf"]
    subprocess.run(command, check=True, cwd=folder)
    return folder


def written(folder: Path, *options: str) -> str:
    out = folder / "report.html"
    assert main(["analyse", str(folder / "kernel.elf"), *ASKED, "--html", str(out), *options]) == 0
    return out.read_text()


def data(text: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


@pytest.fixture(scope="module")
def small(folder: Path) -> dict[str, Any]:
    return data(written(folder, "--source-dir", str(folder)))


@pytest.mark.slow("several whole analyses")
def test_rows_and_loads_add_up_to_the_bound(small: dict[str, Any]) -> None:
    assert_sums(small)


def test_rows_and_loads_of_the_kernel_add_up(kernel_data: dict[str, Any]) -> None:
    assert_sums(kernel_data)
    assert [entry["name"] for entry in kernel_data["entries"]] == [
        *("syscall", "undefined", "prefetch-abort", "data-abort", "interrupt"),
    ]
    for entry in kernel_data["entries"]:
        code, memory = entry["caches"]
        causes = dict(zip(kernel_data["causes"], entry["causes"], strict=True))
        assert in_sets(code) == causes["I-misses"]
        assert in_sets(memory) == causes["D-misses"] + causes["stores"]


def test_waits_are_those_of_the_references(
    kernel: Path, kernel_data: dict[str, Any], tmp_path: Path
) -> None:
    """``wcet cache`` finds the same cycles for the instructions that cost most."""
    out = tmp_path / "cache.json"
    asked = ["--entry", "syscall", "--quiet", "--most", "20", "--json", str(out)]
    assert main(["cache", str(kernel), *asked]) == 0
    code = {
        block["address"]: block["code"]
        for function in kernel_data["functions"]
        for block in function["blocks"]
    }
    waits: dict[str, int] = {}
    for row in kernel_data["entries"][0]["paths"][0]["rows"]:
        for address, _, cycles, waited in row[8]:
            assert sum(wait for _, wait in waited) <= cycles
            for position, wait in waited:
                insn = hex(code[address][position][0])
                waits[insn] = waits.get(insn, 0) + wait
    wanted: dict[str, int] = {}
    for one in json.loads(out.read_text())["entries"]["syscall"]["costliest"]:
        insn = one["place"].split()[0]
        wanted[insn] = wanted.get(insn, 0) + one["cycles"]
    assert len(wanted) > 10
    assert all(waits[insn] >= cycles for insn, cycles in wanted.items())
    assert sum(waits[insn] == cycles for insn, cycles in wanted.items()) > len(wanted) / 2


SPREAD = """\
unsigned table[8192];
void vector_irq(void) { for (unsigned i = 0; i < 8192; i += 512) table[i] += table[i + 48]; }
"""


@pytest.mark.slow("several whole analyses")
def test_sets_of_a_cache_whose_index_is_known_in_part(tmp_path: Path) -> None:
    """The data cache of the Cortex-A8: a bit of its index is above the offset in a page."""
    elf = build(SPREAD, cpu="cortex-a8", link=("-Wl,-Ttext=0xf0010000",))
    out = tmp_path / "report.html"
    asked = ["--entry", "interrupt", "--platform", "cubieboard", "--quiet", "--unroll"]
    assert main(["analyse", str(elf), *asked, "--html", str(out)]) == 0
    document = data(out.read_text())
    [entry] = document["entries"]
    geometry = load("cubieboard").hierarchy.l1d
    _, cache = entry["caches"]
    assert len(cache["sets"]) == geometry.index_sets < geometry.sets == cache["all_sets"]
    for number, lines in enumerate(cache["sets"]):
        assert {line[0] // geometry.line_bytes % geometry.index_sets for line in lines} <= {number}
    assert max(len(lines) for lines in cache["sets"]) > 1
    causes = dict(zip(document["causes"], entry["causes"], strict=True))
    assert in_sets(cache) == causes["D-misses"] + causes["stores"]


def in_sets(cache: dict[str, Any]) -> int:
    """All cycles of a cache: in lines and out of them."""
    cycles = [line[2] for lines in cache["sets"] for line in lines]
    return sum(map(int, [*cycles, cache["unknown"][1]]))


def assert_sums(document: dict[str, Any]) -> None:
    functions = {f["address"]: f for f in document["functions"]}
    for entry in document["entries"]:
        assert sum(entry["causes"]) == entry["cycles"]
        whole = entry["paths"][0]
        assert whole["cycles"] == entry["cycles"]
        assert sum(sum(row[7]) for row in whole["rows"]) == entry["cycles"]
        assert sum(b[2] for row in whole["rows"] for b in row[8]) == entry["cycles"]
        assert sum(b[2] for load in whole["loads"] for b in load[1]) == entry["cycles"]
        for function, blocks, edges, _ in whole["loads"]:
            flows_on(functions[function], blocks, edges)


def flows_on(function: dict[str, Any], blocks: list[list[int]], edges: list[list[int]]) -> None:
    """Every edge that is taken is drawn, and a block is not left more often than it executes."""
    drawn = {(source, target) for source, target, _ in function["edges"]}
    runs = {address: executions for address, executions, _ in blocks}
    left: dict[int, int] = {}
    for source, target, count in edges:
        assert (source, target) in drawn
        left[source] = left.get(source, 0) + count
    for block in function["blocks"]:
        address = block["address"]
        assert left.get(address, 0) <= runs.get(address, 0)
        if not (block["ends"] or block["calls"]):  # the path may end in the callee
            assert left.get(address, 0) == runs.get(address, 0)


def test_a_loop_has_its_bound_and_evidence(small: dict[str, Any]) -> None:
    (loop,) = small["loops"]
    assert (loop["low"], loop["high"], loop["method"]) == (20, 20, "execution")
    assert loop["executions"] == 40
    assert "concrete execution of its entry" in loop["evidence"]


def test_source_lines_are_taken_in(small: dict[str, Any]) -> None:
    (file,) = small["files"]
    lines = dict(map(tuple, file["lines"]))
    assert lines[4] == "        left = a;"
    assert file["missing"] == ""


def test_no_file_outside_the_folder_is_taken_in(folder: Path, tmp_path: Path) -> None:
    """An ELF may name any file, and a page is handed on."""
    for source in (str(tmp_path), "."):
        (file,) = data(written(folder, "--source-dir", source))["files"]
        assert file["lines"] == []
        assert file["missing"] in ("it is not there", "it is outside the folder")


@pytest.mark.slow("a browser, or whole reports of random programs")
@pytest.mark.parametrize(
    ("seed", "vivu"), spread(product(range(3), (FULL, VivuSettings(unroll=True))), 2)
)
def test_random_programs_add_up(seed: int, vivu: VivuSettings) -> None:
    """ARM and Thumb, functions that call one another, contexts that are split."""
    for elf, platform in (
        (calling_program(seed, "-O2"), "kzm"),
        (program(seed, "-Os", "cortex-a8", thumb=True), "cubieboard"),
    ):
        try:
            result = bound(elf, platform, vivu)
        except WcetError:
            continue  # it has no bound without facts
        assert_sums(json.loads(json.dumps(page_document(result, Path(), {}, None))))


class Markup(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.texts.append((tag, ""))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style"):
            tag, text = self.texts[-1]
            self.texts[-1] = tag, text + data


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{scripts}}"


def test_names_are_no_markup(small: dict[str, Any]) -> None:
    document = json.loads(json.dumps(small))
    document["functions"][0]["name"] = HOSTILE
    document["kernel"]["path"] = HOSTILE
    text = page(document)
    plain, hostile = Markup(page(small)), Markup(text)
    assert [tag for tag, _ in plain.tags] == [tag for tag, _ in hostile.tags]
    assert data(text)["functions"][0]["name"] == HOSTILE


def test_only_its_own_scripts_may_run(small: dict[str, Any]) -> None:
    text = page(small)
    markup = Markup(text)
    (policy,) = (
        a["content"] for tag, a in markup.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy
    assert "default-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(scripts) == len(script_texts()) + 1
    assert all(source_hash(one) in policy for one in (*scripts, *styles))
    assert not [a for _, a in markup.tags if "src" in a or any(n.startswith("on") for n in a)]


def test_licences_are_in_the_page(small: dict[str, Any]) -> None:
    (part,) = small["licences"]
    assert part["licence"] == "MIT"
    assert part["package"].startswith("@dagrejs/dagre 3.")
    assert "Permission is hereby granted" in part["notice"]


def test_a_comparison_needs_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", str(folder / "kernel.elf"), *ASKED, "--baseline", "old.json"]) == 2
    assert "--html" in capsys.readouterr().err


def test_a_missing_part_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wcet.page.web_scripts.SCRIPTS", (missing_part(),))
    out = folder / "none.html"
    assert main(["analyse", str(folder / "kernel.elf"), *ASKED, "--html", str(out)]) == 2
    assert "the npm package no-such-package-at-all" in capsys.readouterr().err
    assert not out.exists()


def missing_part() -> Any:
    from dataclasses import replace

    from wcet.page.web_scripts import SCRIPTS

    return replace(SCRIPTS[0], package="no-such-package-at-all")


def test_a_baseline_is_compared_with(folder: Path) -> None:
    baseline = folder / "baseline.json"
    elf = str(folder / "kernel.elf")
    assert main(["baseline", elf, *ASKED, "--output", str(baseline)]) == 0
    old = json.loads(baseline.read_text())
    old["entries"]["handler"]["cycles"] -= 10
    baseline.write_text(json.dumps(old))
    found = data(written(folder, "--baseline", str(baseline)))["comparison"]
    (entry,) = (e for e in found["entries"] if e["name"] == "handler")
    assert (entry["cycles"], entry["fails"]) == (10, True)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    "options",
    [["--unroll"], ["--share", "always"]],
    ids=" ".join,
)
def test_contexts_that_are_split_or_summarised_add_up(options: list[str], folder: Path) -> None:
    assert_sums(data(written(folder, *options)))


RECURSIVE = """\
volatile unsigned left, *volatile more;
__attribute__((noinline)) void turn(unsigned a) { for (unsigned i = 0; i < 50; i++) left = a; }
__attribute__((noinline)) unsigned walk(unsigned n) {
    turn(n);
    return *more ? walk(n - 1) + walk(n - 2) : n;
}
unsigned handler(unsigned n) { return walk(n) + 1; }
"""
FLAGS = ["-fno-optimize-sibling-calls", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra"]


@pytest.mark.slow("several whole analyses")
def test_shared_functions_have_paths_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "kernel.c").write_text(RECURSIVE)
    command = [*COMPILER, *FLAGS, *LINKED, "kernel.c", "-o", "kernel.elf"]
    subprocess.run(command, check=True, cwd=tmp_path)
    (tmp_path / "kernel.facts").write_text("recursion of walk at most 3\n")
    document = data(written(tmp_path, "--share", "always"))
    (entry,) = document["entries"]
    assert_sums(document)
    inside = [path for path in entry["paths"][1:] if path["title"].startswith("inside walk,")]
    assert [path["title"].split()[4] for path in inside] == ["1", "2", "4"]
    for path in inside:
        assert sum(sum(row[7]) for row in path["rows"]) == path["cycles"] < entry["cycles"]
    (loop,) = document["loops"]
    assert (loop["high"], loop["executions"]) == (50, 7 * 50)


def test_facts_lead_to_the_code(folder: Path) -> None:
    facts = folder / "some.facts"
    facts.write_text("loop kernel.c:3 at most 30\npart executes at most 2 times\n")
    document = data(written(folder, "--facts", str(facts)))
    loop, executes = document["facts"]
    blocks = [b for f in document["functions"] for b in f["blocks"]]
    code = {insn[0] for block in blocks for insn in block["code"]}
    part = next(f["address"] for f in document["functions"] if f["name"] == "part")
    assert executes["places"] == [part]
    assert loop["places"]
    assert set(loop["places"]) <= code


PARAMETER = 1  # the value that an example is computed for
PARAMETRIC = """\
volatile unsigned left;
unsigned handler(unsigned n) { for (unsigned i = 0; i < n; i++) left = i; return n; }
unsigned other(unsigned n) { for (unsigned i = 0; i < n; i++) left = i; return n; }
"""


@pytest.mark.slow("several whole analyses")
def test_functions_of_parameters_and_missing_bounds_are_shown(tmp_path: Path) -> None:
    (tmp_path / "kernel.c").write_text(PARAMETRIC)
    command = [*COMPILER, *LINKED, "kernel.c", "-o", "kernel.elf"]
    subprocess.run(command, check=True, cwd=tmp_path)
    (tmp_path / "kernel.facts").write_text("loop kernel.c:2 at most n\n")
    out = tmp_path / "report.html"
    asked = [*ASKED, "--entry", "other", "--time-limit", "2", "--html", str(out)]
    assert main(["analyse", str(tmp_path / "kernel.elf"), *asked]) == 6
    document = data(out.read_text())
    (entry,) = document["entries"]
    assert "n" in entry["formula"]
    assert entry["for_what"] == f"for n = {PARAMETER}"
    (unbounded,) = document["unbounded"]
    assert unbounded["name"] == "other"
    loops = {loop["entry"] for loop in document["loops"]}
    assert loops == {0}


def test_the_project_file_names_sources_and_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/kernel.c").write_text(SOURCE)
    command = [*COMPILER, *LINKED, "kernel.c", "-o", "../kernel.elf"]
    subprocess.run(command, check=True, cwd=tmp_path / "src")
    lines = ['kernel = "kernel.elf"', 'platform = "kzm"', 'entries = ["handler"]']
    (tmp_path / "wcet.toml").write_text("\n".join([*lines, 'sources = "src"', ""]))
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        assert main(["analyse", "--quiet", "--html", "report.html"]) == 0
        document = data(Path("report.html").read_text())
        assert document["files"][0]["missing"] == ""
        assert (document["comparison"] is not None) == bool(number)
        assert main(["baseline", "--quiet"]) == 0
    assert document["comparison"]["entries"][0]["verdict"] == "same"
