"""Loop bounds by slicing and model checking: all loops of a supergraph.

Takes a supergraph with values, and facts about loops.
Gives ``LoopBound`` for each loop: header executions per entry, with method and evidence.
Source: Blackham and Heiser, "Sequoll", RTAS 2013; docs/loopbounds.md.
Names: bounds.bound_loops, recursion.find_depths, places.facts_of_loops.
"""
