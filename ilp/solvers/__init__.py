"""Integer programs, the solvers, and certificates of what they answer (rule 23).

Takes a ``Model``: rows over integer variables.
Gives a bound that is certified by exact arithmetic, and the counts that reach it, if known.
"""
