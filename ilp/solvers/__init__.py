"""Integer programs as values, the solvers that maximise them, and exact certificates.

Takes an ``IntegerProgram``: rows of integers.
Gives an upper bound that is proved in exact integers, and counts that reach it.
Source: Neumaier and Shcherbina 2004 (certificates); Land and Doig 1960 (branch and bound).
Names: solve.maximise, integer_program.IntegerProgram, pulp_problem.linear_problem, highs.Highs.
"""
