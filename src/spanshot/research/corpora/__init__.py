"""Research corpora to episodes: readers and samplers."""
