"""Calls of MCP servers that stay open while a person is asked."""
