"""tests/testing/arm."""
