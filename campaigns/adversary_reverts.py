"""Each fixed defect is found again after its fix is reverted.

    make campaign-adversary_reverts ARGS='--programs 600 --seed 1'

Every patch in ``reverts/`` restores one defect. It is applied to a copy of the last commit. There
the families of hostile programs for its item run until one of them has a new finding; without one,
the tests for the item run until one fails that passes without the patch. Prints a table; exits with
status 1 if a patch does not apply or its defect is not found.

Names of patches (their beginnings) may be given to run only these.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["FOUND_BY", "FoundBy", "copied", "main"]

ROOT = Path(__file__).resolve().parents[1]
PATCHES = Path(__file__).with_name("reverts")
LIMIT = 1800  # seconds for one command
FINDING = re.compile(r"^(\w+ seed \d+ index \d+: [a-z]+):", re.M)


@dataclass(frozen=True, slots=True)
class FoundBy:
    """The finders of an item's defects: families of programs, then tests (existing files)."""

    families: tuple[str, ...]
    tests: tuple[str, ...]


# By the number at the start of a patch's name: from 41 on, a rule of docs/soundness.md.
FOUND_BY = {
    "01": FoundBy((), (
        "tests/wcet/analysis/test_request_key.py", "tests/quoll/results/test_cache_key.py",
        "tests/quoll/results/test_versions.py", "tests/wcet/analysis/test_prepared.py",
        "tests/wcet/analysis/test_context_switches.py", "tests/wcet/sweep/test_matrix.py",
        "tests/wcet/analysis/test_stored_summaries.py",
    )),
    "02": FoundBy((), (
        "tests/quoll/results/test_results_store.py", "tests/loopbounds/proof/test_cached_bounds.py",
        "tests/pipeline/test_native.py", "tests/wcet/analysis/test_prepared.py",
    )),
    "03": FoundBy(("interrupts", "preempted"), (
        "tests/wcet/analysis/test_interrupts.py", "tests/quoll/preemption/test_pending.py",
        "tests/quoll/preemption/test_segments.py",
    )),
    "04": FoundBy(("modes",), (
        "tests/wcet/analysis/test_masked_paths.py", "tests/quoll/inlining/test_expand.py",
    )),
    "05": FoundBy(("mappings",), (
        "tests/quoll/abstract_domain/test_abstract_names.py",
        "tests/loopbounds/slicing/test_names.py",
        "tests/cache/test_data.py", "tests/quoll/image/test_memory_map.py",
    )),
    "06": FoundBy(("frames",), (
        "tests/quoll/test_frames_stored_by_callees.py",
        "tests/quoll/indirect/test_stack_frames_executed.py",
        "tests/quoll/indirect/test_stack_frames.py",
    )),
    "07": FoundBy(("interrupts", "preempted"), (
        "tests/quoll/preemption/test_pending.py", "tests/wcet/analysis/test_interrupts.py",
    )),
    "08": FoundBy(("modes",), ("tests/wcet/analysis/test_masked_paths.py",)),
    "09": FoundBy(("maintenance",), ("tests/wcet/analysis/test_masked_paths.py",)),
    "10": FoundBy(("unmodelled", "stores"), ("tests/loopbounds/proof/test_exact_unmodelled.py",)),
    "11": FoundBy((), ("tests/quoll/image/test_instruction_set.py",)),
    "12": FoundBy((), ("tests/wcet/platforms/test_processor.py",)),
    "13": FoundBy((), (
        "tests/quoll/facts/test_guidance.py", "tests/quoll/extraction/test_extract_ends.py",
    )),
    "14": FoundBy((), ("tests/wcet/analysis/test_parametric.py",)),
    "15": FoundBy(("frames",), (
        "tests/quoll/extraction/test_extract_ends.py",
        "tests/quoll/extraction/test_extract_returns.py",
    )),
    "16": FoundBy((), ("tests/wcet/platforms/test_cortex_a8.py",)),
    "17": FoundBy((), (
        "tests/loopbounds/nusmv/test_smv.py", "tests/loopbounds/terms/test_terms.py",
    )),
    "18": FoundBy((), (
        "tests/loopbounds/proof/test_failing_solver.py", "tests/loopbounds/nusmv/test_nusmv.py",
        "tests/wcet/test_failing_solvers.py",
    )),
    "19": FoundBy((), ("tests/wcet/test_ended.py", "tests/loopbounds/nusmv/test_nusmv.py")),
    "20": FoundBy((), (
        "tests/wcet/test_hostile_input.py", "tests/wcet/test_bad_input.py",
        "tests/quoll/results/test_results_store.py",
    )),
    "21": FoundBy((), ("tests/pipeline/test_addressing_forms.py",)),
    "22": FoundBy((), ("tests/quoll/image/test_dynamic.py",)),
    "23": FoundBy((), ("tests/wcet/platforms/test_processor.py",)),
    "24": FoundBy((), ("tests/quoll/image/test_dead_code.py",)),
    "41": FoundBy((), (
        "tests/wcet/refinement/test_stored.py", "tests/wcet/refinement/test_rebuilt.py",
        "tests/wcet/refinement/test_rows.py", "tests/wcet/refinement/test_refine.py",
        "tests/wcet/result_classes/test_branches.py",
        "tests/loopbounds/slicing/test_pointed_words.py",
    )),
    "42": FoundBy(("based_tables",), (
        "tests/quoll/arm/test_agreement.py", "tests/loopbounds/proof/test_cached_bounds.py",
        "tests/wcet/analysis/test_shared_proofs.py",
    )),
    "43": FoundBy(("overlaps",), ("tests/quoll/semantics/test_semantics.py",)),
    "44": FoundBy(("translations",), ("tests/wcet/analysis/test_system_effects.py",)),
    "45": FoundBy(("banks",), ("tests/wcet/analysis/test_status_words.py",)),
    "46": FoundBy(("endianness", "status_fields"), ("tests/wcet/analysis/test_status_words.py",)),
    "47": FoundBy(("versions",), (
        "tests/quoll/arm/test_unpredictable.py", "tests/wcet/analysis/test_executable.py",
    )),
    "48": FoundBy(("dirty_lines",), ("tests/wcet/analysis/test_system_effects.py",)),
    "49": FoundBy(("contradictions", "returns"), (
        "tests/wcet/analysis/test_contradicted_assumptions.py",
        "tests/wcet/analysis/test_exception_returns.py",
    )),
    "54": FoundBy((), (
        "tests/wcet/proving/test_preserved_words.py", "tests/wcet/proving/test_invariants.py",
        "tests/wcet/proving/test_established_words.py",
        "tests/wcet/analysis/test_entry_invariants.py",
    )),
    "53": FoundBy((), ("tests/wcet/analysis/test_masked_paths.py",)),
    "56": FoundBy((), (
        "tests/loopbounds/execution/test_monotone_words.py",
        "tests/loopbounds/execution/test_together.py",
    )),
    "58": FoundBy((), (  # rules 21 and 25
        "tests/wcet/result_classes/test_class_bounds.py",
        "tests/wcet/analysis/test_switches_with_tests.py",
        "tests/wcet/analysis/test_preemptible_functions.py",
    )),
    "40": FoundBy((), (
        "tests/test_recipes.py", "tests/quoll/test_assumptions.py",
        "tests/wcet/commands/test_loops.py", "tests/wcet/analysis/test_parametric.py",
    )),
}  # fmt: skip


