"""The recipes of CONTRIBUTING.md, followed."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from itertools import combinations
from pathlib import Path
from random import Random
from textwrap import dedent
from types import ModuleType

import pytest

import wcet
from cache.cache_simulator import SimulatedCache
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy, strict_rules
from loopbounds.proof.prove import prove_model
from loopbounds.strategies.sampling import RunSampling
from loopbounds.terms import bit_vectors as terms
from pipeline import core as core_module
from pipeline.classes import classify_insn
from pipeline.timing_model import CoreProfile
from quoll.arm.decode import decode
from quoll.assumptions import stated
from quoll.errors import TimingError, UsageError
from quoll.facts.read import parse
from quoll.semantics.corrections import CORRECTIONS
from quoll.semantics.lift import lift_afresh
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.models import BUDGET, X, counted, word
from tests.testing.quoll.building import build
from tests.testing.quoll.fact_kinds import fact_kinds
from wcet import cli
from wcet.platforms.platform_model import DIRECTORY

ROOT = Path(__file__).resolve().parent.parent
RECIPES = (ROOT / "CONTRIBUTING.md").read_text()
PROGRAM = """
unsigned table[16];
unsigned main(void) { unsigned s = 0; for (int i = 0; i < 16; i++) s += table[i]; return s; }
"""
CODE = "-Wl,-Ttext=0xf0010000"  # cached memory of the board
USAD8 = 0xE780F211  # usad8 r0, r1, r2

LINES = {
    "AtMostFact": "a executes at most 3 times in f when called from g",
    "BranchFact": "branch at a is always taken in f",
    "CallsThroughFact": "calls at a go through any vtable",
    "ConflictFact": "a conflicts with b in f",
    "ConsistentFact": "a is consistent with b in f",
    "IgnoreFact": "ignore a",
    "InvariantFact": "invariant n: half a & 0xff <= 3 and signed b > -1 or c = 7",
    "IgnoreEdgeFact": "ignore edge a -> b",
    "InitialContentsFact": "region r holds its initial contents at a",
    "LinearFact": "2*count(a) + count(b) <= 3 in f",
    "ListAtMostFact": "list at a has at most 3 elements",
    "LoopFact": "loop a at most 3",
    "LoopParameter": "loop a at most n + 1",
    "BeginsUnmaskedFact": "f begins unmasked",
    "NeverExecutesFact": "a never executes in f",
    "NeverReturnsFact": "f never returns",
    "SelfJumpsEndFact": "path must end at every jump to itself",
    "SupervisorCallsFact": "every supervisor call takes at most 9 cycles",
    "SupervisorEntersFact": "every supervisor call enters f",
    "SwitchesContextFact": "f switches context",
    "PathEndFact": "path must end at a",
    "PathStartFact": "path starts at a",
    "ObjectRegionFact": "region a is read-only",
    "PointsIntoFact": "register r1 at a points into r",
    "RecursionFact": "recursion of f at most 3",
    "RegionFact": "region r from 0x100 to 0x1ff is cached",
    "RegisterAtMostFact": "register r1 at a is at most 3",
    "ReplacedFact": "function f takes at most 3 cycles",
    "RequireFact": "require a",
    "ReturnsFact": "a returns to its caller",
    "ReturnsEndFact": "path must end at every exception return",
    "TargetsFact": "targets of a are b, c",
    "UnknownPointsIntoFact": "accesses of unknown address point into r",
}


def said(form: str) -> str:
    """The words of a fact without its names and numbers."""
    return " ".join(re.findall(r"(?<![\w+.])[a-z]{2,}\b(?![(.+])", form))


def recipe(title: str) -> str:
    return RECIPES.partition(f"### {title}\n")[2].partition("\n##")[0]


def cycles(elf: Path, platform: Path, out: Path) -> int:
    """The bound of ``main`` on a board."""
    named = ["--entry", "main", "--platform", str(platform), "--quiet", "--no-cache"]
    assert cli.main(["analyse", str(elf), *named, "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    assert document["platform"]["name"] == platform.stem
    found: int = document["entries"]["main"]["cycles"]
    return found


def board(folder: Path, name: str, **figures: str) -> Path:
    """A copy of kzm.toml with another name and other figures: ``old`` text by ``new``."""
    text = (DIRECTORY / "kzm.toml").read_text()
    for old, new in {'name = "kzm"': f'name = "{name}"', **figures}.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


@pytest.mark.slow("several whole analyses")
def test_a_board(tmp_path: Path) -> None:
    elf, out = build(PROGRAM, link=(CODE,)), tmp_path / "out.json"
    same = cycles(elf, board(tmp_path, "same"), out)
    small = board(tmp_path, "small", **{"size = 16_384": "size = 8_192"})
    slow = board(
        tmp_path, "slow", **{"memory_l2_off = { value = 60": "memory_l2_off = { value = 61"}
    )
    assert same == cycles(elf, DIRECTORY / "kzm.toml", out)
    assert same <= cycles(elf, small, out)
    assert same < cycles(elf, slow, out)


@pytest.mark.slow("several whole analyses")
def test_a_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the ARM1136 under another name; then without rows for loads."""
    cores = tmp_path / "cores"
    cores.mkdir()
    for suffix in ("csv", "toml"):
        shutil.copy(core_module.DIRECTORY / f"arm1136.{suffix}", cores / f"arm99.{suffix}")
        shutil.copy(core_module.DIRECTORY / f"arm1136.{suffix}", cores / f"arm98.{suffix}")
    elf, out = build(PROGRAM, link=(CODE,)), tmp_path / "out.json"
    expected = cycles(elf, DIRECTORY / "kzm.toml", out)
    monkeypatch.setattr(core_module, "DIRECTORY", cores)
    boards = {
        name: board(tmp_path, f"board-{name}", **{'name = "arm1136"': f'name = "{name}"'})
        for name in ("arm99", "arm98")
    }
    assert cycles(elf, boards["arm99"], out) == expected
    rows = (cores / "arm98.csv").read_text().splitlines(keepends=True)
    (cores / "arm98.csv").write_text("".join(r for r in rows if not r.startswith("LDR,")))
    asked = ["analyse", str(elf), "--entry", "main", "--platform", str(boards["arm98"])]
    assert cli.main([*asked, "--quiet", "--no-cache"]) == TimingError.exit_status


