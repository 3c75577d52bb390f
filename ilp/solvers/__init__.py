"""Integer programs as values, the solvers that maximise them, and exact certificates.

Takes a ``Model``: rows and a matrix of integers.
Gives an upper bound that is proved in exact integers, and counts that reach it.
Source: Neumaier and Shcherbina 2004 (certificates); Land and Doig 1960 (branch and bound).
Names: solve.maximise, model.Model, pulp_problem.linear_problem, highs.Highs, cbc.Cbc, exact.Exact.
"""
