"""This home's vigil.toml, read and changed by admins while everything runs.

The services take a change in by themselves. What is changed is done by what the command line does
it with, in a thread; here is what of its refusals is told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, TypeVar

from vigil.errors import AlreadyExists, ConfigError, InvalidInput, NotReady
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.texts.trouble import reason_of

from .http.problem import Problem
from .state.edge import Edge

T = TypeVar("T")
WRITING: Final = asyncio.Lock()
"""What a change looks at in the file holds while it is made; others take turns by the file."""


async def read_settings(edge: Edge) -> Settings:
    """Return the configuration as it is now. Raises: Problem, 503: it can't be used."""
    home = edge.context.settings.home
    try:
        return await asyncio.to_thread(config.load, os.environ, home=home)
    except (ConfigError, OSError) as error:
        raise Problem(503, f"vigil.toml can't be used: {reason_of(error)}") from error


async def written(
    settings: Settings, change: Callable[[], T], *, refused: int = 409, field: str = "name"
) -> T:
    """Return what a change of the file came to.

    Args:
        refused: the status where it would be no configuration, or can't be so here; nothing is
            changed then.
        field: names what is changed.

    Raises:
        Problem: `refused`; 404, 409: somebody else was faster: what was to be changed has gone, or
            what was to be added is there; 503: a file can't be written.
    """
    try:
        return await asyncio.to_thread(change)
    except NotReady as error:
        raise Problem(404, str(error), field=field) from error
    except AlreadyExists as error:
        raise Problem(409, str(error), field="name") from error
    except InvalidInput as error:
        raise Problem(refused, f"{error.field} {error.reason}", field=error.field) from error
    except ConfigError as error:
        raise Problem(refused, str(error).replace(f"{settings.file}: ", "")) from error
    except OSError as error:
        raise Problem(503, f"it can't be written: {error.strerror or error}") from error
