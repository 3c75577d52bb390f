"""Core descriptions: every row has a source and a bound; errors name missing or malformed rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline import core as core_module
from pipeline.classes import MULTIPLIES, PLAIN, SATURATING
from pipeline.core import COLUMNS, DIRECTORY, load_core
from pipeline.demand import demand
from pipeline.timing_model import CoreProfile
from quoll.errors import InputError, TimingError
from tests.testing.cache.graphs import pool

CONFIDENCE = {"seen", "derived", "recall", "seed", "assumption"}


CORES = ("arm1136", "cortex-a8")
ARMV7_ONLY = {"BITFIELD", "IT", "MLS", "MOVT"}


def rows(core: str) -> list[dict[str, str]]:
    with (DIRECTORY / f"{core}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("core", CORES)
def test_every_figure_has_a_source_and_a_bound(core: str) -> None:
    for row in rows(core):
        assert tuple(row)[: len(COLUMNS)] == COLUMNS
        assert row["source"]
        assert row["confidence"] in CONFIDENCE
        for nominal, bound in (("issue", "wcet_issue"), ("latency", "wcet_latency")):
            figures = [int(f) for f in row[nominal].removesuffix("+M").split(";") if f]
            bounds = [int(f) for f in row[bound].removesuffix("+M").split(";") if f]
            assert len(bounds) in (len(figures), 1 if figures else 0)
            for i, figure in enumerate(figures):
                assert figure <= bounds[min(i, len(bounds) - 1)], row


@pytest.mark.parametrize("core", CORES)
def test_rows_exist_for_every_class(core: str) -> None:
    names = {name for name, _ in load_core(core, CoreProfile.WCET).rows}
    missing = ARMV7_ONLY if core == "arm1136" else set()
    assert (set(PLAIN.values()) | set(SATURATING.values())) - names == missing - {"MLS"}
    plain = {m.rstrip("X") if m[:4] in ("SMUA", "SMUS", "SMLA", "SMLS") and m.endswith("DX") else m
             for m in MULTIPLIES.values()}  # fmt: skip
    assert plain - names == missing & plain


@pytest.mark.parametrize("profile", CoreProfile)
def test_every_list_length_and_addressing_mode(profile: CoreProfile) -> None:
    core = load_core("arm1136", profile)
    for count in range(1, 17):
        for kind in ("LDM", "STM"):
            aligned, other = (core.row(f"{kind}_{count}", f"{a}aligned8") for a in ("", "un"))
            assert len(aligned.latency) == len(other.latency) == count
            # Alignment unknown takes the unaligned row: it must cover the other.
            assert other.memory >= aligned.memory
            assert all(a <= b for a, b in zip(aligned.latency, other.latency, strict=True))


UNKNOWN = """
    mcr p9, 0, r0, c0, c0, 0
    cdp p9, 3, c0, c0, c1, 0
    mcr p15, 0, r0, c7, c1, 7
    mcrr p15, 0, r0, r1, c12
    mcr p14, 0, r0, c1, c0, 0
"""


@pytest.mark.parametrize("index", range(5))
def test_no_default_latency(index: int) -> None:
    insn = pool(UNKNOWN)[index]
    with pytest.raises(TimingError, match=r"0x0: ") as error:
        demand(load_core("arm1136", CoreProfile.WCET), insn, aligned=True, aligned8=False)
    assert insn.text in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CLZ,any,1,", "CLZ,any,2,", "do not cover"),
        ("CLZ,any,1,", "CLZ,any,one,", "'one' is no number of cycles"),
        ("CLZ,any,1,,1,", "CLZ,any,-1,,1,", "'-1' is no number of cycles"),
        ("CLZ,any,1,,1,", "CLZ,any,1,-1,1,", "'-1' is no number of cycles"),
        ("CLZ,any,1,,1,", "CLZ,any,1,,\u0661,", "'\u0661' is no number of cycles"),
        ("CLZ,any,1,,1,", "CLZ,any,1,,1;9,", "do not cover"),
        ("CLZ,any,1,,1,,", "CLZ,any,1,,1,Rx,", "CLZ, any: no operand 'Rx'"),
        ("CLZ,any,1,,1,,", "CLZ,any,1,,1,flags,", "CLZ, any: no operand 'flags'"),
        ("CLZ,any,1,,1,,,", "CLZ,any,1,,1,,Rn:-2,", "'-2' is no number of cycles"),
        ("CLZ,any,", "DP_IMM,any,", "stands here twice"),
        ("class,condition", "klass,condition", "must have the columns"),
    ],
)
def test_malformed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    text = (DIRECTORY / "arm1136.csv").read_text()
    assert old in text
    (tmp_path / "broken.csv").write_text(text.replace(old, new, 1))
    monkeypatch.setattr(core_module, "DIRECTORY", tmp_path)
    load_core.cache_clear()
    with pytest.raises(InputError, match=message):
        load_core("broken", CoreProfile.WCET)
    with pytest.raises(InputError, match=r"none\.csv"):
        load_core("none", CoreProfile.WCET)
