"""Answers that promise, or tell as done, what nothing did. Pure."""
