"""From a loop to what decides how often it runs.

Takes the supergraph, what value analysis says of it, and the bounds proved so far.
Gives one slice per loop: a model, and what its words stand for.
Method: gated SSA on demand over the acyclic supergraph (``gated_ssa``).
"""
