"""Chat Completions of OpenAI's, and every server that speaks it.

Ollama, vLLM and llama.cpp do, each a little differently: what a server doesn't take is left out
(`parameters`). What goes out and what an answer becomes is decided in `chat`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from vigil.settings.models import server_of

from ..model import ModelAnswer, ModelError, ModelRequest
from . import answers, completions
from .chat import SCHEMA, Gathered, body_of, refused
from .failures import AskedModel, ServerWords, answered, error_of, failure, was_dropped
from .inbound.silence import CallTimeout
from .parameters import READ_STATUSES, learned

API_URL: Final = "https://api.openai.com/v1"
_ACCOUNT: Final = {
    "openai-organization": "OPENAI_ORG_ID",
    "openai-project": "OPENAI_PROJECT_ID",
}
"""What of the environment OpenAI itself is told, and nobody else."""


class OpenAIModel:
    """A model behind Chat Completions."""

    is_free: Final = False

    def __init__(
        self,
        name: str,
        *,
        api_key: str,
        base_url: str | None = None,
        key_setting: str = "OPENAI_API_KEY",
        model_setting: str = "VIGIL_MODEL",
    ) -> None:
        self._name = name
        self._asked = AskedModel(name, api_key, key_setting, model_setting)
        self._is_own = base_url is not None
        self._lacks: frozenset[str] = frozenset()
        self.server: Final = server_of(base_url or API_URL)
        given = {header: os.environ.get(variable) for header, variable in _ACCOUNT.items()}
        account = {header: value for header, value in given.items() if value and not self._is_own}
        self._client = completions.ChatCompletions(base_url or API_URL, api_key, account)

    @property
    def name(self) -> str:
        return self._name

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Answer once. Raises: ModelError: for everything but being cancelled."""

        def ask(waiting: CallTimeout) -> Awaitable[ModelAnswer]:
            return self._answer(request, waiting, on_text)

        return await answered(completions, request, ask, self._read, self._name)

    async def close(self) -> None:
        await self._client.close()

    async def _answer(
        self, request: ModelRequest, waiting: CallTimeout, on_text: Callable[[str], None]
    ) -> ModelAnswer:
        has_tried = False
        while True:
            lacks = self._lacks
            body = body_of(self._name, request, is_own=self._is_own, lacks=lacks)
            try:
                gathered = await self._stream(body, waiting, on_text)
            except completions.APIConnectionError as error:
                if has_tried or not was_dropped(error):
                    raise
                has_tried = True
            except completions.APIStatusError as error:
                has_read = error.status_code in READ_STATUSES
                less = refused(str(error.message), body) if has_read else frozenset[str]()
                if not less:
                    raise
                self._lacks = answers.lacking(self._name, self._lacks, less)
            except completions.APIError as error:
                if type(error) is not completions.APIError:  # of the connection
                    raise
                raise self._read(error) from error
            else:
                answer = gathered.answer(self._name, request)
                if self._is_own and (more := learned(answer, request, SCHEMA)):
                    self._lacks = answers.lacking(self._name, self._lacks, more)
                return msgspec.structs.replace(answer, lacks=lacks)

    async def _stream(
        self, body: dict[str, Any], waiting: CallTimeout, on_text: Callable[[str], None]
    ) -> Gathered:
        gathered = Gathered()
        sent = {"model": self._name, "stream": True} | body
        asked = self._client.asked(sent, timeout_s=waiting.total_s, connect_s=waiting.silence_s)
        async with asked as pieces:
            async for piece in pieces:
                waiting.heard()
                text = gathered.take(piece)
                if gathered.room.is_full:
                    break
                if text:
                    on_text(text)
        return gathered

    def _read(self, error: Any) -> ModelError:
        """Read an error, which in the middle of a stream has no status."""
        response = getattr(error, "response", None)
        said = ServerWords(
            status=0 if response is None else error.status_code,
            type=str(error.type or ""),
            code=str(error.code or ""),
            message=_message(error.body),
            headers={} if response is None else response.headers,
            more=error_of(error.body),
        )
        return failure(self._asked, said)


def _message(body: object) -> object:
    """Return the words of an error, in any of the shapes that servers give it."""
    if isinstance(body, dict):
        return body.get("message") or str(body.get("detail") or "")
    return body if isinstance(body, str) and not body.lstrip().startswith("<") else ""
