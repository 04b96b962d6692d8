"""The models of the configuration, exchanged while sessions go on: who thinks needs no restart.

What a session reads of a model when it opens (its window, what it can be shown) is as it was until
the session is opened anew. What calls cost is counted by prices and caps of the start, so where
those changed nothing is exchanged: the log says that the next start takes it in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from vigil.background.end import end_tasks
from vigil.errors import ConfigError
from vigil.settings.config import Config, Settings
from vigil.settings.live.renewal import MODELS, thinking_as

from . import choice
from .thought.catalogue import Catalogue

log = structlog.get_logger("vigil.cortex")


class FollowedModels:
    """The models that there are now."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closing: set[asyncio.Task[None]] = set()
        self.catalogue = choice.choose(settings)

    @property
    def config(self) -> Config:
        """The configuration of the start, with the models of now."""
        return self._settings.config

    async def take(self, read: Settings, *, exchange: Callable[[Catalogue], None]) -> None:
        """Take a changed configuration in, as far as it's about models.

        Args:
            exchange: has calls from then on made with others.
        """
        merged = _merged(self._settings, read)
        if merged == self._settings:
            return
        if read.config.caps_digest != self.config.caps_digest:
            # Accounts are kept by them, and others count by them, too.
            log.warning("models wait for the next start", action="cortex.models_wait")
            return
        try:
            catalogue = choice.choose(merged)
        except ConfigError as error:
            log.error("models refused", action="cortex.models_refused", error=str(error))
            return
        before, self.catalogue, self._settings = self.catalogue, catalogue, merged
        exchange(catalogue)
        log.info("models changed", action="cortex.models", main=catalogue.main.name)
        # Calls that are under way end with the models that they began with.
        closing = asyncio.create_task(_closed(before, self.config.model.answer_s))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Release connections."""
        await end_tasks(*self._closing)
        await self.catalogue.close()


async def _closed(catalogue: Catalogue, after_s: float) -> None:
    try:
        await asyncio.sleep(after_s)
    finally:
        await catalogue.close()


def _merged(settings: Settings, read: Settings) -> Settings:
    """Return settings with what another reading says of models: their sections, who names them,
    and keys."""
    config = thinking_as(settings.config, read.config)
    sections = {name: getattr(read.config, name) for name in MODELS}
    return msgspec.structs.replace(
        settings,
        config=msgspec.structs.replace(config, **sections),
        anthropic_api_key=read.anthropic_api_key,
        openai_api_key=read.openai_api_key,
    )
