"""quoll/graph."""
