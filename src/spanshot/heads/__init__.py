"""Heads: span vectors of examples to scores of new spans. Needs numpy only."""
