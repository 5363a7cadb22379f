"""Read and write file formats: inline markup, JSON lines, CoNLL, tables, and exports of annotation tools."""