def test_a_fact_kind() -> None:
    """A kind that is new has its line here, and all that the recipe names."""
    cells = re.findall(r"^\| (`.*?) \| ", (ROOT / "docs/facts.md").read_text(), re.MULTILINE)
    forms = [said(form) for cell in cells for form in re.findall(r"`(.+?)`", cell)]
    for kind in fact_kinds():
        line = LINES[kind.__name__]
        (fact,) = parse(line, "a.facts").facts
        assert isinstance(fact, kind)
        assert parse(str(fact), "a.facts").facts[0].subject() == fact.subject()
        assert {*fact.places(), *fact.functions()} <= set(fact.names()), line
        assert set(re.findall(r"\b[abcfg]\b", line)) == set(fact.names()), line
        assert str(fact) in str(stated(fact)), line
        assert stated(fact).kind.checked_by, line
        assert any(form and said(line).startswith(form) for form in forms), line


def test_the_example_of_a_fact_kind() -> None:
    text = recipe("A fact kind")
    folders = [ROOT / name for name in ("quoll", "cache", "pipeline", "loopbounds", "ilp")]
    touched = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in folder.rglob("*.py")
        if re.search(r"\bRequireFact\b|^REQUIRE\b", path.read_text(), re.MULTILINE)
    }
    stages = {"quoll/extraction/cuts.py", "ilp/constraints/flowfacts.py"}  # two: it is counted, too
    assert touched == {"quoll/facts/guidance.py", "quoll/assumptions.py", *stages}
    assert all(f"`{path}`" in text for path in touched)


