"""Words to vectors to scores."""
