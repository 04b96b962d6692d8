"""Facts: outside content that can't speak (FLOW F-9, F-10). Pure."""
