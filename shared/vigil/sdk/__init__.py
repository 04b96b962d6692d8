"""Clients for other programs: over HTTP and over NATS. `import vigil` offers them by name."""
