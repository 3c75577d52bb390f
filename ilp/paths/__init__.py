"""ilp/paths."""
