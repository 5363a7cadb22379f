"""Thin doors to the library."""
