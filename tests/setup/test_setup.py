"""The steps of set-up, and its state after an interruption.

The real ``scripts/setup`` is run by the real ``make``, from a path with spaces. Small programs
replace the installers and record their calls: the tests check which steps run, not whether Debian
and the package index work.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("runs make and the scripts that set up a checkout")

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *["Makefile", "pyproject.toml", "requirements.txt", "scripts/setup"],
    *["loopbounds/nusmv/requirements.txt", "wcet/page/npm/package-lock.json"],
    "scripts/npm_packages.py",
]
LAYOUT = "wcet/page/npm/node_modules/@dagrejs/dagre/package.json"

# Makes .venv/bin/python another copy of itself; that one plays pip. BREAK names a
# word of a call at which it fails with MESSAGE, or kills set-up and all it started.
PYTHON = """#!/bin/bash
echo "python $*" >> "$LOG"
case "$*" in
    "-V") echo "Python 3.99" ;;
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
if [[ -z $BREAK || " $* " != *" $BREAK "* ]]; then
    [[ $* != scripts/npm_packages.py ]] || { mkdir -p "${LAYOUT%/*}" && touch "$LAYOUT"; }
    exit 0
fi
[ "$MESSAGE" ] || kill -KILL 0
echo "$MESSAGE"
exit 1
"""
NOTE = '#!/bin/bash\necho "$(basename "$0") $*" >> "$LOG"\n'
DPKG_QUERY = '#!/bin/bash\n[[ " $MISSING " == *" ${!#} "* ]] || echo -n installed\n'
STUBS = {
    "python-of-test": PYTHON,
    "dpkg-query": DPKG_QUERY,
    "id": '#!/bin/bash\necho "${USER_ID:-0}"\n',
    "sudo": "#!/bin/bash\nexit 1\n",
    **dict.fromkeys(
        [
            *("NuSMV", "gcc", "arm-none-eabi-gcc", "qemu-system-arm", "qemu-arm"),
            *(
                "chromium",
                "chromedriver",
                "dot",
                "groff",
                "clang",
                "ld.lld",
                "apt-get",
                "dpkg",
                "npm",
            ),
        ],
        NOTE,
    ),
}


@dataclass
class Checkout:
    """A copy of the files of set-up, and the programs it finds on PATH."""

    root: Path
    fakes: Path
    log: Path
    python: str = "python-of-test"

    def setup(self, target: str = "setup", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", target, f"PYTHON={self.python}"],
            cwd=self.root,
            env={
                "PATH": f"{self.fakes}:/usr/bin:/bin",
                "LOG": str(self.log),
                **variables,
                "LAYOUT": LAYOUT,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            check=False,
        )

    def calls(self) -> list[str]:
        """The calls noted since the last time, questions about versions left out."""
        text = self.log.read_text() if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        questions = ("python -c", "python -V")
        return [line for line in text.splitlines() if not line.startswith(questions)]

    def made(self) -> bool:
        """Whether the calls since the last time made a virtual environment from nothing."""
        return "python -m venv .venv" in self.calls()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, fakes = tmp_path / "a path with spaces", tmp_path / "fakes"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    fakes.mkdir()
    for name, text in STUBS.items():
        (fakes / name).write_text(text)
        (fakes / name).chmod(0o755)
    return Checkout(root, fakes, tmp_path / "log")


def test_the_second_run_does_nothing(checkout: Checkout) -> None:
    first = checkout.setup()
    assert first.returncode == 0, first.stdout
    calls = checkout.calls()
    assert "python -m venv .venv" in calls
    assert [call for call in calls if "--require-hashes -r requirements.txt" in call]
    assert [call for call in calls if call.endswith("--editable .")]
    assert not [call for call in calls if call.startswith(("apt-get", "dpkg"))]

    second = checkout.setup()
    assert (second.returncode, second.stdout, checkout.calls()) == (0, "", [])


def test_a_browser_is_installed_for_the_tests_only(checkout: Checkout) -> None:
    assert checkout.setup(MISSING="chromium chromium-driver").returncode == 0
    assert not [call for call in checkout.calls() if call.startswith("apt-get")]
    with (checkout.root / "scripts/setup").open("a") as file:
        file.write("# changed\n")
    assert checkout.setup("setup-tests", MISSING="chromium chromium-driver").returncode == 0
    (asked,) = [call for call in checkout.calls() if " install " in call and "apt-get" in call]
    assert asked.endswith(" chromium chromium-driver")


def test_an_optimised_python_is_preferred(checkout: Checkout, tmp_path: Path) -> None:
    (checkout.fakes / "python3").write_text('#!/bin/bash\n[ "$1" != -c ]\n')
    (tmp_path / "optimised").mkdir()
    (tmp_path / "optimised/python3").write_text(PYTHON)
    for python in (checkout.fakes / "python3", tmp_path / "optimised/python3"):
        python.chmod(0o755)
    checkout.python = ""
    path = f"{checkout.fakes}:{tmp_path / 'optimised'}:/usr/bin:/bin"

    done = checkout.setup(PATH=path)

    assert done.returncode == 0, done.stdout
    assert f"using {tmp_path / 'optimised/python3'}: the first" in done.stdout
    assert checkout.made()


@pytest.mark.parametrize(
    "moment", [".venv", "requirements.txt", "scripts/npm_packages.py", "--editable"]
)
def test_an_interrupted_run_is_repaired(checkout: Checkout, moment: str) -> None:
    killed = checkout.setup(BREAK=moment)
    assert killed.returncode == -signal.SIGKILL
    assert not (checkout.root / ".venv/.quoll-setup").exists()
    (checkout.root / ".venv/half-made").touch()
    checkout.calls()

    assert checkout.setup().returncode == 0
    assert checkout.made()
    assert not (checkout.root / ".venv/half-made").exists()
    assert (checkout.setup().stdout, checkout.calls()) == ("", [])


@pytest.mark.parametrize(
    "name",
    ["requirements.txt", "pyproject.toml", "wcet/page/npm/package-lock.json", "scripts/setup"],
)
def test_a_changed_requirement_brings_the_environment_up_to_date(
    checkout: Checkout, name: str
) -> None:
    checkout.setup()
    checkout.calls()
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")

    assert checkout.setup().returncode == 0
    calls = checkout.calls()
    assert [call for call in calls if " -r requirements.txt" in call]
    assert "python -m venv .venv" not in calls
    assert (checkout.setup().stdout, checkout.calls()) == ("", [])


def test_a_script_of_the_reports_that_is_gone_is_fetched_again(checkout: Checkout) -> None:
    checkout.setup()
    checkout.calls()
    (checkout.root / LAYOUT).unlink()

    assert checkout.setup().returncode == 0
    assert "python scripts/npm_packages.py" in checkout.calls()
    assert (checkout.setup().stdout, checkout.calls()) == ("", [])


def test_without_the_script_of_the_reports_set_up_is_not_complete(checkout: Checkout) -> None:
    failed = checkout.setup(BREAK="scripts/npm_packages.py", MESSAGE="downloading failed: refused")
    assert failed.returncode != 0
    assert "downloading failed: refused" in failed.stdout
    assert "graphs of reports" in paragraph(failed.stdout)
    assert not (checkout.root / ".venv/.quoll-setup").exists()


def test_an_update_that_is_interrupted_is_not_trusted(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.root / "requirements.txt").write_text("# changed\n")
    checkout.setup(BREAK="requirements.txt")
    checkout.calls()

    assert checkout.setup().returncode == 0
    assert checkout.made()


def test_a_moved_checkout_is_set_up_again(checkout: Checkout) -> None:
    checkout.setup()
    checkout.calls()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))

    assert checkout.setup().returncode == 0
    assert checkout.calls() != []
    assert (checkout.setup().stdout, checkout.calls()) == ("", [])


def test_a_virtual_environment_that_set_up_did_not_finish_is_made_again(
    checkout: Checkout,
) -> None:
    (checkout.root / ".venv").mkdir()
    done = checkout.setup()
    assert done.returncode == 0
    assert "unfinished" in done.stdout
    assert checkout.made()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "checksum"),
        ("ERROR: No matching distribution found", "Check the network"),
    ],
)
def test_a_failed_download_says_why_and_is_not_complete(
    checkout: Checkout, message: str, said: str
) -> None:
    failed = checkout.setup(BREAK="requirements.txt", MESSAGE=message)
    assert failed.returncode != 0
    assert message in failed.stdout
    assert said in paragraph(failed.stdout)
    assert not (checkout.root / ".venv/.quoll-setup").exists()


def test_missing_packages_are_installed_by_root(checkout: Checkout) -> None:
    done = checkout.setup(MISSING="gcc qemu-system-arm")
    assert done.returncode == 0, done.stdout
    calls = checkout.calls()
    [update, install] = [call for call in calls if call.startswith("apt-get")]
    assert update.endswith(" update")
    assert install.endswith(" install --no-install-recommends gcc qemu-system-arm")
    assert calls.index(install) < calls.index("python -m venv .venv")


def test_missing_packages_without_rights_are_named(checkout: Checkout) -> None:
    failed = checkout.setup(MISSING="qemu-system-arm", USER_ID="1000")
    assert failed.returncode != 0
    assert "apt-get install --no-install-recommends qemu-system-arm" in paragraph(failed.stdout)
    assert checkout.calls() == []
    assert not (checkout.root / ".venv").exists()


def test_without_nusmv_and_elsewhere_than_x86_64_it_must_be_on_the_path(
    checkout: Checkout,
) -> None:
    (checkout.fakes / "NuSMV").unlink()
    uname = checkout.fakes / "uname"
    uname.write_text('#!/bin/bash\n[ "$1" = -m ] && echo aarch64 || echo Linux\n')
    uname.chmod(0o755)
    failed = checkout.setup()
    assert failed.returncode != 0
    assert "Linux aarch64. Put NuSMV on PATH" in paragraph(failed.stdout)


def paragraph(output: str) -> str:
    """The message of set-up when it stopped, on one line."""
    return " ".join(output.partition("set-up stopped:")[2].split())
