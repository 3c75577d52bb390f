"""quoll/processes."""
