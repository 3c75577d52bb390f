"""Slicing: the values that decide how often a loop header runs, as terms over the entry state.

Takes a supergraph with values.
Gives a slice for each loop: a ``LoopModel``, or the reason why there is none.
Source: Weiser 1981; Ottenstein, Ballance, MacCabe, PLDI 1990 (gated SSA); docs/loopbounds.md.
Names: slice.slice_loops, gated_ssa, effects.block_effect, stack_taint, trips.
"""
