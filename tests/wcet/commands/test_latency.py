"""``wcet latency``: its text, its exit status, and the declared latency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.wcet.decoders import DECODER, decoder
from wcet.cli import main

LIST = """
struct item { struct item *next; unsigned value; };
__attribute__((noinline)) unsigned walk(struct item *at) {
    unsigned total = 0;
    for (; at; at = at->next) total += at->value;
    return total;
}
int main"""
WALKING = DECODER.replace("int main", LIST).replace("copy(b)", "memory[9] = walk((void *)b)")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache for all tests here."""
    return str(tmp_path_factory.mktemp("cache"))


def run(elf: Path, kept: str, *more: str | Path) -> int:
    common = ("--platform", "kzm", "--quiet", "--cache", kept)
    return main(["latency", str(elf), *common, *map(str, more)])


def document(elf: Path, kept: str, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    capsys.readouterr()
    assert run(elf, kept, "--json", "-", *more) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow("several whole analyses")
def test_the_text_names_operation_loops_and_the_next_stretch(
    capsys: pytest.CaptureFixture[str], kept: str
) -> None:
    found = document(decoder(), kept, capsys, "--stretches", "3")
    first, second, third = found["stretches"]
    assert first["operation"]["calls"] == ["vector_svc", "entry_svc", "main", "delete_pool"]
    assert first["decision"]["ways"] == 7
    assert first["without"]["cycles"] == second["cycles"]
    assert first["without"]["fact"].startswith("main+0x")
    assert [loop["iterations"] for loop in first["loops"]] == [400]
    assert third["ends"]["test"] is not None
    latency = found["latency"]
    assert latency["cycles"] == first["cycles"] + latency["interrupt_cycles"]
    assert run(decoder(), kept, "--stretches", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    shown = lines[: lines.index("assumptions")]
    assert max(map(len, shown[3:])) <= 80, "but for the kernel, its platform and facts"
    text = " ".join(" ".join(shown).split())
    assert f"{first['without']['cycles']:,} cycles, if {first['without']['fact']}" in text
    assert "400 times (at most 400 each, proved)" in text
    assert lines[-2].startswith(f"worst interrupt latency: {latency['cycles']:,} cycles")


@pytest.mark.slow("several whole analyses")
def test_the_status_says_whether_the_declared_latency_holds(
    capsys: pytest.CaptureFixture[str], kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles = document(decoder(), kept, capsys)["latency"]["cycles"]
    assert run(decoder(), kept, "--at-most", f"{cycles}") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"at most {cycles:,} cycles: yes, 0 below"
    assert run(decoder(), kept, "--at-most", f"{cycles - 1}") == 1
    assert run(decoder(), kept, "--at-most", "1s") == 0
    assert run(decoder(), kept, "--at-most", "soon") == 3
    assert run(decoder(), kept, "--entry", "syscall", "--at-most", "1s") == 1
    assert "it needs every entry of the platform" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    budget = f'[budgets]\n"interrupt latency" = {cycles - 1}\n'
    (tmp_path / "wcet.toml").write_text(f'kernel = "{decoder()}"\nplatform = "kzm"\n{budget}')
    assert main(["latency", "--quiet", "--cache", kept]) == 1


@pytest.mark.slow("several whole analyses")
def test_stretches_and_latency_are_functions_of_parameters(
    capsys: pytest.CaptureFixture[str], kept: str, tmp_path: Path
) -> None:
    elf, facts = decoder(WALKING), tmp_path / "my.facts"
    assert run(elf, kept) == 2
    assert "loop" in capsys.readouterr().err
    line = WALKING[: WALKING.index("for (; at;")].count("\n") + 4  # of the registers before it
    facts.write_text(f"loop prog.c:{line} at most n\n")
    found = document(elf, kept, capsys, "--facts", str(facts))
    first, second, *_ = found["stretches"]
    assert "·n" in first["function"]
    assert first["operation"]["calls"][-1] == "walk"
    assert second["function"] is None, "it does not walk"
    assert second["operation"]["calls"][-1] == "delete_pool"
    assert found["latency"] is None
    assert "·n" in found["latency_function"]
    assert run(elf, kept, "--facts", facts, "--at-most", "1s") == 1
    out = capsys.readouterr().out
    assert "give parameters a number with --set: n" in out
    assert run(elf, kept, "--facts", facts, "--at-most", "1s", "--set", "n=9") == 0
