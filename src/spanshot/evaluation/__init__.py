"""Counts, precision and recall, intervals and reports."""
