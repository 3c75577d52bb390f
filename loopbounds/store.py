"""Proved bounds on disk, by the hash of what they follow from (rule 30).

A key covers the model, the hints, the budget, the solver and the code of this package. Only
proved bounds are stored: what was not proved, timed out or failed is asked again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from loopbounds.model import Model
from loopbounds.prove import Budget

__all__ = ["Proof", "Store", "model_key"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What is kept of a proof: the bound, the longest run known, the relations used."""

    bound: int
    reached: int
    relations: int
    seconds: float


class Store:
    """A folder of proofs; None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> Proof | None:
        """The proof under ``key``; a file that is damaged counts as absent."""
        if self._folder is None:
            return None
        try:
            fields = json.loads((self._folder / f"{key}.json").read_text())
            proof = Proof(**fields)
        except (OSError, ValueError, TypeError):
            return None
        numbers = (proof.bound, proof.reached, proof.relations)
        return proof if all(type(n) is int and n >= 0 for n in numbers) else None

    def put(self, key: str, proof: Proof) -> None:
        """Keep a proof; a reader never sees half of it."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(proof), file)
        os.replace(name, self._folder / f"{key}.json")


def model_key(model: Model, budget: Budget, solver: Path) -> str:
    """The identity of a question: equal keys have equal answers."""
    hints = [("hint", h) for h in model.hints]
    parts = [
        _code_version(),
        _solver_version(solver),
        repr(budget),
        model.smv([(f"{name}{i}", term) for i, (name, term) in enumerate(hints)]),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _code_version() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _solver_version(solver: Path) -> str:
    return hashlib.sha256(solver.read_bytes()).hexdigest()
