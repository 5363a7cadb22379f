"""The annotation page: a project file, suggestions that follow each action, and a local server."""
