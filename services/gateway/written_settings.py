"""This home's vigil.toml as it is now, for those who change it for somebody."""

from __future__ import annotations

import asyncio
import os

from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.config import Settings

from .http.problem import Problem
from .state.edge import Edge


async def read_settings(edge: Edge) -> Settings:
    """Return the configuration as it is now. Raises: Problem, 503: it can't be used."""
    home = edge.context.settings.home
    try:
        return await asyncio.to_thread(config.load, os.environ, home=home)
    except (ConfigError, OSError) as error:
        raise Problem(503, f"vigil.toml can't be used: {error}") from error
