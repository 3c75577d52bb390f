"""IPET, user constraints, solvers, and the worst path."""
