"""What speaks MCP."""
