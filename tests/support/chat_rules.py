"""What servers of Chat Completions refuse, where a mistake of ours could hide: the strictest ones.

Some models' templates know only roles that take turns and texts that are strings, so more than
OpenAI's own server asks for is asked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.support.messages_rules import mistakes_in_schema

_PARAMETERS: Final = frozenset(
    {
        "model", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options",
        "tools", "response_format", "reasoning_effort", "prompt_cache_key", "prompt_cache_options",
    }
)  # fmt: skip
BREAKPOINTS_MAX: Final = 4
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def mistakes(body: dict[str, Any]) -> Iterator[str]:
    """List what is wrong with the body of a request."""
    for name in sorted(body.keys() - _PARAMETERS):
        yield f"Unrecognized request argument supplied: {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if len({"max_tokens", "max_completion_tokens"} & body.keys()) != 1:
        yield "one limit of the answer is expected"
    if body.get("stream") is not True:
        yield "only streams are spoken here"
    for tool in body.get("tools", []):
        yield from _mistakes_in_tool(tool)
    if "response_format" in body:
        asked = body["response_format"]["json_schema"]
        if not {"name", "schema"} <= asked.keys():
            yield "response_format.json_schema: needs a name and a schema"
    messages, has_parts = body.get("messages") or [], "prompt_cache_options" in body
    if str(messages).count("prompt_cache_breakpoint") > BREAKPOINTS_MAX * has_parts:
        yield f"prompt_cache_breakpoint: at most {BREAKPOINTS_MAX}, by models that take them"
    yield from _mistakes_in_messages(messages, has_parts=has_parts)


def _mistakes_in_tool(tool: dict[str, Any]) -> Iterator[str]:
    function = tool.get("function", {})
    if tool.get("type") != "function" or not _NAME.fullmatch(function.get("name", "")):
        yield "tools: a tool needs the type function and a name"
    if function.get("parameters", {}).get("type") != "object":
        yield "tools: parameters must be of type object"
    yield from mistakes_in_schema(function.get("parameters", {}))


def _mistakes_in_messages(messages: list[dict[str, Any]], *, has_parts: bool) -> Iterator[str]:
    others = [one for one in messages[:1] if one["role"] != "system"] + messages[1:]
    if not others or others[0]["role"] != "user":
        yield "messages: the first after the system message must be the user's"
    before = ""
    ids: list[str] = []
    open_calls: list[str] = []
    for index, message in enumerate(others):
        where, role = f"messages.{index}", message["role"]
        if role == before and role != "tool":
            yield f"{where}: roles must alternate"
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"{where}: no call {message['tool_call_id']} before it"
            else:
                open_calls.remove(message["tool_call_id"])
        elif open_calls:
            yield f"{where}: calls {open_calls} need their results first"
        if role not in ("user", "assistant", "tool"):
            yield f"{where}: role {role}"
        yield from _mistakes_in_content(message, where, has_parts=has_parts)
        used = [call["id"] for call in message.get("tool_calls", [])]
        open_calls, ids, before = open_calls + used, ids + used, role
    if open_calls:
        yield f"messages: calls {open_calls} without results"
    if "" in ids or len(set(ids)) < len(ids):
        yield f"messages: ids of calls must be there and unique: {ids}"


def _mistakes_in_parts(
    role: str, parts: list[dict[str, Any]], where: str, *, has_parts: bool
) -> Iterator[str]:
    kinds = {part["type"] for part in parts}
    if not has_parts and (role != "user" or not kinds & {"image_url", "file"}):
        yield f"{where}: content must be text, but beside files"
    if unknown := kinds - {"text", "image_url", "file"}:
        yield f"{where}: parts of the kind {min(unknown)}"
    for part in parts:
        if part["type"] == "file" and not part["file"]["filename"]:
            yield f"{where}: a file needs a name"


def _mistakes_in_content(message: dict[str, Any], where: str, *, has_parts: bool) -> Iterator[str]:
    content, calls = message["content"], message.get("tool_calls")
    if isinstance(content, list):
        yield from _mistakes_in_parts(message["role"], content, where, has_parts=has_parts)
    elif not (isinstance(content, str) and content.strip()) and not (content is None and calls):
        yield f"{where}: content must be text"
    if calls == []:
        yield f"{where}: tool_calls must not be empty"
    for call in calls or []:
        function = call["function"]
        if call["type"] != "function" or not _NAME.fullmatch(function["name"]):
            yield f"{where}: a call needs the type function and a name"
        if not isinstance(json.loads(function["arguments"]), dict):
            yield f"{where}: arguments must be an object in a string"
