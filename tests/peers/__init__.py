"""Programs of others that speak MCP, unchanged, each run with a Vigil that runs: `make peers`."""
