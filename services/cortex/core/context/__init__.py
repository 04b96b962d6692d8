"""What the model is shown of a conversation, and what becomes of the rest: summaries, memory."""
