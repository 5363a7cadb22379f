"""Evaluate and compare trained methods; one file per table or figure."""
