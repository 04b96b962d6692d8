"""What comes in from a model's server: calls of tools, a stream, errors."""
