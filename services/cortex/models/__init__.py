"""Whoever thinks: a model behind the Messages API, or the rehearsal model.

The SDK takes seconds to import, so it is imported only for a model that needs it. Call
:func:`choose` off the event loop (``asyncio.to_thread``) where others share the loop.
"""

from __future__ import annotations

from typing import Final

from vigil import distribution
from vigil.config import Settings
from vigil.errors import ConfigError

from ..model import Model
from .rehearsal import RehearsalModel

DEFAULT_MODEL: Final = "claude-sonnet-5-5"
NO_KEY: Final = "none"
"""Sent to servers of one's own, which ask for no key; the SDK won't run without one."""


def choose(settings: Settings) -> Model:
    """Return the model that the settings ask for.

    Raises:
        ConfigError: what is missing, and the name of the setting.
    """
    name, key, url = (
        settings.config.model.name,
        settings.anthropic_api_key,
        settings.anthropic_base_url,
    )
    if name == RehearsalModel.name or not (name or key or url):
        return RehearsalModel(word_ms=settings.config.model.rehearsal_word_ms)
    _check(name, key, url)
    try:
        from .anthropic import AnthropicModel
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"a model needs {error.name}: {distribution.command_for('cortex')}"
        ) from error
    return AnthropicModel(
        name or DEFAULT_MODEL,
        api_key=key or NO_KEY,
        base_url=url,
        name_cheap=settings.config.model.name_cheap,
    )


def _check(name: str, key: str | None, url: str | None) -> None:
    """Refuse what could only fail later, at the first message. Never quotes a value."""
    if not (key or url):
        raise ConfigError(
            f"model {name!r} needs ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of "
            f"your own; VIGIL_MODEL={RehearsalModel.name} needs neither"
        )
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError("ANTHROPIC_API_KEY has characters that no key has; was it pasted whole?")
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError("ANTHROPIC_BASE_URL must start with http:// or https://")
