"""Other programs' agents, asked by A2A as if each of their skills were a tool of a server.

`connection` keeps one up as an MCP server is kept up, and imports neither HTTP nor the SDK;
`client` asks by the SDK; `web` is the way there; `answers` is pure.
"""
