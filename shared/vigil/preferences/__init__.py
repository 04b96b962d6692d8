"""Preferences: what they may hold, and how sure of one the agent is. Pure."""
