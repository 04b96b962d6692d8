"""Anthropic's Messages API, and every server that speaks it, through the official SDK.

One call is one attempt: the SDK's own retries are off, because a failure here becomes an event
with a deadline, which survives a crash and is seen. Whatever goes wrong leaves this module as
a `ModelError`, whose reason is a sentence for a person and never holds a secret.

What a turn can't hold is refused or cut here, while the stream runs, so that a server gone
wild costs neither memory nor the commit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import msgspec
import structlog

from vigil.contracts import (
    Block,
    OpaqueBlock,
    TextBlock,
    ToolUseBlock,
    Usage,
)
from vigil.observe.logs import mask
from vigil.settings.models import server_of

from ..thought.model import ModelAnswer, ModelError, ModelRequest, StopReason
from .messages import body_of

if TYPE_CHECKING:
    import anthropic

log = structlog.get_logger("vigil.cortex")

API_URL: Final = "https://api.anthropic.com"
ANSWER_BYTES_MAX: Final = 360_000
"""JSON bytes of one answer, text counted twice: a turn holds it as a row and as a send, beside
128 KiB of open follow-ups, and is at most 512 KiB (`vigil.contracts.TURN_BYTES_MAX`)."""
ARGUMENT_BYTES_MAX: Final = 64_000
"""All tool arguments of one answer; the SDK parses them anew with every delta."""
DEPTH_MAX: Final = 64
RETRY_AFTER_S_MAX: Final = 86_400.0
MODEL_LENGTH_MAX: Final = 200

_STOP_REASONS: Final[frozenset[str]] = frozenset(get_args(StopReason))


class AnthropicModel:
    """A model behind the Messages API."""

    is_free: Final = False

    def __init__(self, name: str, *, api_key: str, base_url: str | None = None) -> None:
        import anthropic

        self._name = name
        self._api_key = api_key
        self.server: Final = server_of(base_url or API_URL)
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key, base_url=base_url or API_URL, max_retries=0
        )

    @property
    def name(self) -> str:
        return self._name

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Answer once; `request.timeout_s` holds for the whole call, however it drips.

        Raises:
            ModelError: for everything but being cancelled.
        """
        import anthropic

        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._stream(request, on_text)
        except ModelError:
            raise
        except anthropic.APIStatusError as error:
            raise self._of_status(error) from error
        except (TimeoutError, anthropic.APITimeoutError) as error:
            reason = f"the model did not answer within {request.timeout_s:g} s"
            raise ModelError(reason, is_retryable=True, kind="timeout") from error
        except anthropic.APIConnectionError as error:
            reason = "the model's server can't be reached"
            raise ModelError(reason, is_retryable=True, kind="unreachable") from error
        except Exception as error:
            # A cut connection, broken JSON, events out of order: the SDK lets each out as the
            # exception of whichever library noticed.
            reason = f"the model's server sent no usable answer ({type(error).__name__})"
            raise ModelError(reason, is_retryable=True, kind="unusable") from error

    async def close(self) -> None:
        await self._client.close()

    async def _stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        room = AnswerRoom()
        is_finished = False
        body = body_of(self._name, request)
        async with self._client.messages.stream(**body, timeout=request.timeout_s) as stream:
            async for event in stream:
                if event.type == "text":
                    text = mend(event.text)
                    if not room.takes_text(text):
                        break
                    on_text(text)
                elif event.type == "content_block_delta":
                    room.take(event.delta)
                elif event.type == "content_block_start":
                    room.take(event.content_block)
                elif event.type == "message_stop":
                    is_finished = True
            message = stream.current_message_snapshot
        if not is_finished and not room.is_full:
            raise ModelError("the model's answer broke off in the middle", is_retryable=True)
        answer = answer_of(message, self._name, is_cut=room.is_full)
        return msgspec.structs.replace(answer, model=str(message.model)[:MODEL_LENGTH_MAX])

    def _of_status(self, error: anthropic.APIStatusError) -> ModelError:
        headers = error.response.headers
        status = error.status_code
        is_refused = status >= 400
        if not is_refused:  # an error event in the middle of a stream
            status = _STATUS_OF_TYPE.get(str(error.type), 500)
        is_retryable = status in (408, 409, 429) or status >= 500
        reason = _REASONS.get(status, "the model's server failed")
        if str(error.error_code).endswith("spend_limit_reached"):
            is_retryable, reason = False, _REASONS[402]
        elif headers.get("x-should-retry") == "false":
            is_retryable = False
        reason = f"{reason} ({status})"
        if not is_retryable and status not in (401, 403):
            reason += self._detail(error.api_message)
        after_s = retry_after_s(headers) if is_retryable else None
        return ModelError(
            reason, is_retryable=is_retryable, retry_after_s=after_s, is_refused=is_refused,
            kind=str(status),
        )  # fmt: skip

    def _detail(self, message: object) -> str:
        """Quote the server's own words, on one short line and without the key."""
        if not isinstance(message, str) or not message.strip():
            return ""
        text = mend(mask(message.replace(self._api_key, "…")))
        return f": {' '.join(text.split())[:200]}"


