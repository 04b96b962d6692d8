"""The executor's own tools, and the seam that tools of MCP servers share with them."""
