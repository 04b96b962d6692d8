"""Whoever thinks: a model behind the Messages API, or the rehearsal model.

The SDK takes seconds to import, so it is imported only for a model that needs it, and beside what
else a service does: a cortex that was killed folds, voids and fires again before it is there.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from vigil import distribution
from vigil.errors import ConfigError
from vigil.settings.config import Settings

from ..thought.model import LanguageModel, ModelAnswer, ModelError, ModelRequest
from .rehearsal.model import RehearsalModel

DEFAULT_MODEL: Final = "claude-sonnet-5-5"
NO_KEY: Final = "none"
"""Sent to servers of one's own, which ask for no key; the SDK won't run without one."""


class LoadingModel:
    """A model whose SDK is being imported in a thread; the first call waits for that."""

    is_free: Final = False

    def __init__(self, name: str, load: Callable[[], LanguageModel]) -> None:
        self.name = name
        self._loaded: Future[LanguageModel] = Future()
        # A daemon, so that nobody waits for it who ends meanwhile.
        threading.Thread(target=self._load, args=(load,), name="model", daemon=True).start()

    def _load(self, load: Callable[[], LanguageModel]) -> None:
        try:
            model = load()
        except BaseException as error:
            self._loaded.set_exception(error)
        else:
            # As `runtime.freeze` does for all that a start makes, without its full collection.
            gc.freeze()
            self._loaded.set_result(model)

    async def model(self) -> LanguageModel:
        """Wait for the model itself."""
        return await asyncio.shield(asyncio.wrap_future(self._loaded))

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        try:
            model = await self.model()
        except ImportError as error:
            raise ModelError(f"the model can't be loaded: {error}", is_retryable=False) from error
        return await model.answer(request, on_text)

    @property
    def server(self) -> tuple[str, int] | None:
        """Known once it is imported, and so after every call that was made."""
        return self._loaded.result().server if self._is_loaded() else None

    async def close(self) -> None:
        if self._is_loaded():
            await self._loaded.result().close()

    def _is_loaded(self) -> bool:
        return self._loaded.done() and self._loaded.exception() is None


def choose(settings: Settings) -> LanguageModel:
    """Return the model that the settings ask for, at once: what it needs may still be imported.

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
    if importlib.util.find_spec("anthropic") is None:
        raise ConfigError(f"a model needs anthropic: {distribution.command_for('cortex')}")
    return LoadingModel(name or DEFAULT_MODEL, lambda: _load(settings, name, key, url))


def _load(settings: Settings, name: str, key: str | None, url: str | None) -> LanguageModel:
    from .anthropic import AnthropicModel

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
