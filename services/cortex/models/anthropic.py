"""Anthropic's Messages API, and every server that speaks it, through the official SDK.

What goes out is built in `messages`, what comes in is put together in `inbound.message`. What is
kept of an answer, how a call fails, and how a server is asked that takes less, is the same for
every wire: `answers`, `failures`, `parameters`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vigil.imports.packages import import_sparingly
from vigil.settings.models import server_of

from ..model import ModelAnswer, ModelError, ModelRequest
from . import answers
from .failures import AskedModel, ServerWords, answered, error_of, failure, was_dropped
from .inbound.message import GatheredMessage
from .inbound.silence import CallTimeout
from .messages import SCHEMA, body_of, refused
from .parameters import READ_STATUSES, learned

if TYPE_CHECKING:
    import anthropic

API_URL: Final = "https://api.anthropic.com"


def import_sdk() -> type[anthropic.AsyncAnthropic]:
    """Import what a client takes of the SDK, half a second of CPU; return its class."""
    client: type[anthropic.AsyncAnthropic] = import_sparingly("anthropic").AsyncAnthropic
    return client


class AnthropicModel:
    """A model behind the Messages API."""

    is_free: Final = False

    def __init__(
        self,
        name: str,
        *,
        api_key: str,
        base_url: str | None = None,
        key_setting: str = "ANTHROPIC_API_KEY",
        model_setting: str = "VIGIL_MODEL",
    ) -> None:
        import_sdk()
        import anthropic

        self._name = name
        self._is_own = base_url is not None
        self._lacks: frozenset[str] = frozenset()
        self._asked = AskedModel(name, api_key, key_setting, model_setting)
        self.server: Final = server_of(base_url or API_URL)
        # By itself the SDK would take the conversation to wherever an answer says.
        web = anthropic.DefaultAsyncHttpxClient(follow_redirects=False)
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key, base_url=base_url or API_URL, max_retries=0, http_client=web
        )

    @property
    def name(self) -> str:
        return self._name

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Answer once. Raises: ModelError: for everything but being cancelled."""
        import anthropic

        def ask(waiting: CallTimeout) -> Awaitable[ModelAnswer]:
            return self._answer(request, waiting, on_text)

        return await answered(anthropic, request, ask, self._read, self._name)

    async def close(self) -> None:
        await self._client.close()

    async def _answer(
        self, request: ModelRequest, waiting: CallTimeout, on_text: Callable[[str], None]
    ) -> ModelAnswer:
        import anthropic

        has_tried = False
        while True:
            lacks = self._lacks
            body = body_of(self._name, request, lacks=lacks)
            try:
                answer = await self._stream(body, request, waiting, on_text)
            except anthropic.APIConnectionError as error:
                if has_tried or not was_dropped(error):
                    raise
                has_tried = True
            except anthropic.APIStatusError as error:
                has_read = error.status_code in READ_STATUSES and self._is_own
                less = refused(str(error.api_message), body) if has_read else frozenset[str]()
                if not less - lacks:
                    raise
                self._lacks = answers.lacking(self._name, self._lacks, less)
            else:
                if self._is_own and (more := learned(answer, request, SCHEMA)):
                    self._lacks = answers.lacking(self._name, self._lacks, more)
                return msgspec.structs.replace(answer, lacks=lacks)

    async def _stream(
        self,
        body: dict[str, Any],
        request: ModelRequest,
        waiting: CallTimeout,
        on_text: Callable[[str], None],
    ) -> ModelAnswer:
        import anthropic

        gathered = GatheredMessage()
        # The events as they are: what the SDK makes of them is `inbound.message`'s to make.
        asked = self._client.post(
            "/v1/messages",
            cast_to=object,
            body=body | {"stream": True},
            options={"timeout": anthropic.Timeout(waiting.total_s, connect=waiting.silence_s)},
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        async with await asked as stream:
            async for event in stream:
                waiting.heard()
                text = gathered.take(event)
                if gathered.room.is_full:
                    break
                if text:
                    on_text(text)
        return gathered.answer(self._name, request)

    def _read(self, error: anthropic.APIStatusError) -> ModelError:
        said = ServerWords(
            status=error.status_code,
            type=str(error.type),
            code=str(error.error_code),
            message=error.api_message,
            headers=error.response.headers,
            more=error_of(error.body),
        )
        return failure(self._asked, said)
