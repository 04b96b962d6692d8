"""An agent as the Agent Client Protocol has it. Imports the SDK: only `vigil acp` does."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote
from uuid import uuid4

import acp
from acp import schema

from vigil import __version__
from vigil.attachments.names import file_name
from vigil.errors import VigilError
from vigil.sdk.client import ApiError, Client
from vigil.subjects import SessionKey
from vigil.texts.exact import exact

from .prompt_end import Permission, ToolUpdate
from .session import EditorSession

THREAD: Final = "acp-"
"""Begins the names of conversations that begin here."""
KINDS: Final[dict[str, schema.ToolKind]] = {"read": "read", "write": "edit", "external": "fetch"}
REFUSED: Final = -32000
OPTIONS: Final = (
    ("accept", "Let it run once, with exactly these arguments", "allow_once"),
    ("reject", "Don't", "reject_once"),
)


class EditorAgent:
    """Talks with one agent, as whoever the token belongs to."""

    def __init__(self, client: Client, agent: str, owner: str) -> None:
        self._client = client
        self._agent = agent
        self._owner = owner
        self._editor: Any = None
        self._sessions: dict[str, EditorSession] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self._editor = conn

    async def close(self) -> None:
        """Follow nothing any more."""
        for one in self._sessions.values():
            await one.close()

    # ------------------------------------------------------------ what an editor asks

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_: Any,
    ) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
            ),
            agent_info=schema.Implementation(name="vigil", title="Vigil", version=__version__),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        key = SessionKey(self._owner, self._agent, f"{THREAD}{uuid4().hex[:12]}")
        self._open(str(key), 0)
        return schema.NewSessionResponse(session_id=str(key))

    async def load_session(
        self, cwd: str, session_id: str, **_: Any
    ) -> schema.LoadSessionResponse | None:
        """Show what was said, the newest thousand messages, and go on with it."""
        with _explained():
            SessionKey.parse(session_id)
            found = await asyncio.to_thread(self._client.session, session_id)
        for one in found["messages"]:
            if one.get("taken_back_by") is None:
                is_persons = one["role"] == "user"
                made = acp.update_user_message_text if is_persons else acp.update_agent_message_text
                await self._editor.session_update(session_id, made(one["text"]))
        last = max((one["seq"] for one in found["messages"]), default=0)
        if (before := self._sessions.pop(session_id, None)) is not None:
            await before.close()
        self._open(session_id, last)
        return schema.LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        session = self._sessions.get(session_id)
        if session is None:
            raise acp.RequestError.resource_not_found(session_id)
        with _explained():
            hashes = [await self._uploaded(*one) for one in files_of(prompt)]
            reason = await session.prompt(words_of(prompt), list(dict.fromkeys(hashes)))
        return schema.PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_: Any) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            await session.stop()

    def _open(self, key: str, after: int) -> None:
        session = EditorSession(self._client, key, self)
        session.start(after)
        self._sessions[key] = session

    async def _uploaded(self, name: str, data: bytes) -> str:
        stored = await asyncio.to_thread(self._client.upload, name, data)
        return str(stored["hash"])

    # ------------------------------------------------------------ what it is told

    async def piece(self, key: str, text: str) -> None:
        await self._editor.session_update(key, acp.update_agent_message_text(text))

    async def tool(self, key: str, call: ToolUpdate) -> None:
        if call.status == "in_progress":
            update: Any = acp.start_tool_call(
                call.call_id, call.tool, status=call.status, raw_input=dict(call.arguments)
            )
        else:
            update = acp.update_tool_call(call.call_id, status=call.status)
        await self._editor.session_update(key, update)

    async def permit(self, key: str, approval: Mapping[str, Any]) -> Permission:
        """Ask about a call, shown with its exact arguments; the verdict is for those alone."""
        told = f"{approval['reason']}\n{exact(approval['input'])}"
        call = schema.ToolCallUpdate(
            tool_call_id=approval["id"],
            title=approval["tool"],
            kind=KINDS.get(approval["risk"], "other"),
            status="pending",
            raw_input=approval["input"],
            content=[acp.tool_content(acp.text_block(told))],
        )
        options = [
            schema.PermissionOption(option_id=id_, name=name, kind=kind)  # type: ignore[arg-type]
            for id_, name, kind in OPTIONS
        ]
        answer = await self._editor.request_permission(
            session_id=key, tool_call=call, options=options
        )
        match getattr(answer.outcome, "option_id", ""):
            case "accept":
                return "accept"
            case "reject":
                return "reject"
            case _:
                return ""


def files_of(prompt: list[Any]) -> list[tuple[str, bytes]]:
    """Return name and bytes of what a prompt brings along: pictures, and files of the editor, which
    are outside content as any file is.

    Raises:
        RequestError: one is no base64.
    """
    files = []
    for one in prompt:
        if one.type == "image":
            files.append((f"image.{one.mime_type.rpartition('/')[2][:8]}", _decoded(one.data)))
        elif one.type == "resource":
            held = one.resource
            is_text = isinstance(held, schema.TextResourceContents)
            name = file_name(unquote(held.uri.rpartition("/")[2]))
            files.append((name, held.text.encode() if is_text else _decoded(held.blob)))
    return [(name, data) for name, data in files if data.strip()]


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise acp.RequestError(-32602, "a file is no base64") from error


def words_of(prompt: list[Any]) -> str:
    """Return what a prompt says. A link is named, and not read: it's the agent who looks, by its
    own tools. What the editor brings along is named where it stands.

    Raises:
        RequestError: it has something that nobody can be told.
    """
    texts = []
    for one in prompt:
        if one.type == "text":
            texts.append(one.text)
        elif one.type == "resource_link":
            texts.append(f"{one.name}: {one.uri}")
        elif one.type == "resource":
            texts.append(one.resource.uri)
        elif one.type != "image":
            raise acp.RequestError(-32602, f"parts of type {one.type} aren't taken here")
    return "\n\n".join(filter(None, texts))


@contextmanager
def _explained() -> Iterator[None]:
    """Put what Vigil refuses into words for the editor."""
    try:
        yield
    except ApiError as error:
        if error.status == 404:
            raise acp.RequestError(-32002, str(error)) from error
        raise acp.RequestError(REFUSED, str(error)) from error
    except VigilError as error:
        raise acp.RequestError(REFUSED, str(error)) from error
