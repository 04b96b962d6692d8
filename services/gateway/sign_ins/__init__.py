"""Signing in to MCP servers in a browser: a link, and what the browser comes back with."""
