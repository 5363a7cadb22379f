"""From scores to spans, in numpy."""
