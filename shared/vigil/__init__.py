"""Vigil: agents that act on their own and can be trusted to."""

__version__ = "0.1.0"
