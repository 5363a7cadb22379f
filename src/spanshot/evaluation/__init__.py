"""Counts, scores and reports, independent of any model."""
