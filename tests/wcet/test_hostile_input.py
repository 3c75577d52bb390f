"""Hostile input: every command, every file it reads or writes, every option with a number.

A refused run ends with one paragraph and the documented exit status; no run ends with a defect
(status 70), waits for ever, or loses a file of the user.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import COMMANDS, main
from wcet.process import resource_error

pytestmark = [
    pytest.mark.slow("hundreds of commands in one process"),
    pytest.mark.xdist_group("hostile input"),
]

SOURCE = """\
unsigned table[8];
unsigned sum(unsigned n) {
    unsigned total = 0;
    for (unsigned i = 0; i < 8; i++) total += table[i] + n;
    return total;
}
unsigned main(unsigned n) { return sum(n) + 1; }
"""
LONG = "9" * 5000
SECONDS = 60  # that no run here may take


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(SOURCE, "-fno-inline", optimise="-O1")


@pytest.fixture(autouse=True)
def within_seconds() -> Iterator[None]:
    """A run that takes longer than ``SECONDS`` fails."""

    def too_long(*_: object) -> None:
        raise AssertionError("the run waits")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def command(name: str, elf: Path | str) -> list[str]:
    """A small run of a command; where a recording is needed, another file takes its place."""
    elf = str(elf)
    quiet = ["--platform", "kzm", "--quiet", "--no-cache"]
    return {
        "advise": ["advise", elf, "--entry", "main", *quiet],
        "prove": ["prove", elf, "--entry", "main", *quiet],
        "refine": ["refine", elf, "--entry", "main", *quiet],
        "analyse": ["analyse", elf, "--entry", "main", *quiet],
        "baseline": ["baseline", elf, "--entry", "main", *quiet],
        "cache": ["cache", elf, "--entry", "main", *quiet],
        "callgraph": ["callgraph", elf],
        "cfg": ["cfg", elf],
        "check": ["check", elf, "--entry", "main", "--budget", "main=1s", *quiet],
        "check-facts": ["check-facts", elf, __file__, *quiet],
        "completion": ["completion", "bash"],
        "diff": ["diff", elf, elf, "--entry", "main", *quiet],
        "disasm": ["disasm", elf, "main"],
        "explain": ["explain"],
        "help": ["help"],
        "init": ["init", elf, "--output", "-"],
        "latency": ["latency", elf, "--entry", "main", *quiet],
        "loops": ["loops", elf, "--entry", "main", *quiet],
        "masked": ["masked", elf, "--entry", "main", *quiet],
        "platform": ["platform", "check", "kzm", elf],
        "pin": ["pin", elf, "--entry", "main", *quiet],
        "path": ["path", elf, "--entry", "main", *quiet],
        "replay": ["replay", __file__, "--kernel", elf, "--quiet"],
        "setup": ["setup", "--list"],
        "sweep": ["sweep", "matrix.toml", "--quiet"],
        "timing": ["timing", elf, "main", *quiet],
        "values": ["values", elf, "main", *quiet],
    }[name]


FROM_TRACES = ("check-facts", "replay")
ONE_STATUS = ("check", "diff", "latency")  # for every error: 3
READ_NO_ELF = ("completion", "explain", "help", "setup", "sweep")
READ_ELF = sorted(COMMANDS.keys() - {*READ_NO_ELF})
HAVE_FACTS = sorted(set(READ_ELF) - {"init", "platform"})
HAVE_PLATFORMS = sorted(set(READ_ELF) - {"cfg", "disasm", "callgraph", "platform"})


def refused(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> str:
    """Run ``wcet``: it ends so, with one paragraph and no output; returns the paragraph."""
    capsys.readouterr()
    try:
        found = main([str(a) for a in arguments])
    except SystemExit as exit_:
        found = int(exit_.code or 0)
    captured = capsys.readouterr()
    assert found == status, captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err
    last: str = captured.err.splitlines()[-1]
    assert "error E1" in last
    assert len(last) < 3000
    assert all(c.isprintable() for c in last)
    return last


def test_every_command_is_in_the_table(elf: Path) -> None:
    assert all(command(name, elf)[0] == name for name in COMMANDS)


@pytest.fixture(params=["pipe", "directory", "zero", "socket", "missing", "forbidden byte", "loop"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """A path at which no file can be read."""
    path = tmp_path / "nothing.toml"
    listening = socket.socket(socket.AF_UNIX)
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "zero":
            path.symlink_to("/dev/zero")
        case "socket":
            folder = os.getcwd()
            os.chdir(tmp_path)  # names of sockets are short
            listening.bind(path.name)
            os.chdir(folder)
        case "loop":
            path.symlink_to(path)
    yield "zero\0byte.toml" if request.param == "forbidden byte" else path
    listening.close()


@pytest.mark.parametrize("name", READ_ELF)
def test_what_is_no_file_is_no_binary(
    name: str, no_file: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command(name, no_file)
    assert (
        "nothing.toml" in refused(capsys, 3, *arguments)
        or "zero" in str(no_file)
        or (name in FROM_TRACES)
    )


@pytest.mark.parametrize("name", HAVE_FACTS)
def test_nor_are_they_facts(
    name: str, no_file: Path | str, elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = 3 if name in (*FROM_TRACES, *ONE_STATUS) else 4  # the recording is read first
    refused(capsys, status, *command(name, elf), "--facts", no_file)


@pytest.mark.parametrize("name", ["cfg", "analyse", "loops"])
def test_nor_memory_nor_symbols(
    name: str, no_file: Path | str, elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, 3, *command(name, elf), "--raw", f"{no_file}@0x9000")
    refused(capsys, 3, *command(name, elf), "--symbols", no_file)


@pytest.mark.parametrize("name", HAVE_PLATFORMS)
def test_nor_platforms(
    name: str, no_file: Path | str, elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, 3, *command(name, elf), "--platform", no_file)


def test_nor_recordings(no_file: Path | str, elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, 3, "replay", no_file, "--kernel", elf, "--quiet")
    refused(capsys, 3, "check-facts", elf, no_file, "--quiet")


@pytest.mark.parametrize(
    "fact",
    [
        f"loop prog.c:4 at most {LONG}",
        f"loop prog.c:{LONG} at most 3",
        f"loop main+{LONG} at most 3",
        f"loop 0x{LONG} at most 3",
        f"loop prog.c:4 at most 0x{LONG}",
        f"loop prog.c:4 at most n + {LONG}",
        "loop prog.c:4 at most 9223372036854775808",
        f"main executes at most {LONG} times",
        f"{LONG}*count(main) <= 3",
        f"count(main) <= {LONG}",
        f"function sum takes at most {LONG} cycles",
        f"recursion of sum at most {LONG}",
        f"register r0 at main is at most {LONG}",
        f"region a from 0x0 to 0x{LONG} is cached",
        f"list at main has at most {LONG} elements",
        "loop prog.c:4 at most 3\0",
        "\0",
        "x" * 100_000,
        "loop \x1b[2J at most 3",
        "\ud800",
    ],
)
def test_facts_with_numbers_that_are_none(
    fact: str, elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "my.facts"
    facts.write_text(fact, encoding="utf-8", errors="surrogatepass")
    message = refused(capsys, 4, *command("analyse", elf), "--facts", facts)
    assert "my.facts" in message


@pytest.mark.parametrize("number", [LONG, "0x" + LONG, "-1", "nan", "inf", "1e400", '"\\u0000"'])
@pytest.mark.parametrize("key", ["clock_hz", "size", "aligned", "virtual", "fetch_ahead"])
def test_platforms_with_numbers_that_are_none(
    number: str, key: str, elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = Path(__file__).parents[2] / "wcet" / "platforms" / "kzm.toml"
    lines = shipped.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{key} = "))
    lines[at] = f"{key} = {number}"
    board = tmp_path / "board.toml"
    board.write_text("\n".join(lines))
    assert "board.toml" in refused(capsys, 3, *command("analyse", elf), "--platform", board)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "[" * 100_000,
        "a = " + "[" * 100_000,
        "[a]\n[a]\n",
        "a = {",
        b"\xff\xfe".decode("latin1"),
    ],
)
def test_platforms_that_are_none(
    text: str, elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "board.toml"
    board.write_text(text)
    assert "board.toml" in refused(capsys, 3, *command("analyse", elf), "--platform", board)


@pytest.mark.parametrize(
    "text", ["{fetch_ahead.__class__}", "{fetch_ahead:>99999999999}", "{0}", "{", "}", "{nothing}"]
)
def test_platforms_with_assumptions_that_are_programs(
    text: str, elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = Path(__file__).parents[2] / "wcet" / "platforms" / "kzm.toml"
    board = tmp_path / "board.toml"
    board.write_text(shipped.read_text().replace("a constant {clock_mhz} MHz", text))
    assert "clock" in refused(capsys, 3, *command("analyse", elf), "--platform", board)


NUMBERS = {
    "--time-limit": ("analyse", "cache", "check-facts", "loops", "path", "timing", "values"),
    "--context": ("timing", "values"),
    "--states": ("replay",),
    "--seed": ("replay",),
    "--most": ("cache",),
    "--depth": ("path",),
    "--min": ("path",),
}


@pytest.mark.parametrize(
    ("option", "name"), [(o, n) for o, names in NUMBERS.items() for n in names]
)
@pytest.mark.parametrize("number", ["1e20", "nan", "inf", "-1", LONG, "", "\0", "१", "1_0.0.0"])
def test_numbers_out_of_range(
    option: str, name: str, number: str, elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(capsys, 2, *command(name, elf), f"{option}={number}")
    assert option in message


@pytest.mark.parametrize("number", ["0", "-0.0"])
def test_no_time_at_all(number: str, elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in NUMBERS["--time-limit"]:
        refused(capsys, 2, *command(name, elf), f"--time-limit={number}")


@pytest.mark.parametrize(
    "value", [f"n={LONG}", "n=-1", "n=", "=1", "", f"{LONG}=1", "n=9223372036854775808"]
)
def test_parameters_out_of_range(value: str, elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, 2, *command("analyse", elf), "--set", value)


@pytest.mark.parametrize("name", READ_ELF)
@pytest.mark.parametrize(
    "entry",
    [
        "",
        "\0",
        LONG,
        "-1",
        "0x" + LONG,
        "0x1ffffffff",
        "\udcff",
        "x" * 5000,
        "0x",
        "prog.c:" + LONG,
    ],
)
def test_entries_that_are_none(
    name: str, entry: str, elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name not in (*FROM_TRACES, "init", "platform"):
        status = 3 if name in ONE_STATUS else 2
        refused(capsys, status, *command(name, elf), f"--entry={entry}")


@pytest.mark.slow("starts many processes")
@pytest.mark.parametrize("place", ["", "\0", LONG, f"prog.c:{LONG}", f"main+{LONG}", "\udcff"])
def test_ends_that_are_none(place: str, elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, 4, *command("analyse", elf), f"--end={place}")
    refused(capsys, 4, *command("path", elf), f"--why={place or ' '}")


OUTPUTS = [
    ("analyse", "--json"), ("analyse", "--html"), ("analyse", "--lp"), ("analyse", "--mps"),
    ("cache", "--json"),
    ("callgraph", "--dot"), ("cfg", "--json"), ("loops", "--json"), ("path", "--json"),
    ("path", "--flame"), ("timing", "--json"), ("values", "--json"),
    ("check-facts", "--json"), ("replay", "--json"),
]  # fmt: skip


@pytest.fixture
def copied(elf: Path, tmp_path: Path) -> dict[str, Path]:
    """The ELF and its facts by every name they have."""
    kernel, facts = tmp_path / "kernel.elf", tmp_path / "kernel.facts"
    kernel.write_bytes(elf.read_bytes())
    facts.write_text("# no fact\n")
    (tmp_path / "link.elf").symlink_to(kernel)
    (tmp_path / "hard.elf").hardlink_to(kernel)
    (tmp_path / "below").mkdir()
    return {
        "itself": kernel,
        "by a link": tmp_path / "link.elf",
        "by a hard link": tmp_path / "hard.elf",
        "by another path": tmp_path / "below" / ".." / "kernel.elf",
        "its facts": facts,
    }


@pytest.mark.parametrize(("name", "option"), OUTPUTS)
def test_no_output_replaces_an_input(
    name: str, option: str, copied: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was analysed, and then it was gone."""
    kernel = copied["itself"]
    before = kernel.read_bytes()
    for path in copied.values():
        message = refused(capsys, 2, *command(name, kernel), option, path)
        assert "is an input" in message
    assert kernel.read_bytes() == before
    assert copied["its facts"].read_text() == "# no fact\n"