@pytest.mark.parametrize("policy", ReplacementPolicy)
def test_a_cache_policy(policy: ReplacementPolicy) -> None:
    """A line younger than the capacity of a rule is in the cache, after any accesses."""
    geometry = CacheGeometry(4 * 32, 4, 32)  # one set
    for seed in range(40):
        random = Random(seed)
        cache = SimulatedCache(geometry, policy, random)
        cache.pollute(list(range(100, 110)))
        used: list[int] = []  # the line used last comes first
        for _ in range(60):
            line = random.randrange(7)
            if random.random() < 0.2 and not cache.resident(line):
                cache.store(line)  # does not allocate
                continue
            cache.load(line)
            used = [line, *(other for other in used if other != line)]
            for rule in strict_rules(policy, geometry.free_ways):
                assert all(cache.resident(n) for n in used[: rule.capacity]), (seed, rule)


def test_every_policy_is_simulated() -> None:
    """Any two policies differ on some accesses: none falls through to the victim of another."""
    random = Random(1)
    accesses = [random.randrange(14) for _ in range(400)]

    def hits(policy: ReplacementPolicy) -> tuple[bool, ...]:
        cache = SimulatedCache(CacheGeometry(2 * 4 * 32, 4, 32), policy, Random(2))
        return tuple(cache.load(line).hit for line in accesses)

    found = {
        policy: hits(policy)
        for policy in ReplacementPolicy
        if policy is not ReplacementPolicy.ONE_WAY
    }
    assert not [(a, b) for a, b in combinations(found, 2) if found[a] == found[b]]


def module(title: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module in a recipe, as it stands there."""
    _, _, block = recipe(title).partition("-->\n\n")
    (folder / f"{name}.py").write_text(dedent(block.partition("\nTest: ")[0]))
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module(name)


def test_an_instruction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its semantics beside the manual's formula, its timing class on each core."""
    correction = module("An instruction", "recipe_usad8", tmp_path, monkeypatch).CORRECTION
    monkeypatch.setattr("quoll.semantics.lift.CORRECTIONS", (correction, *CORRECTIONS))
    insn = decode(USAD8.to_bytes(4, "little"), 0x8000, False)
    ops = lift_afresh(insn)
    random = Random(1)
    for _ in range(200):
        machine = ConcreteMachine()
        first, second = (random.getrandbits(32) for _ in range(2))
        machine.registers[1], machine.registers[2] = first, second
        machine.execute(insn, ops)
        pairs = zip(first.to_bytes(4, "little"), second.to_bytes(4, "little"), strict=True)
        assert machine.registers[0] == sum(abs(a - b) for a, b in pairs)
    name, condition = classify_insn(insn, aligned=True, aligned8=False).row
    for path in sorted(core_module.DIRECTORY.glob("*.csv")):
        assert core_module.load_core(path.stem, CoreProfile.WCET).row(name, condition).issue > 0


def test_a_proof_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe_module = module("A proof strategy", "recipe_lockstep", tmp_path, monkeypatch)
    strategies = (RunSampling(), recipe_module.Lockstep())
    model = counted(word(0), terms.add(X, word(3)), terms.ult(X, word(250)))
    expected = prove_model(model, BUDGET, find_checker())
    monkeypatch.setattr("loopbounds.proof.prove.STRATEGIES", strategies)
    found = prove_model(model, BUDGET, find_checker())
    assert found.bound == expected.bound == 85
    monkeypatch.setattr(recipe_module, "in_step", lambda _: terms.eq(X, word(0)))
    assert prove_model(model, BUDGET, find_checker()).bound is None


def test_a_report_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = module("A report format", "recipe_csv", tmp_path, monkeypatch)
    elf = build(PROGRAM, link=(CODE,))
    monkeypatch.chdir(tmp_path)
    result = wcet.analyse(elf, entries=["main"]).result
    bound = result.entries["main"].cycles
    assert written.to_csv(result) == f"entry,cycles,loops\nmain,{bound},1\n"


def test_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module("A command", "recipe_where", tmp_path, monkeypatch)
    monkeypatch.setitem(cli.COMMANDS, "where", "recipe_where")
    elf = build(PROGRAM, link=(CODE,))
    assert cli.main(["where", str(elf), "main"]) == 0
    assert capsys.readouterr().out == "0xf0010000\n"
    assert cli.main(["where", str(elf), "nothing"]) == UsageError.exit_status
