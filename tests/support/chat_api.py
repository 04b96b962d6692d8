"""A local server that speaks Chat Completions, driven by the scripts of the Messages one.

A script reads the request as the Messages API would have it, and what it replies comes out as this
wire tells it. `Style` has it speak as servers do that know a part of the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import msgspec

from services.cortex.models.chat import FAILED
from tests.support.chat_rules import mistakes
from tests.support.messages_api import (
    Behave,
    MessagesApi,
    Reply,
    Wire,
    answer_json,
    chunks,
    fails,
)
from tests.support.messages_replies import SITUATION

_FINISHES: Final = {
    "end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "refusal": "content_filter",
}  # fmt: skip


LISTED: Final = Reply()
"""The answer to who asks which models there are."""


class Style(msgspec.Struct, kw_only=True):
    """How a server differs from OpenAI's."""

    refuses: tuple[str, ...] = ()
    """Parameters that it answers with `status`."""
    status: int = 400
    has_ids: bool = True
    has_usage: bool = True
    is_whole: bool = False
    """Whether it sends a call in one piece, with the index 0; without ids none has an index."""
    stops_for_calls: bool = True
    """Whether the reason is `tool_calls` then; else `stop`."""


class ChatApi(MessagesApi):
    """The running server."""

    def __init__(self, behave: Behave | None = None) -> None:
        self.style = Style()
        self.models = ("qwen3:8b",)
        """Ids of what it says that it serves."""
        super().__init__(behave, Wire(self._check, read, self._message, self._events, _error))

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def _check(
        self, method: str, path: str, headers: dict[str, str], raw: bytes
    ) -> tuple[Reply | None, dict[str, Any]]:
        if (method, path) == ("GET", "/v1/models"):
            return LISTED, {}
        if (method, path) != ("POST", "/v1/chat/completions"):
            return fails(404, "not_found_error", error_message=f"no {method} {path}"), {}
        if not headers.get("authorization", "").startswith("Bearer "):
            return fails(401, "invalid_request_error", error_message="no credentials"), {}
        body = json.loads(raw)
        status = self.style.status
        found = [f"Unsupported parameter: {name!r}" for name in self.style.refuses if name in body]
        if "max_tokens" in body and "max_tokens" in self.style.refuses:
            found = ["Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."]
        problem = next((m for m in (*found, *mistakes(body))), None)
        if problem is not None:
            return fails(status, "invalid_request_error", error_message=problem), body
        return None, body

    async def _answer_error(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        if reply is LISTED:
            listed = [{"id": one, "object": "model"} for one in self.models]
            await answer_json(writer, 200, {"object": "list", "data": listed})
        else:
            await super()._answer_error(writer, reply)

    def _message(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError("only streams are asked for")

    def _events(self, reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, str]]:
        base = {
            "id": f"chatcmpl-{hashlib.sha256(json.dumps(body).encode()).hexdigest()[:16]}",
            "object": "chat.completion.chunk",
            "created": 1_795_000_000,
            "model": reply.model or body["model"],
        }
        for delta in ({"role": "assistant", "content": ""}, *self._deltas(reply)):
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield "", json.dumps(base | {"choices": [choice]})
        if (finish := self._finish(reply)) is not None:
            choice = {"index": 0, "delta": {}, "finish_reason": finish}
            yield "", json.dumps(base | {"choices": [choice]})
        if self.style.has_usage and body.get("stream_options", {}).get("include_usage"):
            yield "", json.dumps(base | {"choices": [], "usage": _usage(reply.usage)})
        yield "", "[DONE]"

    def _finish(self, reply: Reply) -> str | None:
        if reply.stop_reason != "":
            return _FINISHES.get(reply.stop_reason or "", reply.stop_reason)
        is_call = any(block["type"] == "tool_use" for block in reply.blocks)
        return "tool_calls" if is_call and self.style.stops_for_calls else "stop"

    def _deltas(self, reply: Reply) -> Iterator[dict[str, Any]]:
        number = 0
        for block in reply.blocks:
            match block["type"]:
                case "text":
                    yield from ({"content": t} for t in chunks(block["text"], reply.chunk))
                case "refusal":
                    yield from ({"refusal": t} for t in chunks(block["refusal"], reply.chunk))
                case "tool_use":
                    for piece in self._pieces(block, number, reply.chunk):
                        yield {"tool_calls": [piece]}
                    number += 1
                case "thinking":
                    thoughts = chunks(block["thinking"], reply.chunk)
                    yield from ({"reasoning_content": t} for t in thoughts)

    def _pieces(self, block: dict[str, Any], number: int, chunk: int) -> Iterator[dict[str, Any]]:
        raw = block.get("raw_input")
        raw = json.dumps(block["input"]) if raw is None else raw
        index = {"index": 0 if self.style.is_whole else number} if self.style.has_ids else {}
        first: dict[str, Any] = {**index, "type": "function"}
        if self.style.has_ids:
            first["id"] = block["id"]
        if self.style.is_whole:
            yield first | {"function": {"name": block["name"], "arguments": raw}}
            return
        yield first | {"function": {"name": block["name"], "arguments": ""}}
        for part in chunks(raw, chunk):
            yield index | {"function": {"arguments": part}}


@contextlib.asynccontextmanager
async def chat_api(behave: Behave | None = None, port: int = 0) -> AsyncIterator[ChatApi]:
    """Run a server on loopback for the length of a block."""
    api = ChatApi(behave)
    await api.start(port)
    try:
        yield api
    finally:
        await api.close()


def _usage(usage: dict[str, Any]) -> dict[str, Any] | None:
    """Return a count as this wire has it, whose prompt holds what is cached."""
    if not usage:
        return None
    read = usage.get("cache_read_input_tokens", 0)
    written = usage.get("cache_creation_input_tokens", 0)
    sent = usage["input_tokens"]
    return {
        "prompt_tokens": sent + read + written if isinstance(sent, int) else sent,
        "completion_tokens": usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
    }


def _error(reply: Reply) -> dict[str, Any]:
    return {
        "error": {
            "message": reply.error_message,
            "type": reply.error_type,
            "param": None,
            "code": reply.error_code or None,
        }
    }


# ---------------------------------------------------------------- what a script reads


def read(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request as the Messages API would have it."""
    found: dict[str, Any] = {"model": body["model"], "messages": []}
    found["max_tokens"] = body.get("max_tokens") or body.get("max_completion_tokens")
    messages: list[dict[str, Any]] = found["messages"]
    for message in body["messages"]:
        if message["role"] == "system":
            found["system"] = [_text(part) for part in _parts_of(message)]
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        messages[-1]["content"] += _blocks(message)
    if "tools" in body:
        found["tools"] = [
            {
                "name": tool["function"]["name"],
                "description": tool["function"]["description"],
                "input_schema": tool["function"]["parameters"],
            }
            for tool in body["tools"]
        ]
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        found["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return found


def _blocks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message["content"] or ""
    if message["role"] == "tool":
        (part,) = _parts_of(message)
        told, marks = part["text"], _marks(part)
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], **marks}
        is_error = told.startswith(FAILED)
        yield result | {"content": told.removeprefix(FAILED), "is_error": is_error}
        return
    if isinstance(content, list):
        for part in content:
            yield _text(part) if part["type"] == "text" else _file(part)
        return
    yield from _texts(content)
    for call in message.get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        name = call["function"]["name"]
        yield {"type": "tool_use", "id": call["id"], "name": name, "input": given}


def _parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _marks(part: dict[str, Any]) -> dict[str, Any]:
    return {"cache_control": {"type": "ephemeral"}} if "prompt_cache_breakpoint" in part else {}


def _text(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part["text"], **_marks(part)}


def _texts(content: str) -> Iterator[dict[str, Any]]:
    said, mark, now = content.rpartition(SITUATION)
    for text in (said.rstrip("\n"), mark + now) if mark else (content,):
        if text:
            yield {"type": "text", "text": text}


def _file(part: dict[str, Any]) -> dict[str, Any]:
    url = part["image_url"]["url"] if part["type"] == "image_url" else part["file"]["file_data"]
    head, _, data = url.partition(";base64,")
    source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    if part["type"] == "image_url":
        return {"type": "image", "source": source, **_marks(part)}
    title = part["file"]["filename"]
    return {"type": "document", "source": source, "title": title, **_marks(part)}
