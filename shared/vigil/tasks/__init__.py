"""Tasks: how they go on, and what they may hold. Pure."""
