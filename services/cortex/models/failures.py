"""How a call fails, whichever SDK made it: as a `ModelError` with a sentence for a person.

One call is one attempt: an SDK's own retries are off, because a failure here becomes an event
with a deadline, which survives a crash and is seen. No sentence holds a secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import structlog

from vigil.observe.logs import mask

from ..model import REDIRECTED, SPOILED, TOO_LONG, UNUSABLE, ModelAnswer, ModelError, ModelRequest
from .answers import mend
from .inbound import overlong
from .inbound.calls import unread
from .inbound.silence import CallTimeout

log = structlog.get_logger("vigil.cortex")

BROKE_OFF: Final = "the connection to the model's server broke off in the middle of an answer"
UNREADABLE: Final = "the model's server sent an answer that can't be read"
_TRANSPORTS: Final = ("httpx", "httpcore", "h11", "h2")
"""Libraries below an SDK, whose errors are those of a connection."""
RETRY_AFTER_S_MAX: Final = 86_400.0
_UNSUPPORTED: Final = re.compile(r"\b(image|audio|video|file)s?\b.* not supported", re.IGNORECASE)
"""What a server says 500 of, and would say again: llama.cpp b11549 of what its model can't see."""

_SPOILED: Final = re.compile(
    r"error parsing tool call|failed to parse (?:tool call|input at pos)|tool_use_failed"
    r"|failed to call a function",
    re.IGNORECASE,
)
"""What servers say, with 400 or 500, of a call that their own model wrote badly: Ollama, llama.cpp
and Groq (2026-11). Asked once more, it may write a better one."""


class AskedModel(NamedTuple):
    """Who is asked, and what to look at if that fails."""

    model: str
    api_key: str
    key_setting: str
    """The variable or setting that the key comes from."""
    model_setting: str
    """The setting that the model's id comes from, and others that may be wrong then."""


class ServerWords(NamedTuple):
    """What a server said instead of an answer."""

    status: int
    """Of HTTP; below 400: it came in the middle of a stream."""
    type: str
    code: str
    message: object
    headers: Any
    more: Mapping[str, Any] = {}
    """The error as data, if it is that."""


async def answered(
    sdk: Any,
    request: ModelRequest,
    ask: Callable[[CallTimeout], Awaitable[ModelAnswer]],
    read: Callable[[Any], ModelError],
    model: str,
) -> ModelAnswer:
    """Ask, and wait for it as long as the request has it. Of a call of a tool that its own server
    couldn't read the model is told, as of one that came here.

    Args:
        sdk: as of `attempted`, and so is `read`.

    Raises:
        ModelError: for everything but being cancelled.
    """
    waiting = CallTimeout(request)
    try:
        return await attempted(sdk, ask(waiting), waiting, read)
    except ModelError as error:
        if error.kind != SPOILED or not request.tools:
            raise
        return unread(request, model, error.reason)


async def attempted(
    sdk: Any, call: Awaitable[ModelAnswer], waiting: CallTimeout, read: Callable[[Any], ModelError]
) -> ModelAnswer:
    """Wait for a call, and for it alone, as long as `waiting` has it.

    Args:
        sdk: the library that makes it, whose errors are named as those of Anthropic's and OpenAI's.
        read: what the server said with a status.

    Raises:
        ModelError: for everything but being cancelled.
    """
    try:
        async with waiting.held():
            return await call
    except ModelError:
        raise
    except sdk.APIStatusError as error:
        raise read(error) from error
    except (TimeoutError, sdk.APITimeoutError) as error:
        raise waiting.error() from error
    except sdk.APIConnectionError as error:
        reason = "the model's server can't be reached"
        raise ModelError(reason, is_retryable=True, kind="unreachable") from error
    except Exception as error:
        # A cut connection, broken JSON, events out of order: an SDK lets each out as the
        # exception of whichever library noticed, whose name tells a person nothing.
        log.warning("unusable", action="cortex.unusable", error=mask(repr(error))[:300])
        is_cut = type(error).__module__.startswith(_TRANSPORTS)
        reason = BROKE_OFF if is_cut else UNREADABLE
        raise ModelError(reason, is_retryable=True, kind=UNUSABLE) from error


