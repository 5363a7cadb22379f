"""The engine: sentences to span vectors, and label names to priors. Needs numpy, tokenizers and onnxruntime only."""
