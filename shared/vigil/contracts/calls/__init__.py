"""Calls of tools: what a loop waits for, and who answers."""
