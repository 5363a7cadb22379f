"""Counts, scores and reports; knows no model."""
