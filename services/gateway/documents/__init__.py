"""The documents of the API: OpenAPI for HTTP, AsyncAPI for the bus."""
