"""ilp/solvers."""
