"""Signing in to MCP servers by OAuth 2.1: what is kept of it, how it begins, how it stays good."""
