"""Core models and block times."""
