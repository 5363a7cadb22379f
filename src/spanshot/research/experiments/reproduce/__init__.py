"""The tables and figures of ESD's paper, one file each, and their shared code."""
