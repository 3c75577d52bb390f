"""IPET: the longest path through a supergraph as an integer program.

Takes a supergraph, ``Costs``, loop bounds and constraints.
Gives ``WorstCase``: the proven bound and a path that reaches it; with parameters, a function.
Source: Li and Malik, DAC 1995; docs/ilp.md.
Names: worst_case, ipet.build_ipet, entry.bound_entry, parametric.parametric_bound, cutting_planes.
"""
