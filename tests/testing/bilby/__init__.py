"""The kernel in tests: builds, runs, and its output."""