@pytest.mark.parametrize(("name", "option"), OUTPUTS)
def test_outputs_that_cannot_be_written_are_refused_first(
    name: str, option: str, elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path, tmp_path / "no" / "folder", tmp_path / ("x" * 300), "a\0b"):
        refused(capsys, 2, *command(name, elf), option, path)


def test_two_outputs_to_one_file(
    elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    for one, other in ((out, out), (out, tmp_path / "." / "out"), ("-", "-")):
        refused(capsys, 2, *command("path", elf), "--json", one, "--flame", other)
    assert not out.exists()


def test_one_of_several_outputs_fails(
    elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None is written, and old files stay; --lp was once written before --json failed."""
    first, last = tmp_path / "first.lp", tmp_path / "full.json"
    first.write_text("precious")
    last.symlink_to("/dev/full")
    arguments = [*command("analyse", elf), "--lp", first, "--json", last]
    assert "No space left" in refused(capsys, 2, *arguments)
    assert first.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first.lp", "full.json"]


@pytest.mark.slow("starts many processes")
def test_programs_of_several_entries_do_not_replace_an_input_either(
    elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The names of the files are made from the one that is given."""
    kernel = tmp_path / "out.main.lp"
    kernel.write_bytes(elf.read_bytes())
    arguments = [*command("analyse", kernel), "--entry", "sum", "--lp", tmp_path / "out.lp"]
    assert "is an input" in refused(capsys, 2, *arguments)
    assert kernel.read_bytes() == elf.read_bytes()
    assert not (tmp_path / "out.sum.lp").exists()


def test_an_output_keeps_its_permissions(elf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    out.chmod(0o600)
    assert main([*command("cfg", elf), "--json", str(out)]) == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert out.read_text().startswith("{")
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_names_of_an_elf_are_fit_for_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters in names of symbols and files were sent to the terminal."""
    elf = tmp_path / "program.elf"
    data = build(".text\n.global main\nmain: bx lr\nevil_name: nop\n", language="asm").read_bytes()
    assert b"evil_name" in data
    elf.write_bytes(
        data.replace(b"evil_name", b"\x1b[2J\r\n\xffXY").replace(b"prog.S", b"\x1b]0;ab")
    )
    assert main(["cfg", str(elf), "--entry", "main"]) == 0
    assert main(["disasm", str(elf), "main"]) == 0
    text = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in text)


def test_very_long_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "n" * 4000
    elf = build(f".text\n.global main\nmain: b {name}\n{name}: bx lr\n", language="asm")
    assert main([*command("analyse", elf)]) == 0
    facts = tmp_path / "my.facts"
    facts.write_text(f"loop {name}{name} at most 3\n")
    refused(capsys, 4, *command("analyse", elf), "--facts", facts)


# Properties of the process: its streams, its locale, its limits.


def process(
    arguments: list[str],
    *,
    shell: str = '"$@"',
    limits: dict[int, int] | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """``wcet`` as a process; ``shell`` says where its streams go."""

    def limited() -> None:
        for what, most in (limits or {}).items():
            resource.setrlimit(what, (most, most))

    wcet = [sys.executable, "-m", "wcet.cli", *arguments]
    return subprocess.run(
        ["sh", "-c", shell, "sh", *wcet],
        capture_output=True,
        env={**os.environ, "PYTHONUNBUFFERED": "", **(environment or {})},
        preexec_fn=limited,
        timeout=SECONDS,
        check=False,
    )


def judge(done: subprocess.CompletedProcess[bytes], status: int) -> str:
    """It ends so, with one paragraph."""
    text = done.stderr.decode("ascii", "replace")
    assert done.returncode == status, text
    assert "Traceback" not in text
    assert "Exception ignored" not in text
    if status:
        assert text.splitlines()[-1].startswith("wcet: error E1"), text
    return text


STREAMS = [
    ('"$@" >&-', 2),
    ('"$@" > /dev/full', 2),
    ('"$@" 2>&-', 0),
    ('"$@" 2> /dev/full', 0),
    ('"$@" <&-', 0),
    ('"$@" >&- 2>&-', 2),
    ('"$@" <&- >&- 2>&-', 2),
    ('"$@" > /dev/full 2> /dev/full', 2),
    ('"$@" | true', 0),
]


@pytest.mark.slow("starts many processes")
@pytest.mark.parametrize(("shell", "status"), STREAMS)
def test_streams_that_are_closed_or_full(shell: str, status: int, elf: Path) -> None:
    """The streams of Python have a buffer in every other case."""
    environment = {"PYTHONUNBUFFERED": "1" if STREAMS.index((shell, status)) % 2 else ""}
    done = process(["cfg", str(elf)], shell=shell, environment=environment)
    assert done.returncode == status, done.stderr
    if status and "2>" not in shell:
        judge(done, status)


@pytest.mark.slow("starts many processes")
def test_help_to_a_full_disk() -> None:
    judge(process(["--help"], shell='"$@" > /dev/full'), 2)


@pytest.mark.slow("starts many processes")
def test_a_failing_standard_output_leaves_files_alone(elf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("precious")
    arguments = ["cfg", str(elf), "--json", str(out)]
    judge(process(arguments, shell='"$@" > /dev/full'), 2)
    assert out.read_text() == "precious"
    judge(process(arguments, shell='"$@" >&-'), 2)
    assert out.read_text() == "precious"
    judge(process(arguments, shell='"$@" | true'), 0)
    assert out.read_text().startswith("{"), "nobody reads on, and nothing has failed"


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}


@pytest.mark.slow("starts many processes")
def test_a_locale_without_half_of_the_characters(elf: Path, tmp_path: Path) -> None:
    """The report has a column µs; the copy's name is no UTF-8 either."""
    copy = tmp_path / os.fsdecode(b"kernel\xff\xc3\xbc.elf")
    copy.write_bytes(elf.read_bytes())
    out = tmp_path / "out.json"
    for environment in (ASCII, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONUTF8": "1"}):
        arguments = [*command("analyse", copy), "--json", str(out)]
        done = process(arguments, environment=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        assert out.read_text(encoding="utf-8")
    done = process(command("analyse", copy), environment=ASCII)
    assert b"us " in done.stdout
    assert done.stdout.isascii()


@pytest.mark.slow("starts many processes")
@pytest.mark.parametrize(
    ("what", "most"),
    [
        (resource.RLIMIT_NOFILE, 5),
        (resource.RLIMIT_NOFILE, 6),
        (resource.RLIMIT_NOFILE, 12),
        (resource.RLIMIT_AS, 60 << 20),
        (resource.RLIMIT_AS, 150 << 20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_FSIZE, 4096),
        (resource.RLIMIT_CPU, 2),
    ],
)
def test_limits_of_the_shell(what: int, most: int, elf: Path, tmp_path: Path) -> None:
    """The limit suffices, or one paragraph names the limit (10) or the solver (6, 8)."""
    out = tmp_path / "out.json"
    out.write_text("precious")
    arguments = [*command("analyse", elf), "--json", str(out)]
    done = process(arguments, limits={what: most})
    assert done.returncode in (0, 6, 8, 10) or (done.returncode == 2 and b"write" in done.stderr), (
        done
    )
    if done.returncode:
        judge(done, done.returncode)
        assert out.read_text() == "precious"


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (MemoryError(), "memory"),
        (OSError(errno.EMFILE, "no more"), "open files"),
        (BlockingIOError(errno.EAGAIN, "no more"), "processes"),
        (OSError(errno.ENOSPC, "no more"), "disk"),
        (ImportError("libx.so: failed to map segment from shared object"), "memory"),
        (RuntimeError("can't start new thread"), "processes"),
        (KeyError("x"), None),
    ],
)
def test_what_is_short_has_a_status_of_its_own(error: Exception, what: str | None) -> None:
    found = resource_error(error)
    assert (found is None) == (what is None)
    if found is not None:
        assert found.exit_status == 10
        assert str(what) in str(found)


@pytest.mark.slow("starts many processes")
def test_processor_time_that_runs_out(tmp_path: Path) -> None:
    """The shell's limit ended the run without a word."""
    text = "".join(
        f"f{i}: cmp r0, #{i & 255}\nbeq f{i}\nbl f{(i * 7 + 1) % 3000}\nbx lr\n"
        for i in range(3000)
    )
    large = build(f".text\n.global main\nmain:\n{text}", language="asm")
    done = process(["cfg", str(large)], limits={resource.RLIMIT_CPU: 2})
    if done.returncode:
        assert "processor time" in judge(done, 10)


@pytest.mark.slow("starts many processes")
def test_an_interrupted_run(elf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("precious")
    arguments = [*command("analyse", elf), "--json", str(out)]
    running = subprocess.Popen(
        [sys.executable, "-m", "wcet.cli", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    time.sleep(0.8)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode in (0, 130, -signal.SIGINT)
    assert b"Traceback" not in said
    if running.returncode == 130:
        assert said.splitlines()[-1] == b"wcet: interrupted; no output was written"
        assert out.read_text() == "precious"


def test_a_defect_is_one_paragraph(
    elf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> Callable[[], None]:
        raise KeyError("two\nlines")

    monkeypatch.setattr("wcet.commands.listing.extract", broken)
    assert main(["cfg", str(elf)]) == 70
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert "please report it" in captured.err
    monkeypatch.setenv("WCET_DEBUG", "1")
    assert main(["cfg", str(elf)]) == 70
    assert "Traceback" in capsys.readouterr().err
