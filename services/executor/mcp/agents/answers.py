"""An agent's card as tools, and what it answers as results of tools. Pure.

What a card says of itself is told like what an MCP server says of its tools: fitted, pinned when it
is first seen, and held back once it says something else. What it asks for by way of media types or
examples isn't looked at.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, Final

import mcp_types as types
import msgspec
from a2a.types.a2a_pb2 import AgentCard, Message, Part, Task, TaskState
from google.protobuf.json_format import MessageToDict

ASK: Final = "ask"
"""The tool of an agent that names no skill."""
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "message": {
            "type": "string",
            "description": "What it is to do or to know, in full: it sees nothing else.",
        },
        "context_id": {
            "type": "string",
            "description": "Of an earlier answer, to go on in that conversation.",
        },
        "task_id": {
            "type": "string",
            "description": "Of an answer that asked something back, to answer it.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}
WAITING: Final = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
"""It goes on when it is told something."""
_WORKING: Final = (
    TaskState.TASK_STATE_UNSPECIFIED,
    TaskState.TASK_STATE_SUBMITTED,
    TaskState.TASK_STATE_WORKING,
)
_BAD: Final = {
    TaskState.TASK_STATE_FAILED: "it failed",
    TaskState.TASK_STATE_REJECTED: "it refused the task",
    TaskState.TASK_STATE_CANCELED: "the task was cancelled",
}


def tools_of(card: AgentCard) -> list[types.Tool]:
    """Return a tool for each skill, or one for all if there are none."""
    about = f"Asks the agent {card.name}: {card.description}"
    if not card.skills:
        return [types.Tool(name=ASK, description=about, input_schema=SCHEMA)]
    return [
        types.Tool(
            name=skill.id,
            description=f"{skill.name}: {skill.description}\n{about}",
            input_schema=SCHEMA,
        )
        for skill in card.skills
    ]


def is_over(task: Task) -> bool:
    """Whether nothing more comes of a task by itself."""
    return task.status.state not in _WORKING


def result_of(answer: Task | Message) -> types.CallToolResult:
    """Return what a call is answered: the agent's words and files, and by which ids it goes on."""
    ids = {"context_id": answer.context_id}
    if isinstance(answer, Message):
        return _result(_blocks(answer.parts), ids, answer.parts)
    parts = [part for artifact in answer.artifacts for part in artifact.parts]
    state = answer.status.state
    if state in WAITING or state in _BAD or not parts:
        parts += answer.status.message.parts
    blocks = _blocks(parts)
    if state in WAITING:
        ids["task_id"] = answer.id
        wants = "signs in there" if state == TaskState.TASK_STATE_AUTH_REQUIRED else "answers it"
        told = f"[It isn't done: it goes on once somebody {wants}, by context_id and task_id]"
        blocks.append(types.TextContent(type="text", text=told))
    elif state in _BAD:
        blocks.insert(0, types.TextContent(type="text", text=f"[{_BAD[state]}]"))
    return _result(blocks, ids, parts, is_error=state in _BAD)


def _result(
    blocks: list[types.ContentBlock],
    ids: dict[str, str],
    parts: Iterable[Part],
    *,
    is_error: bool = False,
) -> types.CallToolResult:
    found = [MessageToDict(part.data) for part in parts if part.HasField("data")]
    data = {name: id_ for name, id_ in ids.items() if id_} | ({"data": found} if found else {})
    return types.CallToolResult(content=blocks, structured_content=data or None, is_error=is_error)


def _blocks(parts: Sequence[Part]) -> list[types.ContentBlock]:
    return [block for part in parts if (block := _block(part)) is not None]


def _block(part: Part) -> types.ContentBlock | None:
    kind = part.media_type
    match part.WhichOneof("content"):
        case "text":
            return types.TextContent(type="text", text=part.text)
        case "url":
            name = part.filename or "a file"
            return types.ResourceLink(
                type="resource_link", name=name, uri=part.url, mime_type=kind or None
            )
        case "raw":
            data = b64encode(part.raw).decode()
            if kind.startswith("image/"):
                return types.ImageContent(type="image", data=data, mime_type=kind)
            uri = part.filename or "a file"
            held = types.BlobResourceContents(uri=uri, mime_type=kind or None, blob=data)
            return types.EmbeddedResource(type="resource", resource=held)
        case _:
            return None  # data is told as what it is


def facts_of(card: AgentCard, version: str) -> dict[str, str]:
    """Return what is shown of an agent beside its tools."""
    return {"server": f"{card.name} {card.version}".strip(), "protocol": f"A2A {version}"}


def text_of(value: object) -> str:
    """Return an argument as text: the schema was looked at before, if it still was that."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
