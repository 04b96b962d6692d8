"""What the Messages API refuses, as far as a mistake of ours could hide there.

Roles that don't alternate, empty content, tool calls without their results, parameters that
were removed: the real API answers each with 400, so the local server does.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final

from vigil.attachments.examine import examined
from vigil.errors import InvalidInput

_PARAMETERS = frozenset(
    [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "metadata",
        "stop_sequences",
        "thinking",
        "output_config",
        "cache_control",
        "service_tier",
    ]
)

BREAKPOINTS_MAX: Final = 4


def mistakes(body: dict[str, Any], *, needs_max_tokens: bool) -> Iterator[str]:
    """List what is wrong with the body of a request."""
    for name in sorted(body.keys() - _PARAMETERS):
        yield f"{name}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    if needs_max_tokens and not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    if isinstance(body.get("system"), list):
        for index, part in enumerate(body["system"]):
            yield from _blank(part, f"system.{index}")
    for tool in body.get("tools", []):
        if not {"name", "input_schema"} <= tool.keys() or tool["input_schema"]["type"] != "object":
            yield "tools: a tool needs a name and an input_schema of type object"
        yield from mistakes_in_schema(tool.get("input_schema", {}))
    if len(breakpoints(body)) > BREAKPOINTS_MAX:
        yield f"A maximum of {BREAKPOINTS_MAX} blocks with cache_control may be provided."
    messages = body.get("messages")
    if not messages:
        yield "messages: at least one message is required"
        return
    if messages[0]["role"] != "user":
        yield "messages.0: the first message must have the role user"
    yield from _mistakes_in_messages(messages)


def mistakes_in_schema(schema: dict[str, Any]) -> Iterator[str]:
    """A reference that leads nowhere: llama.cpp refuses all tools for it."""
    for name in re.findall(r"'\$ref': '#/\$defs/(\w+)'", str(schema)):
        if name not in schema.get("$defs", {}):
            yield f"tools: cannot resolve $ref #/$defs/{name}"


def breakpoints(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks that end a part to be cached, in the order of the request."""
    messages = [block for message in body.get("messages", []) for block in message["content"]]
    system = body.get("system", [])
    blocks = [*body.get("tools", []), *(system if isinstance(system, list) else ()), *messages]
    return [block for block in blocks if isinstance(block, dict) and "cache_control" in block]


def _mistakes_in_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    ids: set[str] = set()
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if index and message["role"] == messages[index - 1]["role"]:
            yield f"{where}: roles must alternate"
        if not content:
            yield f"{where}: content must not be empty"
        for block in content:
            yield from _blank(block, where)
            yield from _mistakes_in_file(block, where)
        results = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        if sorted(results) != sorted(open_calls):
            yield f"{where}: tool_use ids {open_calls} need exactly their tool_results"
        if any(b["type"] != "tool_result" for b in content[: len(results)]):
            yield f"{where}: tool_result blocks must come first"
        used = [block for block in content if block["type"] == "tool_use"]
        yield from _mistakes_in_calls(used, ids, where)
        open_calls = [block["id"] for block in used]
    if open_calls:
        yield f"messages: tool_use ids {open_calls} without tool_results"


def _mistakes_in_calls(used: list[dict[str, Any]], ids: set[str], where: str) -> Iterator[str]:
    for block in used:
        if block["id"] in ids:
            yield f"{where}: tool_use ids must be unique"
        if not re.fullmatch(r"[A-Za-z0-9_-]+", block["id"]):
            yield f"{where}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", block["name"]):
            yield f"{where}: tool_use.name has an invalid form"
        if not isinstance(block["input"], dict):
            yield f"{where}: tool_use.input must be an object"
        ids.add(block["id"])


def _mistakes_in_file(block: dict[str, Any], where: str) -> Iterator[str]:
    """A file that is none is refused, and so is one of another type than is said."""
    if block["type"] not in ("image", "document"):
        return
    source = block["source"]
    try:
        found = examined("file", base64.b64decode(source["data"], validate=True))
    except (ValueError, InvalidInput) as error:
        yield f"{where}: Could not process {block['type']}: {error}"
        return
    is_image = found.type.startswith("image/")
    if found.type != source["media_type"] or is_image != (block["type"] == "image"):
        yield f"{where}: the file is {found.type}, not {source['media_type']}"


def _blank(block: dict[str, Any], where: str) -> Iterator[str]:
    if block["type"] == "text" and not block["text"].strip():
        yield f"{where}: text content blocks must contain non-whitespace text"
