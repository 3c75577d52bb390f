"""Proofs and answers on disk, by the hash of what they follow from (``loopbounds.keys``).

A proof is kept with the model it was found in; where a budget did not suffice for one, that is kept
for this very budget, which is part of the hash. The answers for a whole graph are kept too, so
that nothing needs to be sliced to find them. Nothing is kept that rests on a failure (rule 30).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from loopbounds.bound import LoopBound
from loopbounds.prove import Outcome

__all__ = ["Answers", "Proof", "Store", "write_model"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What is kept of a proof: the bound, the longest run known, the relations used.

    None instead of a bound where there is no proof within the budget, or none at all (``endless``).
    """

    bound: int | None
    reached: int
    relations: int
    seconds: float
    endless: bool = False

    @staticmethod
    def of(outcome: Outcome) -> Proof:
        """What is kept of an answer that did not fail."""
        seconds = round(outcome.seconds, 3)
        return Proof(outcome.bound, outcome.reached, outcome.relations, seconds, outcome.endless)

    def outcome(self, model: str) -> Outcome:
        """The answer, with the text of the model."""
        known = self.bound, self.reached, (), self.relations, "", model, self.seconds, self.endless
        return Outcome(*known)


@dataclass(frozen=True, slots=True)
class Answers:
    """The bounds of all loops of a graph, if no fact counts them, and the keys of their proofs.

    ``refutable``: loops of which an execution may refute a fact, by index. ``constant``: those that
    are executed equally often whenever they are entered.
    """

    bounds: tuple[LoopBound, ...]
    models: tuple[str, ...]
    refutable: frozenset[int]
    constant: frozenset[int]


class Store:
    """A folder of proofs and answers; None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> Proof | None:
        """The proof under ``key``; a file that is damaged counts as absent."""
        try:
            proof = Proof(**json.loads(self._read(f"{key}.json")))
        except (OSError, ValueError, TypeError):
            return None
        numbers = [proof.reached, proof.relations]
        numbers += [] if proof.bound is None else [proof.bound]
        return proof if all(type(n) is int and n >= 0 for n in numbers) else None

    def model(self, key: str) -> str | None:
        """The model of the proof under ``key``."""
        try:
            return self._read(f"{key}.smv")
        except OSError:
            return None

    def put(self, key: str, proof: Proof, model: str) -> None:
        """Keep a proof, and the model it was found in."""
        self._write(f"{key}.smv", model)
        self._write(f"{key}.json", json.dumps(asdict(proof)))

    def answers(self, key: str) -> Answers | None:
        """The answers under ``key``; a file that is damaged counts as absent."""
        try:
            found = json.loads(self._read(f"{key}.answers.json"))
            bounds = tuple(LoopBound(**{**b, "rests": tuple(b["rests"])}) for b in found["bounds"])
            models = tuple(map(str, found["models"]))
            refutable = frozenset(map(int, found["refutable"]))
            constant = frozenset(map(int, found["constant"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if not all(b.bound is None or (type(b.bound) is int and b.bound > 0) for b in bounds):
            return None
        if [b.loop for b in bounds] != [*range(len(bounds))]:
            return None
        return Answers(bounds, models, refutable, constant)

    def put_answers(self, key: str, answers: Answers) -> None:
        """Keep the answers of a graph."""
        loops = {"refutable": sorted(answers.refutable), "constant": sorted(answers.constant)}
        kept = {**asdict(answers), **loops}
        self._write(f"{key}.answers.json", json.dumps(kept))

    def copy_models(self, keys: Sequence[str], folder: Path | None) -> bool:
        """Write the models of stored proofs to ``folder``; whether all of them are there."""
        if folder is None:
            return True
        try:
            for key in keys:
                write_model(folder, key, self._read(f"{key}.smv"))
        except OSError:
            return False
        return True

    def _read(self, name: str) -> str:
        if self._folder is None:
            raise FileNotFoundError(name)
        return (self._folder / name).read_text()

    def _write(self, name: str, text: str) -> None:
        """A reader never sees half of it."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=self._folder, suffix=".part")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(part, self._folder / name)


def write_model(folder: Path | None, key: str, text: str) -> None:
    """Keep the model of a proof, if there is one, where a user wants to see it."""
    if folder is not None and text:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{key[:16]}.smv").write_text(text)
