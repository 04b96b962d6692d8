"""Anthropic's Messages API, and every server that speaks it, through the official SDK.

What goes out is built in `messages`. What is kept of an answer, how a call fails, and how a server
is asked that takes less, is the same for every wire: `answers`, `failures`, `parameters`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vigil.contracts import Block, OpaqueBlock, TextBlock, ToolUseBlock, Usage
from vigil.settings.models import server_of

from ..thought.model import ModelAnswer, ModelError, ModelRequest
from . import answers
from .answers import AnswerRoom, arguments, count, mend, plain, string
from .failures import AskedModel, ServerWords, attempted, failure
from .messages import SCHEMA, body_of, refused
from .parameters import READ_STATUSES, learned, unfenced

if TYPE_CHECKING:
    import anthropic

API_URL: Final = "https://api.anthropic.com"


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

        call = self._answer(request, on_text)
        return await attempted(anthropic, call, request.timeout_s, self._read)

    async def close(self) -> None:
        await self._client.close()

    async def _answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        import anthropic

        while True:
            lacks = self._lacks
            body = body_of(self._name, request, lacks=lacks)
            try:
                answer = await self._stream(body, request, on_text)
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
        self, body: dict[str, Any], request: ModelRequest, on_text: Callable[[str], None]
    ) -> ModelAnswer:
        room = AnswerRoom()
        is_finished = False
        async with self._client.messages.stream(**body, timeout=request.timeout_s) as stream:
            async for event in stream:
                if event.type == "text":
                    text = mend(event.text)
                    if not room.takes_text(text):
                        break
                    on_text(text)
                elif event.type == "content_block_delta":
                    _take(room, event.delta)
                elif event.type == "content_block_start":
                    _take(room, event.content_block)
                elif event.type == "message_stop":
                    is_finished = True
            message = stream.current_message_snapshot
        answers.check_finished(room, is_finished=is_finished)
        answer = answer_of(message, self._name, is_cut=room.is_full)
        return answer if request.schema is None else _unfenced(answer)

    def _read(self, error: anthropic.APIStatusError) -> ModelError:
        said = ServerWords(
            status=error.status_code,
            type=str(error.type),
            code=str(error.error_code),
            message=error.api_message,
            headers=error.response.headers,
        )
        return failure(self._asked, said)


def _take(room: AnswerRoom, part: Any) -> None:
    """Count a block's beginning, or a delta other than text. Raises: ModelError."""
    if part.type != "text_delta":
        size = len(part.to_json(indent=None).encode("utf-8", "surrogatepass"))
        room.take(size, is_argument=part.type == "input_json_delta")


def answer_of(message: Any, model: str, *, is_cut: bool) -> ModelAnswer:
    """Turn the SDK's message into ours.

    Raises:
        ModelError: it hasn't the shape of a message, or stopped for a reason that is not known
            here without a word; asking again would not change that.
    """
    with answers.shaped():
        blocks = [_received(block) for block in message.content]
        answer = answers.received(blocks, _usage(message.usage, model), by=message.model)
        stop_reason = message.stop_reason
    return answers.ended(answer, stop_reason, is_cut=is_cut)


def _unfenced(answer: ModelAnswer) -> ModelAnswer:
    """Take off the fence of an answer that is to be JSON, and is one block of text."""
    match answer.blocks:
        case (TextBlock(text=text),):
            return msgspec.structs.replace(answer, blocks=(TextBlock(text=unfenced(text)),))
        case _:
            return answer


def _received(block: Any) -> Block:
    if block.type == "text":
        return TextBlock(text=string(block.text))
    if block.type == "tool_use":
        given = arguments(block.input)
        return ToolUseBlock(id=string(block.id), name=string(block.name), input=given)
    return OpaqueBlock(data=plain(block.model_dump(mode="json", exclude_none=True)))


def _usage(usage: Any, model: str) -> Usage:
    return Usage(
        model=model,
        input_tokens=count(usage.input_tokens),
        output_tokens=count(usage.output_tokens),
        cache_read_tokens=count(usage.cache_read_input_tokens or 0),
        cache_write_tokens=count(usage.cache_creation_input_tokens or 0),
    )
