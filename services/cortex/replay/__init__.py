"""Replay: a session's log folded again. Nothing is stored, sent, or asked of a model."""
