"""The worst path, built from the counts of the integer program (rule 26).

Takes counts per edge.
Gives a sequence of steps that a separate checker accepts, and its trees of calls and loops.
"""
