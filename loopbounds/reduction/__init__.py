"""Smaller loop models: with the same runs, or with more.

Takes a ``LoopModel``, and conditions where the loop is entered.
Gives a model whose bound is a bound of the given one.
Source: docs/loopbounds.md, "The model".
Names: simplify.simplified, coarsen.coarsen, canonical.canonical, constraints.within, lists.ranked.
"""
