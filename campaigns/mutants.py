"""Every mutant of the kernel must be found: ``make mutants``.

Arguments: operations of each seed, seeds separated by commas, presets or parts of names (all if
none). First the unmutated kernel must pass the same sequences and seeds. Prints how each mutant was
found; ends with status 1 if one survives or no longer applies.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from kernels.bilby.verification.fuzz.host import program
from kernels.bilby.verification.fuzz.mutants import (
    Mutant,
    build_mutant,
    prepare,
    read_mutants,
    why_killed,
)


def verdict(folder: Path, mutant: Mutant, operations: int, seeds: list[int]) -> str:
    try:
        path = build_mutant(folder, mutant)
    except ValueError as error:
        return f"SURVIVES: {error}"
    found = why_killed(path, operations, seeds, mutant.preset)
    return "SURVIVES" if found is None else f"killed: {found}"


def main() -> int:
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    seeds = [int(seed) for seed in (sys.argv[2] if len(sys.argv) > 2 else "1,2,3").split(",")]
    wanted = sys.argv[3:]
    mutants = [
        m for m in read_mutants() if not wanted or any(w in m.name or w == m.preset for w in wanted)
    ]
    bad = 0
    for preset, pin in sorted({(mutant.preset, mutant.pin) for mutant in mutants}):
        found = why_killed(program(preset, "plain", pin), operations, seeds, preset)
        print(f"{preset} {pin} as it is: {found or 'passes'}", flush=True)
        bad += found is not None
        with tempfile.TemporaryDirectory() as name:
            folder = prepare(Path(name), preset, pin)
            for mutant in mutants:
                if (mutant.preset, mutant.pin) != (preset, pin):
                    continue
                line = verdict(folder, mutant, operations, seeds)
                bad += line.startswith("SURVIVES")
                print(f"{mutant.name}: {line[:160]}", flush=True)
    print(f"{len(mutants)} mutants, {bad} survive")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
