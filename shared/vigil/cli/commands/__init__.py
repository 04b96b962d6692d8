"""Commands for whoever uses an agent: one file a noun."""
