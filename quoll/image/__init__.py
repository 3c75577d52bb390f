"""quoll/image."""
