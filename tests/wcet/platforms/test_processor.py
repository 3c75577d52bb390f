"""Binaries for other processors than the platform's core (issue 18, 12)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pipeline.core import DIRECTORY
from quoll.errors import InputError
from quoll.image.attributes import BuildAttributes
from quoll.image.image import Image
from tests.testing.quoll.building import build
from wcet.cli import main
from wcet.platforms.processor import Processor, check_processor

SOURCE = "int main(int x) { return x + 1; }"
CORES = {"kzm": "arm1136", "cubieboard": "cortex-a8"}


def analyse(folder: Path, cpu: str, *more: str) -> tuple[int, dict[str, Any]]:
    out = folder / "report.json"
    elf = build(SOURCE, cpu=cpu, thumb=cpu.startswith("cortex-m"), link=("-Wl,-Ttext=0xf0010000",))
    options = ["--entry", "main", "--quiet", "--no-cache", "--paths", "none", "--json", str(out)]
    status = main(["analyse", str(elf), *options, *more])
    return status, json.loads(out.read_text()) if status == 0 else {}


def of_processor(report: dict[str, Any]) -> list[str]:
    return [a for a in report["assumptions"] if "processor: " in a]


@pytest.mark.parametrize("platform", ["", *CORES])
@pytest.mark.parametrize(
    "cpu",
    ["cortex-a9", "cortex-a7", "cortex-r5", "cortex-m3", "arm7tdmi", "arm926ej-s", "arm1176jzf-s"],
)
def test_another_processor_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cpu: str, platform: str
) -> None:
    """A regression: all of them got a bound, or, without a platform, GCC's 7-A, 7-R and 7-M did."""
    chosen = ["--platform", platform] if platform else []
    assert analyse(tmp_path, cpu, *chosen)[0] == 3
    error = capsys.readouterr().err
    assert "--force-core" in error or "no platform is known" in error


M_PROFILE = ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m23", "cortex-m33", "cortex-m55"]


@pytest.mark.parametrize("more", [[], ["--platform", "kzm"], ["--platform", "cubieboard"]])
@pytest.mark.parametrize("cpu", M_PROFILE)
def test_the_m_profile_is_refused_even_if_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cpu: str, more: list[str]
) -> None:
    for force in ([], ["--force-core"]):
        assert analyse(tmp_path, cpu, *more, *force)[0] == 3
        error = capsys.readouterr().err
        assert "M profile" in error
        assert "Tag_CPU_arch" in error


@pytest.mark.parametrize(
    ("built", "said"),
    [
        (BuildAttributes(profile="M"), "Tag_CPU_arch_profile is M"),
        (BuildAttributes(arch="v7E-M"), "Tag_CPU_arch is v7E-M"),
        (BuildAttributes(arch="v8.1-M.mainline"), "Tag_CPU_arch is v8.1-M.mainline"),
        (BuildAttributes(cpu="6S-M"), "Tag_CPU_name is 6S-M"),
        (BuildAttributes(cpu="8-M.BASE"), "Tag_CPU_name is 8-M.BASE"),
        (BuildAttributes(cpu="Cortex-M7"), "Tag_CPU_name is Cortex-M7"),
        (BuildAttributes(cpu="7-A", arch="v7", profile="A"), None),
        (BuildAttributes(cpu="ARM7TDMI-S", arch="v4T"), None),
        (BuildAttributes(cpu="ARM11 MPCore", arch="v6K"), None),
        (BuildAttributes(), None),
    ],
)
def test_what_says_m_profile(built: BuildAttributes, said: str | None) -> None:
    assert built.microcontroller == said


def test_without_attributes_a_core_can_be_forced(tmp_path: Path) -> None:
    elf = build(SOURCE, link=("-Wl,-Ttext=0xf0010000",))
    bare = tmp_path / "bare.elf"
    subprocess.run(
        ["arm-none-eabi-objcopy", "-R", ".ARM.attributes", elf, bare], check=True, timeout=60
    )
    options = ["--entry", "main", "--quiet", "--no-cache", "--paths", "none"]
    for more in ([], ["--force-core"]):
        assert main(["analyse", str(bare), *options, "--platform", "kzm", *more]) == 0


@pytest.mark.parametrize(("cpu", "platform"), [("cortex-a8", "kzm"), ("arm1136jf-s", "cubieboard")])
def test_the_core_of_the_other_board_is_refused(tmp_path: Path, cpu: str, platform: str) -> None:
    assert analyse(tmp_path, cpu, "--platform", platform)[0] == 3


def test_forcing_is_listed(tmp_path: Path) -> None:
    """With ``--force-core`` the platform's core is analysed, and the report lists this."""
    status, report = analyse(tmp_path, "cortex-a9", "--force-core")
    assert status == 0
    assert of_processor(report) == [
        "cubieboard: processor: this binary runs on a Cortex-A8 (--force-core), though "
        "Tag_MPextension_use: it may use the multiprocessing extension"
    ]


@pytest.mark.parametrize(
    ("cpu", "text"), [("cortex-a8", "runs on a Cortex-A8"), ("arm1136jf-s", "runs on an ARM1136")]
)
def test_what_attributes_cannot_tell_is_listed(tmp_path: Path, cpu: str, text: str) -> None:
    """GCC writes 7-A and 6J, which are architectures."""
    (assumed,) = of_processor(analyse(tmp_path, cpu)[1])
    assert text in assumed
    assert "fit others too" in assumed


@pytest.mark.parametrize(
    ("cpu", "core", "fits"),
    [
        ("cortex-a8", "cortex-a8", True),
        ("cortex-a9", "cortex-a8", False),
        ("cortex-r4", "cortex-a8", False),
        ("arm1136jf-s", "arm1136", True),
        ("arm1176jzf-s", "arm1136", False),
        ("arm7tdmi", "arm1136", False),
    ],
)
def test_names_that_assemblers_write(cpu: str, core: str, *, fits: bool) -> None:
    """The name of the core itself leaves nothing to assume; another one is refused."""
    source = f".cpu {cpu}\n.global main\n.type main, %function\nmain: mov r0, #1\nbx lr\n"
    image = Image.load(build(source, language="asm"))
    if image.cpu == "6J":  # the command line's -mcpu won
        pytest.skip("this assembler takes the processor from its command line")
    processor = Processor.load(DIRECTORY / f"{core}.toml")
    if fits:
        assert check_processor(image.attributes, "board", processor, force=False) == ()
    else:
        with pytest.raises(InputError, match="Tag_CPU"):
            check_processor(image.attributes, "board", processor, force=False)