_REASONS: Final = {
    400: "the model's server rejected the request",
    401: "the model's server does not accept the API key; check ANTHROPIC_API_KEY",
    402: "the account at the model's provider may not spend any more",
    403: "the API key may not use this model",
    404: "the model's server does not know the model; check VIGIL_MODEL",
    408: "the model's server timed out",
    409: "the model's server had a conflict",
    413: "the conversation is too large for the model's server",
    422: "the model's server rejected the request",
    429: "the model's provider limits the rate of requests",
    504: "the model's server timed out",
    529: "the model's provider is overloaded",
}
_STATUS_OF_TYPE: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def retry_after_s(headers: Any) -> float | None:
    """Read how long the provider wants to be left alone, in seconds, 0..86400.

    >>> retry_after_s({"retry-after-ms": "1500"}), retry_after_s({"retry-after": "soon"})
    (1.5, None)
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            value = float(headers.get(name) or "") / scale
        except ValueError:
            continue
        if math.isfinite(value) and value >= 0:
            return min(value, RETRY_AFTER_S_MAX)
    return None


# ---------------------------------------------------------------- what comes in


class AnswerRoom:
    """How much of an answer can still be kept."""

    def __init__(self) -> None:
        self._left = ANSWER_BYTES_MAX
        self._arguments_left = ARGUMENT_BYTES_MAX
        self.is_full = False
        """Whether text had to be left out."""

    def takes_text(self, text: str) -> bool:
        self._left -= 2 * size_of(text)
        self.is_full = self._left < 0
        return not self.is_full

    def take(self, part: Any) -> None:
        """Count a block's beginning, or a delta other than text. Raises: ModelError."""
        if part.type == "text_delta":
            return
        size = len(part.to_json(indent=None).encode("utf-8", "surrogatepass"))
        self._left -= size
        if part.type == "input_json_delta":
            self._arguments_left -= size
        if min(self._left, self._arguments_left) < 0:
            raise ModelError("the model's answer is too large to be kept", is_retryable=False)


def size_of(text: str) -> int:
    """Return the bytes that `text` takes in JSON."""
    return len(msgspec.json.encode(text)) - 2


def answer_of(message: Any, model: str, *, is_cut: bool) -> ModelAnswer:
    """Turn the SDK's message into ours.

    Raises:
        ModelError: it hasn't the shape of a message, or stopped for a reason that is not known
            here without a word; asking again would not change that.
    """
    try:
        blocks = tuple(_received(block) for block in message.content)
        usage = _usage(message.usage, model)
        stop_reason = message.stop_reason
        msgspec.json.encode(blocks)
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError) as error:
        reason = f"the model's answer has an unexpected shape ({error})"[:300]
        raise ModelError(reason, is_retryable=False) from error
    if is_cut or sum(size_of(b.text) for b in blocks if isinstance(b, TextBlock)) > TEXT_MAX:
        return _cut(blocks, usage)
    if stop_reason not in _STOP_REASONS:
        reason = mend(str(stop_reason))[:64]
        if not any(isinstance(block, TextBlock) and block.text.strip() for block in blocks):
            text = f"the model stopped for an unknown reason: {reason}"
            raise ModelError(text, is_retryable=False)
        log.warning("unknown stop reason", action="cortex.model", reason=reason, model=model)
        stop_reason = "unknown"
    return ModelAnswer(blocks=blocks, stop_reason=cast(StopReason, stop_reason), usage=usage)


TEXT_MAX: Final = ANSWER_BYTES_MAX // 2
MARK_BYTES: Final = 200
"""Room for the mark that the reader sees below a text that was cut."""


def _cut(blocks: tuple[Block, ...], usage: Usage) -> ModelAnswer:
    """Keep the beginning of the text alone; half an answer may hold half a tool call.

    The core marks it for the reader, as it does what a provider cut.
    """
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    spoken = len(text.encode()) // 3
    while (size := size_of(text)) > TEXT_MAX - MARK_BYTES:
        text = text[: min(len(text) - 1, len(text) * (TEXT_MAX - MARK_BYTES) // size)]
    # The server's count comes at the end, which was not waited for.
    usage = msgspec.structs.replace(usage, output_tokens=max(usage.output_tokens, spoken))
    return ModelAnswer(blocks=(TextBlock(text=text),), stop_reason="max_tokens", usage=usage)


def _received(block: Any) -> Block:
    if block.type == "text":
        return TextBlock(text=mend(_string(block.text)))
    if block.type == "tool_use":
        if not isinstance(block.input, dict):
            raise TypeError("tool arguments are not an object")
        return ToolUseBlock(
            id=mend(_string(block.id)), name=mend(_string(block.name)), input=plain(block.input)
        )
    return OpaqueBlock(data=plain(block.model_dump(mode="json", exclude_none=True)))


def _usage(usage: Any, model: str) -> Usage:
    return Usage(
        model=model,
        input_tokens=_count(usage.input_tokens),
        output_tokens=_count(usage.output_tokens),
        cache_read_tokens=_count(usage.cache_read_input_tokens or 0),
        cache_write_tokens=_count(usage.cache_creation_input_tokens or 0),
    )


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError("no usable count of tokens")
    return value


def mend(text: str) -> str:
    """Join surrogate pairs that JSON escapes tore apart; replace halves without a partner.

    >>> mend("\\ud83d" + "\\ude00") == "\\U0001f600"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain(value: Any, depth: int = 0) -> Any:
    """Copy JSON data so that it can be stored: no NaN, no huge integers, no torn characters."""
    if depth > DEPTH_MAX:
        raise ValueError("nested too deeply")
    match value:
        case str():
            return mend(value)
        case dict():
            return {mend(str(k)): plain(v, depth + 1) for k, v in value.items()}
        case list():
            return [plain(v, depth + 1) for v in value]
        case float() if not math.isfinite(value):
            return None
        case int() if not -(2**63) <= value < 2**63:
            return str(value)
        case _:
            return value
