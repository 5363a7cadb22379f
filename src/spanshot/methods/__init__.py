"""One file per paper; ``base.py`` is the one extension point."""
