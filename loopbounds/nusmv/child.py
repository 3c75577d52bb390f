"""Run NuSMV in this process: a script, never imported.

    python child.py PARENT MEMORY_BYTES CPU_SECONDS SOLVER [ARGUMENT ...]

SOLVER is an executable, or the shared library of NuSMV 2.5.4, whose start-up sequence is
``NuSMVCore_init_data``, ``_init`` with one row for the add-ons, ``_init_cmd_options``, ``_main``,
and ``_quit`` when that returns true. Address space and processor time are limited first, and the
process dies with PARENT, so that a runaway solver harms nobody.

Most runs are short, so that modules of which only an executable needs something are imported there.
"""

import ctypes
import os
import resource
import sys

__all__ = ["limit", "main", "run_library", "run_program"]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
SIGKILL, SIGTERM = 9, 15  # asm-generic/signal.h
STACK = 1 << 27  # bytes: NuSMV recurses into terms; Linux leaves that much room below a stack


def run_library(path: str, arguments: list[str]) -> int:
    """Exit status of NuSMV's own main, loaded from the library at ``path``."""
    try:
        library = ctypes.CDLL(path)
    except OSError as fault:
        print(f"it cannot be loaded: {fault}", file=sys.stderr)
        return 1
    row = (ctypes.c_void_p * 2)(
        ctypes.cast(library.AddonsCore_Init, ctypes.c_void_p),
        ctypes.cast(library.AddonsCore_Quit, ctypes.c_void_p),
    )
    status = ctypes.c_int(0)
    words = [b"NuSMV", *(os.fsencode(argument) for argument in arguments)]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    library.NuSMVCore_init_data()
    library.NuSMVCore_init(row, 1)
    library.NuSMVCore_init_cmd_options()
    if library.NuSMVCore_main(len(words), argv, ctypes.byref(status)):
        library.NuSMVCore_quit()
    return status.value


def limit(memory: int, seconds: int) -> None:
    """Limit the memory and processor time of this process; no limit can be raised again."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    stack = STACK if most == resource.RLIM_INFINITY else min(STACK, most)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, most))


def run_program(command: list[str], memory: int, seconds: int) -> int:
    """Exit status of an executable; a signal that kills it kills this process, too.

    The executable may be a script whose child processes outlive it. So this process waits, and
    kills its whole process group when its own parent exits.
    """
    import signal

    signal.signal(SIGTERM, lambda number, frame: os.killpg(0, SIGKILL))
    child = os.fork()
    if not child:
        signal.signal(SIGTERM, signal.SIG_DFL)
        limit(memory, seconds)
        os.execv(command[0], command)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        if -status != SIGKILL:  # nobody can catch it, nor reset it
            signal.signal(-status, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -status)
    return status


def main() -> int:
    """Limit this process, then run the solver."""
    parent, memory, seconds = map(int, sys.argv[1:4])
    solver, arguments = sys.argv[4], sys.argv[5:]
    program = not solver.endswith(".so")
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGTERM if program else SIGKILL)
    if os.getppid() != parent:
        return 1
    if program:
        return run_program([solver, *arguments], memory, seconds)
    limit(memory, seconds)
    return run_library(solver, arguments)


if __name__ == "__main__":
    sys.exit(main())
