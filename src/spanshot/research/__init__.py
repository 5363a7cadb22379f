"""Train and compare few-shot methods: needs the extra `[train]`."""
