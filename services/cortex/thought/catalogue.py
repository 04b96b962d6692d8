"""Which model answers a call: by the kind of session, the tier and the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vigil.settings.config import Config
from vigil.settings.models import context_tokens_of, name_of
from vigil.subjects import SessionKey

from ..core.context.sight import Sight
from ..core.profile import Profile
from .model import LanguageModel


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
        if not name or name == chosen.name or tokens > context_tokens_of(self._config, name):
            return chosen
        return self._models[name]._replace(is_fallback=True)

    async def close(self) -> None:
        """Release connections."""
        for one in self._models.values():
            await one.model.close()
