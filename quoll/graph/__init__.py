"""Textbook algorithms on flow graphs, free of ARM: dominators, loops, fixed points.

Takes successor lists over 0..n-1 with a root; for a fixed point also a domain.
Gives dominator tree, natural loops, weak topological order, states of a fixed point.
Source: Cooper, Harvey, Kennedy 2001; Aho, Sethi, Ullman 10.4; Bourdoncle, FMPA 1993.
Names: dominators.dominators, natural_loops.find_loops, fixpoint.solve.
"""
