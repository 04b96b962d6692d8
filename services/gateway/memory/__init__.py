"""Memory as clients see it: over HTTP and over the Model Context Protocol."""
