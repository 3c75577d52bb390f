"""Proof strategies: each searches a bound of a model by one method, and lets the checker prove it.

Takes a ``LoopModel``, samples of it, a budget and a checker.
Gives a proved bound with its relations, or none.
Source: Flanagan and Leino, "Houdini", FME 2001; Sheeran, Singh and Stalmarck, FMCAD 2000.
Names: strategy.Strategy, houdini.houdini, k_induction.KInduction, end_distance.DistanceOfEnds.
"""
