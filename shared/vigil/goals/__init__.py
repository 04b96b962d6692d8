"""Goals: how they go on, which are due, and what they may hold. Pure."""
