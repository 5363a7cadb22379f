"""The extension point, and code shared by several methods."""