def main() -> int:
    """Run the selected patches; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="patches, by the beginning of their names")
    parser.add_argument("--programs", type=int, default=600, help="of each family")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    patches = [
        path
        for path in sorted(PATCHES.glob("*.patch"))
        if not options.names or path.name.startswith(tuple(options.names))
    ]
    bad = 0
    print("| patch | found by | seconds |\n|---|---|---|", flush=True)
    for path in patches:
        begun = time.perf_counter()
        found = again(path, options.programs, options.seed)
        bad += found is None
        seconds = time.perf_counter() - begun
        print(f"| {path.stem} | {found or '**not found**'} | {seconds:.0f} |", flush=True)
    print(f"{len(patches)} patches, {bad} not found")
    return 1 if bad or not patches else 0


def again(patch: Path, programs: int, seed: int) -> str | None:
    """The finder of a patch's defect; None if none finds it, or the patch does not apply."""
    by = FOUND_BY.get(patch.name[:2])
    if by is None:
        print(f"{patch.name}: no item {patch.name[:2]} in the table", file=sys.stderr)
        return None
    with copied() as folder:
        applied = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", str(patch)],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if applied.returncode:
            print(f"{patch.name}: {applied.stderr.strip()[:500]}", file=sys.stderr)
            return None
        for family in by.families:
            found = findings(folder, family, programs, seed) - as_it_is(family, programs, seed)
            if found:
                return f"{min(found, key=index_of)} ({len(found)} of {programs} programs)"
        for test in by.tests:
            failed = failing(folder, test) - failing_as_it_is(test)
            if failed:
                return min(failed)
    return None


def index_of(finding: str) -> int:
    """The index of the program in the line that ``show`` prints."""
    return int(finding.split()[4].rstrip(":"))


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the last commit, with the built and installed folders."""
    with tempfile.TemporaryDirectory(prefix="revert-") as name:
        folder = Path(name)
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "x"], cwd=folder, input=archive.stdout, check=True)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        for built in (".venv", "build"):
            if (ROOT / built).exists() and not (folder / built).exists():
                (folder / built).symlink_to(ROOT / built)
        yield folder


def findings(folder: Path, family: str, programs: int, seed: int) -> set[str]:
    """The findings of the campaign with the code in ``folder``: family, seed, index and kind."""
    arguments = ["--family", family, "--programs", str(programs), "--seed", str(seed)]
    done = run(folder, ["-m", "campaigns.adversary", "--no-source", *arguments])
    if done.returncode not in (0, 1) or "programs, " not in done.stdout:
        raise RuntimeError(f"the campaign failed: {done.stderr[-2000:]}")
    return set(FINDING.findall(done.stdout))


@cache
def as_it_is(family: str, programs: int, seed: int) -> frozenset[str]:
    """The findings of the campaign without a patch, normally none."""
    with copied() as folder:
        return frozenset(findings(folder, family, programs, seed))


def failing(folder: Path, test: str) -> frozenset[str]:
    """The tests of a file that fail with the code in ``folder``."""
    if not (folder / test).exists():
        return frozenset()
    done = run(folder, ["-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", test])
    return frozenset(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M))


@cache
def failing_as_it_is(test: str) -> frozenset[str]:
    """The tests of a file that fail without a patch, and so find nothing."""
    with copied() as folder:
        return failing(folder, test)


def run(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Python with the code in ``folder`` and a cache folder of its own."""
    cache_home = folder / ".cache-of-this-run"
    cache_home.mkdir(exist_ok=True, mode=0o700)
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(cache_home)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
