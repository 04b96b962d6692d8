"""Cycles: how an agent that keeps up by itself ends one, and what it leaves for the next."""
