"""Checks of a user's own examples: mistakes, weak labels, leave-one-out results."""
