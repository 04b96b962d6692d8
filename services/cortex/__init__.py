from vigil.imports import lean as lean  # before anything imports structlog
