"""Sampling: concrete runs of a model, and candidate invariants that hold in them.

Takes a ``LoopModel``.
Gives runs from many initial states, long ones by hill climbing, and candidate invariants.
Source: Ernst et al., "Dynamically discovering likely program invariants", IEEE TSE 2001.
Names: runs.explore, hill_climbing.hill_climb, candidates.candidate_invariants, samples.Samples.
"""
