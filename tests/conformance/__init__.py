"""The conformance suite of MCP, run on Vigil both ways (`make conformance`)."""
