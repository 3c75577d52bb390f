"""The value analysis: registers, data addresses and infeasible edges in every context.

Takes a supergraph, the image, and facts about memory and registers.
Gives ``ValueResults``: values at each node; edges that no execution takes in their context.
Source: Balakrishnan and Reps, CC 2004; docs/values.md; rules 1, 4 and 34 of docs/soundness.md.
Names: value_results.analyse, value_results.ValueResults, context_domain.ContextDomain.
"""
