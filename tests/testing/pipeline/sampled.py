"""Random initial states of the concrete machine, drawn by ``simulator.c``."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from pipeline.native import ACCESS, CACHED, CompiledTrace, SplitMix, exported, library, no_effect
from pipeline.pipeline_simulator import PipelineMachine
from pipeline.timing_model import EntryState

__all__ = ["SampledCycles", "own_lines", "sample"]

Num = ctypes.c_int64


class _Bounds(ctypes.Structure):
    _fields_ = [
        (name, Num)
        for name in ("loads", "words", "fetches", "longest", "states", "seed", "one_way")
    ]


@dataclass(frozen=True, slots=True)
class SampledCycles:
    """Cycles over many initial states; ``worst`` is the number of the slowest state."""

    most: int
    least: int
    worst: int


def sample(
    machine: PipelineMachine,
    trace: CompiledTrace,
    entry: EntryState,
    states: int,
    seed: int,
    *,
    one_way: bool = True,
) -> SampledCycles:
    """Cycles of ``trace`` over random initial states drawn in C.

    A state has the contents of both caches (cold, another program's dirty lines, or those mixed
    with the trace's own), replacement, accesses under way and busy registers. ``machine`` gives the
    rest: core, memory, geometry of the caches, clock. With ``one_way``, in a quarter of the states
    the caches have one way, the least that the analysis assumes.
    """
    compiled = library()
    assert compiled is not None, "sampling initial states needs a C compiler"
    compiled.sample.restype = Num
    compiled.sample.argtypes = [
        *[ctypes.c_void_p] * 4, Num, Num, ctypes.c_void_p, Num, ctypes.c_void_p, Num,
        *[ctypes.c_void_p] * 2,
    ]  # fmt: skip
    base = exported(machine, SplitMix(0))
    base.fills = base.buffered = base.free = 0
    words, code, data = machine.core.longest, *own_lines(machine, trace)
    bounds = _Bounds(
        entry.load_misses, entry.store_words, entry.fetch_misses, words, states, seed, one_way
    )
    least, worst = Num(), Num()
    most: int = compiled.sample(
        ctypes.byref(base), ctypes.byref(bounds), trace.instructions, trace.steps.ctypes.data,
        len(trace.executed), trace.first, code.ctypes.data, len(code), data.ctypes.data, len(data),
        ctypes.byref(least), ctypes.byref(worst),
    )  # fmt: skip
    if most < 0:
        raise no_effect(trace, most)
    return SampledCycles(most, least.value, worst.value)


Lines = np.ndarray[tuple[int], np.dtype[np.int64]]


def own_lines(machine: PipelineMachine, trace: CompiledTrace) -> tuple[Lines, Lines]:
    """Lines of the trace's own code and data."""
    code = [step.insn.addr for step in trace.executed]
    data = trace.steps[(trace.steps[:, 1] & (ACCESS | CACHED)) == ACCESS | CACHED, 2]
    sizes = (machine.chip.fetch.cache.geometry.line_bytes, machine.chip.dcache.geometry.line_bytes)
    return (
        np.unique(np.array(code, dtype=np.int64) // sizes[0]),
        np.unique(data // sizes[1]).astype(np.int64),
    )
