"""Which backend searches vectors: a Qdrant server if the settings name one, else one here."""

from __future__ import annotations

from pathlib import Path

from vigil import distribution
from vigil.errors import ConfigError
from vigil.settings.config import Settings

from . import VectorIndex


def choose(settings: Settings, folder: Path) -> VectorIndex:
    """Return the backend, not yet open.

    Args:
        folder: of the replica; the engine's files go under it.

    Raises:
        ConfigError: a server is named, and its client isn't installed.
    """
    if settings.config.memory.qdrant_url:
        if not distribution.is_importable("qdrant_client"):
            command = distribution.command_for("qdrant")
            raise ConfigError(f"memory.qdrant_url needs qdrant-client: {command}")
        from .server import ServerIndex

        return ServerIndex(settings.config.memory.qdrant_url, settings.qdrant_api_key)
    from .edge import EdgeIndex

    return EdgeIndex(folder / "vectors")
