"""The abstract domain of values: states, memory, conditions, and compiled transfer functions.

Takes a state (terms ``symbol + offset``) and the instructions of a basic block, compiled once.
Gives the state along each edge that leaves the block; join, widening and order of states.
Source: Cousot and Cousot, POPL 1977; Balakrishnan and Reps, CC 2004; docs/values.md.
Names: value_domain.ValueDomain, abstract_state.AbstractState, compiled.compile_block, terms.
"""
