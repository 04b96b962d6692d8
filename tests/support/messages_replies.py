"""What the local Messages API is told to do with a request."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec

Fault = Literal[
    "drop",  # closes the connection instead of answering
    "hang",  # accepts the request and never answers
    "stall",  # begins the answer and never goes on
    "cut",  # the connection breaks in the middle
    "short",  # the stream ends properly, before the message does
    "invalid_json",  # an event that isn't JSON
    "out_of_order",  # deltas before the message began
    "error_event",  # an error in the middle of a stream that began with 200
    "not_a_stream",  # 200 with a page of HTML
    "empty",  # 200 with nothing
]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the server does with one request.

    `blocks` are content blocks as the API sends them. A tool_use block may carry
    ``"raw_input"``, a string that is sent as its arguments, well-formed or not.
    """

    blocks: tuple[dict[str, Any], ...] = ()
    stop_reason: str | None = ""
    """Empty picks tool_use or end_turn."""
    usage: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"input_tokens": 10, "output_tokens": 5}
    )
    status: int = 200
    error_type: str = ""
    error_message: str = "as the script says"
    error_code: str = ""
    headers: dict[str, str] = {}
    fault: Fault | None = None
    model: str = ""
    """Who answers; empty: whom the request names."""
    delay_s: float = 0.0
    """Between two events of a stream."""
    chunk: int = 20
    """Characters in a text delta."""


SITUATION: Final = "[Situation]"
"""Begins the last part of a conversation, which tells what is so now and is nobody's word."""


def said(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request as somebody wrote them: without the situation."""
    return [
        message | {"content": [block for block in _blocks(message) if not _is_situation(block)]}
        for message in body["messages"]
    ]


def situation(body: dict[str, Any]) -> str:
    """Return what a request says of the present; empty: nothing."""
    blocks = [block for message in body["messages"] for block in _blocks(message)]
    return "\n".join(block["text"] for block in blocks if _is_situation(block))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_situation(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and block["text"].startswith(SITUATION)


def says(text: str, **more: Any) -> Reply:
    return Reply(blocks=({"type": "text", "text": text},), **more)


def calls(name: str, arguments: Any, *, text: str = "", call_id: str = "", **more: Any) -> Reply:
    """Reply with a tool call; `arguments` may be a string to be sent as it is."""
    key = "raw_input" if isinstance(arguments, str) else "input"
    call_id = call_id or f"toolu_{hashlib.sha256(repr((name, arguments)).encode()).hexdigest()[:8]}"
    call = {"type": "tool_use", "id": call_id, "name": name, key: arguments}
    spoken = ({"type": "text", "text": text},) if text else ()
    return Reply(blocks=(*spoken, call), **more)


def fails(status: int, error_type: str = "api_error", **more: Any) -> Reply:
    return Reply(status=status, error_type=error_type, **more)
