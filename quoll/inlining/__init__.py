"""Virtual inlining (VIVU): one graph for an entry, every call in its calling context.

Takes a ``Program`` and an entry; the facts that cut it; whether to unroll, or merge contexts.
Gives ``Supergraph``: numbered contexts, nodes, edges and loops.
Source: Martin, Alt, Wilhelm, Ferdinand, CC 1998.
Names: expand.expand, supergraph.Supergraph, unroll.unrolled, sharing.SummarySettings.
"""
