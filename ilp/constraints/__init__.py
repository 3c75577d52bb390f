"""What limits the counts of nodes and edges.

Takes the supergraph, loop bounds, facts and parameters.
Gives a checked loop nest, and the rows of user constraints.
"""
