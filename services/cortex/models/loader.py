"""A model whose SDK takes seconds to import: imported beside what else a service does.

A cortex that was killed folds, voids and fires again before it is there.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from vigil.observe.logs import mask

from ..model import LanguageModel, ModelAnswer, ModelError, ModelRequest


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
            # As `garbage.keep` does for all that a start makes.
            gc.freeze()
            self._loaded.set_result(model)

    async def model(self) -> LanguageModel:
        """Wait for the model itself."""
        return await asyncio.shield(asyncio.wrap_future(self._loaded))

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        try:
            model = await self.model()
        except (ImportError, OSError, TypeError, ValueError) as error:
            # It isn't there, or won't have a proxy or certificates of the environment.
            reason = f"the model can't be loaded: {mask(str(error))}"
            raise ModelError(reason, is_retryable=False) from error
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
