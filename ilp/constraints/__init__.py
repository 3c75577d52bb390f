"""ilp/constraints."""
