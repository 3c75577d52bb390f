"""Records of the results store: proofs, and bounds of whole graphs.

A proof is stored with its model. A result of "no proof within the budget" is stored, too: the
budget is part of the key. The bounds of a whole graph are stored so that a later run slices
nothing. Results that depend on a failure of a solver are never stored (rule 30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopbounds.proof.bound import LoopBound
from loopbounds.proof.prove import ProofOutcome
from quoll.results.results_store import ResultsStore

__all__ = ["GraphBounds", "copy_models", "write_model"]


@dataclass(frozen=True, slots=True)
class GraphBounds:
    """The bounds of all loops of a graph without facts that count, and the keys of their proofs.

    ``executed``: by loop index the most executions of a run that may refute a fact. ``constant``:
    loops that are executed equally often at each entry.
    """

    bounds: tuple[LoopBound, ...]
    models: tuple[str, ...]
    executed: Mapping[int, int]
    constant: frozenset[int]


def copy_models(store: ResultsStore, keys: Sequence[str], folder: Path | None) -> bool:
    """Write the models of stored proofs to ``folder``; False if the store lacks one of them."""
    if folder is None:
        return True
    proofs = {key: store.load(key, ProofOutcome) for key in keys}
    for key, proof in proofs.items():
        if proof is None:
            return False
        write_model(folder, key, proof.model)
    return True


def write_model(folder: Path | None, key: str, text: str) -> None:
    """Write the model of a proof to ``folder``; nothing without a folder or a model."""
    if folder is not None and text:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{key[:16]}.smv").write_text(text)
