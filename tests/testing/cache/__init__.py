"""tests/testing/cache."""
