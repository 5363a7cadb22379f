"""What one does with a method: train, evaluate, keep."""
