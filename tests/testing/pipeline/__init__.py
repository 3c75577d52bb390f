"""tests/testing/pipeline."""
