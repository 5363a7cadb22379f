"""Scores to spans: pure functions that know no model."""
