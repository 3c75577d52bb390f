"""Concrete machines to compare abstract states with."""
