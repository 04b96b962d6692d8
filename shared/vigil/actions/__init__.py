"""Actions: what an agent did by itself, in a log of bounded length. Pure."""
