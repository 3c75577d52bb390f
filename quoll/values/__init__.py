"""The value analysis: registers, data addresses and infeasible edges in every context.

Takes a supergraph, the image, and what facts say of memory and registers.
Gives ``Values``: what is known at each node; edges that no execution takes in their context.
Source: Balakrishnan and Reps, CC 2004; docs/values.md; rules 1, 4 and 34 of docs/soundness.md.
Names: values.analyse, values.Values, context_domain.ContextDomain, landing.landings.
"""
