"""quoll/domain."""
