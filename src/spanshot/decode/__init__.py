"""Decode scores into spans, in numpy."""