def was_dropped(error: BaseException) -> bool:
    """Whether a server closed a connection that was kept open, instead of answering what came over
    it: it read nothing of that, so the same may be sent again at once.

    llama.cpp b11549 does so after some streams; how an SDK waits between tries doesn't matter here.
    """
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ == "RemoteProtocolError":
            return "without sending a response" in str(cause)
        cause = cause.__cause__
    return False


def error_of(body: object) -> Mapping[str, Any]:
    """Return the data of an error, in whichever of the usual envelopes it comes."""
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def failure(asked: AskedModel, refusal: ServerWords) -> ModelError:
    """Return what a refusal means. Pure."""
    status = refusal.status
    if 300 <= status < 400:
        reason = f"{_ELSEWHERE} ({status})"
        return ModelError(reason, is_retryable=False, is_refused=True, kind=REDIRECTED)
    is_refused = status >= 400
    if not is_refused:
        status = _status_of(refusal)
    if status == 500 and _UNSUPPORTED.search(str(refusal.message)):
        status = 422
    if status in overlong.STATUSES:
        codes = (refusal.type, refusal.code, str(refusal.more.get("type")))
        limit = overlong.limit_of(str(refusal.message), codes, refusal.more)
        if limit >= 0 or status == 413:
            return too_long(max(limit, 0), is_refused=is_refused)
    if _SPOILED.search(f"{refusal.message} {refusal.code}"):
        reason = "the model wrote a tool call that its server can't read"
        reason += _detail(refusal.message, asked.api_key)
        return ModelError(reason, is_retryable=True, is_refused=False, kind=SPOILED)
    is_retryable = status in (408, 409, 429) or status >= 500
    reason = _REASONS.get(status, "the model's server failed")
    if _is_spent(refusal):
        is_retryable, reason = False, _REASONS[402]
    elif refusal.headers.get("x-should-retry") == "false":
        is_retryable = False
    model = repr(mend(asked.model)[:100])
    reason = reason.format(asked=asked, model=model) + f" ({status})"
    if not is_retryable and status not in (401, 403):
        reason += _detail(refusal.message, asked.api_key)
    return ModelError(
        reason,
        is_retryable=is_retryable,
        retry_after_s=retry_after_s(refusal.headers) if is_retryable else None,
        is_refused=is_refused,
        kind=str(status),
    )


def too_long(limit: int, *, is_refused: bool = True) -> ModelError:
    """Return what stands for a request that is too long. `limit`: 0: it isn't known."""
    reads = f", which reads at most {limit:,} tokens at once" if limit else ""
    reason = f"the conversation is too long for the model{reads}"
    return ModelError(
        reason, is_retryable=False, is_refused=is_refused, kind=TOO_LONG, limit_tokens=limit
    )


def _is_spent(refusal: ServerWords) -> bool:
    return refusal.code.endswith("spend_limit_reached") or "insufficient_quota" in (
        refusal.code,
        refusal.type,
    )


def _status_of(refusal: ServerWords) -> int:
    """Return the status of an error in the middle of a stream: as a number, or by its name."""
    if refusal.code.isdecimal() and 400 <= int(refusal.code[:9]) < 600:
        return int(refusal.code)
    return _STATUS_OF_TYPE.get(refusal.type) or _STATUS_OF_TYPE.get(refusal.code, 500)


def _detail(message: object, api_key: str) -> str:
    """Quote the server's own words, on one short line and without the key."""
    if not isinstance(message, str) or not message.strip():
        return ""
    text = mend(mask(message.replace(api_key, "…")))
    return f": {' '.join(text.split())[:200]}"


_ELSEWHERE: Final = (
    "the model's server sends requests on to another address, and nothing of yours is taken there; "
    "check the address in the settings"
)
_REASONS: Final = {
    400: "the model's server rejected the request",
    401: "the model's server does not accept the API key; check {asked.key_setting}",
    402: "the account at the model's provider may not spend any more",
    403: "the API key may not use the model {model}; check {asked.key_setting}",
    404: "the model's server does not know the model {model}; check {asked.model_setting}",
    408: "the model's server timed out",
    409: "the model's server had a conflict",
    422: "the model's server rejected the request",
    429: "the model's provider limits the rate of requests",
    504: "the model's server timed out",
    529: "the model's provider is overloaded",
}
_STATUS_OF_TYPE: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
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
