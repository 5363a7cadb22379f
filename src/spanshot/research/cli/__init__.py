"""Commands that train and compare, loaded when called."""
