"""Older versions of a conversation: what was taken back, and said anew."""
