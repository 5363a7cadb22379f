"""Adapters for tables, spaCy, scikit-learn and notebooks. Each imports its package on first use."""
