"""Pages about what answers: agents and models."""
