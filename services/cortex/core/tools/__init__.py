"""What a model may call, and what becomes of a call."""
