"""tests/testing/wcet."""
