"""quoll/extraction."""
