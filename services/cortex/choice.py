"""Which models there are, as the settings name them: behind two wires, or the rehearsal model.

An SDK takes seconds to import, so it is imported only for a model that needs it (`models.loader`).
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Container
from typing import Final, NamedTuple

from vigil import distribution
from vigil.errors import ConfigError
from vigil.settings.config import Settings
from vigil.settings.models import REHEARSAL
from vigil.settings.models.access import ModelAccess, access_of, accesses
from vigil.settings.models.trial import FILE

from .core.draft.kinds import registered
from .model import LanguageModel
from .models.loader import LoadingModel
from .models.rehearsal.model import RehearsalModel
from .models.tape import taped
from .models.tool_sight import ToolSight
from .policy import sight_of
from .thought.catalogue import Catalogue, ModelChoice

NO_KEY: Final = "none"
"""Sent to servers of one's own, which ask for no key; an SDK won't run without one."""


class _Provider(NamedTuple):
    package: str
    """Of its SDK."""
    load: Callable[[], Callable[..., LanguageModel]]
    """Imports the model's class."""


def choose(settings: Settings) -> Catalogue:
    """Return the models that the settings name, at once: what they need may still be imported.

    Raises:
        ConfigError: what is missing or wrong, and the name of the setting.
    """
    if unknown := settings.config.model.profiles.keys() - registered().keys():
        known = ", ".join(registered())
        raise ConfigError(f"model.profiles.{min(unknown)}: no kind of session; there are: {known}")
    found = accesses(settings)
    by_name = {access.name: access for access in found.values()}
    choices = {name: _choice(settings, access) for name, access in by_name.items()}
    named = {key: choices[one.name] for key, one in found.items()}
    tools = ToolSight(settings.run_file.with_name(FILE))
    return Catalogue(settings.config, _others(settings, choices) | choices | named, tools)


def _others(settings: Settings, there: Container[str]) -> dict[str, ModelChoice]:
    """Return the models that no setting names, for what pins one: those that can be reached."""
    found: dict[str, ModelChoice] = {}
    for name in settings.config.models:
        if name in there:
            continue
        with contextlib.suppress(ConfigError):
            found[name] = _choice(settings, access_of(settings, name, f"models.{name}"))
    return found


def _choice(settings: Settings, access: ModelAccess) -> ModelChoice:
    provider = "vigil" if access.provider == REHEARSAL else access.provider
    model, sight = taped(opened(settings, access)), sight_of(settings.config, access.name)
    return ModelChoice(access.name, model, provider, sight=sight)


def opened(settings: Settings, access: ModelAccess) -> LanguageModel:
    """Return a model. Raises: ConfigError: its SDK isn't installed."""
    if access.provider == REHEARSAL:
        return RehearsalModel(word_ms=settings.config.model.rehearsal_word_ms)
    package, load = _PROVIDERS[access.provider]
    if importlib.util.find_spec(package) is None:
        command = distribution.command_for()
        raise ConfigError(f"model {access.name!r} needs {package}: {command}")

    def made() -> LanguageModel:
        return load()(
            access.model,
            api_key=access.key or NO_KEY,
            base_url=access.url or None,
            key_setting=access.key_setting,
            model_setting=access.model_setting,
        )

    return LoadingModel(access.model, made)


def _anthropic() -> Callable[..., LanguageModel]:
    from .models.anthropic import AnthropicModel

    return AnthropicModel


def _openai() -> Callable[..., LanguageModel]:
    from .models.openai import OpenAIModel

    return OpenAIModel


_PROVIDERS: Final = {
    "anthropic": _Provider("anthropic", _anthropic),
    "openai": _Provider("httpx2", _openai),
}
