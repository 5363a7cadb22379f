"""Adapters to the tools around: tables, spaCy, scikit-learn, notebooks. Each imports its package when it is used."""
