"""Which model answers a call: by the kind of session, the tier and the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import structlog

from vigil.settings.config import Config
from vigil.settings.models import context_tokens_of, name_of
from vigil.subjects import SessionKey

from ..core.context.sight import Sight
from ..core.profile import Profile
from .model import LanguageModel, ModelRequest

log = structlog.get_logger("vigil.cortex")

ANSWER_SHARE_MAX: Final = 0.15
"""Of a window that was learned: a history is summed up where it fills 80 % (`compaction`)."""


class ModelChoice(NamedTuple):
    """Who answers a call."""

    name: str
    """As settings, prices and costs name it."""
    model: LanguageModel
    provider: str
    """As traces name it."""
    is_fallback: bool = False
    sight: Sight = Sight()
    """What it is shown of files."""


class Catalogue:
    """The models of a configuration, each opened once."""

    def __init__(self, config: Config, models: Mapping[str, ModelChoice]) -> None:
        """`models`: by each name that a setting of `config` has, and of each section."""
        self._config = config
        self._models = models
        self._learned: dict[str, int] = {}
        """The windows of models whose servers said that they are smaller than configured."""

    @property
    def main(self) -> ModelChoice:
        return self._models[self._config.model.main]

    def model_for(self, key: SessionKey, profile: Profile, wanted: str = "") -> ModelChoice:
        """Return who answers a session that thinks as `profile` says.

        Args:
            wanted: a model by name; if there is none of that name any more, it's as with others.
        """
        if wanted in self._models:
            return self._models[wanted]
        name = name_of(self._config, agent=key.agent, profile=profile.name, tier=profile.tier)
        return self._models[name]

    def instead_of(self, chosen: ModelChoice, tokens: int) -> ModelChoice:
        """Return who answers a call of so many tokens while `chosen` is away: the fallback, unless
        there is none, or that many are too many for it."""
        name = self._config.model.fallback
        if not name or name == chosen.name or tokens > self.window_of(name):
            return chosen
        return self._models[name]._replace(is_fallback=True)

    def window_of(self, name: str) -> int:
        """Return how many tokens a model reads at once: as configured, or less, as learned."""
        configured = context_tokens_of(self._config, name)
        return min(configured, self._learned.get(name, configured))

    def learn(self, name: str, limit_tokens: int) -> None:
        """Keep what a model's server said of its window, for all sessions."""
        if 0 < limit_tokens < self.window_of(name):
            log.warning(
                "smaller than configured", action="cortex.window", model=name, tokens=limit_tokens
            )
            self._learned[name] = limit_tokens

    def fitted(self, request: ModelRequest, name: str) -> ModelRequest:
        """Leave room for the history in a window that turned out to be small: many servers count
        the longest answer as a part of what has to fit."""
        if name not in self._learned:
            return request
        longest = max(int(self._learned[name] * ANSWER_SHARE_MAX), 1)
        return msgspec.structs.replace(request, max_tokens=min(request.max_tokens, longest))

    async def close(self) -> None:
        """Release connections."""
        for one in self._models.values():
            await one.model.close()
