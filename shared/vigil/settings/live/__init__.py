"""The configuration while services run: followed, and what has to begin anew with it."""
