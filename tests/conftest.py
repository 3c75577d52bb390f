"""Settings of all tests, and recordings of the shipped kernel, made once."""

import ctypes
import fcntl
import gc
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from loopbounds.smt.solver import SmtSolver
from quoll.recordings.trace import Execution, Trace
from tests.testing.harness import qemu
from tests.testing.harness.cases import cases
from tests.testing.harness.huge_pages import use_huge_pages
from tests.testing.quoll.recordings import written

# The same examples on every run: a failure is a fact, not luck. No deadline, because two test
# processes share two cores with all other processes.
settings.register_profile("quoll", derandomize=True, deadline=None, max_examples=cases(24))
settings.load_profile("quoll")

VARIANTS = cases(1)
EVERY = max(4 - cases(1), 1)  # of the paths of an entry with many
FEW = 20
LONGEST = 200_000  # instructions
MUCH = 100 << 20  # bytes; a fork takes 10 ms for as many in small pages
SOME = 10 << 20  # bytes
PROCESSORS = os.sched_getaffinity(0)  # of the whole run


def pytest_configure() -> None:
    """Give each worker of pytest-xdist a processor of its own.

    Analyses in it then start no processes beside it: each would be a fork of a large process, for
    a processor that another worker uses.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if worker.isdecimal():
        os.sched_setaffinity(0, {sorted(PROCESSORS)[int(worker) % len(PROCESSORS)]})


@pytest.fixture
def all_processors() -> Iterator[None]:
    """All processors of the run: for tests of processes beside the one under test."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, PROCESSORS)
    yield
    os.sched_setaffinity(0, own)


@pytest.fixture(scope="session")
def suite_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recording of the user-level test suite, its output, and its exceptions.

    One process makes it for all of a test run. A path has executions with at most ``VARIANTS``
    sets of addresses, and an entry every third of its paths; the campaigns have all. Two that clear
    millions of bytes without an interrupt are left out: others have each of their iterations, too.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / "suite"
    with (folder / "suite.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            partial = folder / "suite.partial"
            partial.mkdir()
            trace, log = partial / "tests.trace", ("-d", "int", "-D", str(partial / "exceptions"))
            output = qemu.record(trace, "kzm-after", "tests", *log, variants=VARIANTS)
            (partial / "output").write_text(output, encoding="utf-8")
            trace.write_bytes(written(sampled(Trace.read(trace).executions)))
            partial.rename(made)
    return made


@pytest.fixture(scope="session")
def recording(suite_run: Path) -> Path:
    """The file of the kernel's executions of the user-level test suite."""
    return suite_run / "tests.trace"


def sampled(executions: Iterable[Execution]) -> list[Execution]:
    """The executions of some paths: every path of an entry that has few."""
    paths: dict[int, dict[bytes, int]] = {}
    found = []
    for execution in executions:
        known = paths.setdefault(execution.entry, {})
        number = known.setdefault(execution.pcs.tobytes(), len(known))
        if len(execution.pcs) < LONGEST and (number < FEW or number % EVERY == 0):
            found.append(execution)
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Units of work for the workers of pytest-xdist, long ones first, so that all end together.

    A unit is a named group, or a file: spread over the workers, its tests would compile each of its
    programs, and make each of its fixtures, once a worker. Files without slow tests are the last.
    """
    groups = Counter(mark.args[0] for item in items for mark in item.iter_markers("xdist_group"))
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    if "PYTEST_XDIST_WORKER" in os.environ:

        def rank(item: pytest.Item) -> tuple[bool, int]:
            mark = item.get_closest_marker("xdist_group")
            number = groups[mark.args[0]] if mark else 0
            return not number, -(number or slow[item.path])

        items.sort(key=rank)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tests are printed, and known to ``--last-failed``, by names without their unit of work."""
    at = report.nodeid.rfind("@")
    if at > report.nodeid.rfind("]") and "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = report.nodeid[:at]


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no collection of garbage looks at them again."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        SmtSolver()  # loads its library here, and not in each process that is forked for a proof
    gc.collect()
    gc.freeze()
    _use_huge_pages()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Forks of gigabytes in small pages are slow: return freed memory, make new pages huge.

    Memory is returned only after the last test of a module, because a collection takes seconds.
    """
    yield
    now = resident()
    if nextitem is not None and nextitem.path != item.path and now > KEPT[0] + MUCH:
        gc.collect()  # the command seldom does
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        KEPT[0] = resident()
        _use_huge_pages()
    elif now > HUGE[0] + SOME:
        _use_huge_pages()


def _use_huge_pages() -> None:
    """In workers only: they live long."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        use_huge_pages()
        HUGE[0] = resident()


def resident() -> int:
    """The bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


KEPT = [300 << 20]  # bytes after the last collection: at first all modules and all tests
HUGE = [0]  # bytes when pages were last made huge
