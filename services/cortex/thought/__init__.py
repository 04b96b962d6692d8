"""Asking a model: the prompt, the tools it may call, the budget, what it answers."""
