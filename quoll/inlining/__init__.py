"""Virtual inlining (VIVU): one graph for an entry, every call in its calling context.

Takes a ``Program`` and an entry; which facts cut it; whether to unroll, merge or share contexts.
Gives ``Supergraph``: numbered contexts, nodes, edges and loops.
Source: Martin, Alt, Wilhelm, Ferdinand, CC 1998; Sharir and Pnueli 1981 (call strings).
Names: expand.expand, supergraph.Supergraph, unroll.unrolled, sharing.Sharing.
"""
