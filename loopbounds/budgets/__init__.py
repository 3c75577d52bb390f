"""Budgets: the limits of queries, searches and strategies, in one place.

Takes numbers from the command line.
Gives records of limits, and a table of constants, each with its unit and its reason.
Source: measurements on the shipped kernels, docs/loopbounds.md#strategies.
Names: budget.Budget, budget.SolverLimits, table.
"""
