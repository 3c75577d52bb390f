"""Run NuSMV in this process: a script, never imported.

    python nusmv_child.py MEMORY_BYTES CPU_SECONDS SOLVER [ARGUMENT ...]

SOLVER is an executable, which then replaces this process, or the shared library of NuSMV 2.5.4,
whose start-up sequence is ``NuSMVCore_init_data``, ``_init`` with one row for the add-ons,
``_init_cmd_options``, ``_main``, and ``_quit`` when that returns true. Address space
and processor time are limited first, and the process dies with its parent, so that a runaway
solver harms nobody.
"""

import ctypes
import os
import resource
import signal
import sys

__all__ = ["main", "run_library"]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
STACK = 1 << 27  # bytes: NuSMV recurses into terms; Linux leaves that much room below a stack


def run_library(path: str, arguments: list[str]) -> int:
    """Exit status of NuSMV's own main, loaded from the library at ``path``."""
    library = ctypes.CDLL(path)
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


def main() -> int:
    """Limit this process, then run the solver."""
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    solver, arguments = sys.argv[3], sys.argv[4:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    stack = STACK if most == resource.RLIM_INFINITY else min(STACK, most)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, most))
    if not solver.endswith(".so"):
        os.execv(solver, [solver, *arguments])
    return run_library(solver, arguments)


if __name__ == "__main__":
    sys.exit(main())
