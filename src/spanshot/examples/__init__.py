"""Checks of a user's own examples."""
