"""Commands that train and compare methods; imported only when they are called."""
