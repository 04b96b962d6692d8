"""Which model answers a call: by the kind of session, the tier and the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import structlog

from vigil.settings.config import Config
from vigil.settings.models import context_tokens_of, name_of
from vigil.settings.models.trial import IN_PROSE
from vigil.subjects import SessionKey

from ..core.draft.profile import Profile
from ..core.draft.sight import Sight
from ..model import LanguageModel, ModelAnswer, ModelRequest
from ..models.parameters import WITHOUT_TOOLS
from ..models.tool_sight import ToolSight
from ..notice import Notice

log = structlog.get_logger("vigil.cortex")

MODEL: Final = "model"
"""What the person is told of who thinks for them."""
CHANGE_MODEL: Final = "`model.main` says who answers"
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

    def __init__(
        self, config: Config, models: Mapping[str, ModelChoice], tools: ToolSight | None = None
    ) -> None:
        """
        Args:
            models: by each name that a setting of `config` has, and of each section.
            tools: which of them were seen to call tools, or none.
        """
        self._tools = tools or ToolSight()
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
        the longest answer as a part of what has to fit. A model that calls no tools is offered
        none, and told so: it would say that it did what nobody does."""
        if request.tools and self._tools.is_in_prose(name, self._models[name].model):
            system = (*request.system, WITHOUT_TOOLS)
            request = msgspec.structs.replace(request, tools=(), system=system)
        if name not in self._learned:
            return request
        longest = max(int(self._learned[name] * ANSWER_SHARE_MAX), 1)
        return msgspec.structs.replace(request, max_tokens=min(request.max_tokens, longest))

    def took_in(self, name: str, request: ModelRequest, answer: ModelAnswer) -> ModelAnswer:
        """Take in who answered a request, and how; of a model that calls no tools the answer has
        what its person is to be told of that, once."""
        self._tools.learn(name, request, answer)
        if not request.tools or not self._tools.lacks(name, self._models[name].model):
            return answer
        text = f"The model {name} {IN_PROSE}. `vigil models` tries each model; {CHANGE_MODEL}."
        notice = Notice(id=f"tools:{name}", text=text, what=MODEL)
        return msgspec.structs.replace(answer, notices=(*answer.notices, notice))

    async def close(self) -> None:
        """Release connections."""
        for one in self._models.values():
            await one.model.close()
