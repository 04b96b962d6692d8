"""Who thinks, as an admin chooses it in the console: tried first, then written."""
