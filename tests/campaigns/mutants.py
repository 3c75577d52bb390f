"""Every mutant of the kernel must be found: ``make mutants`` (ARGS: operations, preset, names).

Prints how each was found; ends with status 1 if one survives or no longer applies.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.kernels.fuzz.mutants import build_mutant, prepare, read_mutants, why_killed


def main() -> int:
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    preset = sys.argv[2] if len(sys.argv) > 2 else "after"
    wanted = sys.argv[3:]
    bad = 0
    mutants = [m for m in read_mutants() if not wanted or any(w in m.name for w in wanted)]
    with tempfile.TemporaryDirectory() as name:
        folder = prepare(Path(name), preset)
        for mutant in mutants:
            try:
                path = build_mutant(folder, mutant, preset)
                found = why_killed(path, operations, iter((1,))) if path else None
            except ValueError as error:
                found, path = None, None
                print(error)
            bad += found is None
            verdict = "SURVIVES" if found is None else f"killed: {found[:110]}"
            print(f"{mutant.name}: {verdict}", flush=True)
    print(f"{len(mutants)} mutants, {bad} survive")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
