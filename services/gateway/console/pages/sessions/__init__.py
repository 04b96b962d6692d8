"""Conversations, and all that is to be seen of a session."""
