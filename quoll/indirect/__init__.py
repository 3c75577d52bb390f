"""quoll/indirect."""
