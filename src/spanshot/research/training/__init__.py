"""Training runs: the loop, its state, its settings."""
