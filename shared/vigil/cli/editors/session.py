"""One conversation of an editor: what is said in it, heard of it, and asked of its person."""

from __future__ import annotations

import asyncio
import contextlib
import http
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, Protocol
from uuid import uuid4

from vigil.errors import VigilError
from vigil.sdk.client import ApiError, Client
from vigil.texts.streamed import StreamedAnswer

from ...background.end import end_tasks
from ..chat.conversation import Conversation
from .prompt_end import Permission, PromptEnd, ToolUpdate

DEVICE: Final = "acp"
"""The name of the cursor that editors read with."""
POLL_S: Final = 1.0
"""How often the log is looked at while nothing is heard."""
FOLLOW_ON_S: Final = 120.0
"""How long what comes of a decision is waited for, at most."""
SHOW_S: Final = 3.0
LISTED_TRIES: Final = 40
LISTED_S: Final = 0.25
"""How often, and how far apart, a verdict is given that finds no request yet."""


class Editor(Protocol):
    """What an editor is told and asked."""

    async def piece(self, key: str, text: str) -> None:
        """Show more of what the agent says."""

    async def tool(self, key: str, call: ToolUpdate) -> None:
        """Show that a tool runs, or ran."""

    async def permit(self, key: str, approval: Mapping[str, Any]) -> Permission:
        """Ask the person about a request; empty: they didn't decide."""


class EditorSession:
    """A conversation, followed until it's closed. It is the screen of its `Conversation`."""

    def __init__(self, client: Client, key: str, editor: Editor) -> None:
        self._client = client
        self._key = key
        self._editor = editor
        self._spoken = StreamedAnswer()
        self._updates: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._conversation = Conversation(client, key, self, device=DEVICE)
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._lock = asyncio.Lock()

    def start(self, after: int) -> None:
        """Follow it from now on: what was said behind the message of that sequence."""
        self._conversation.begin_at(after)
        self._tasks = (
            asyncio.create_task(self._conversation.run(), name="acp-socket"),
            asyncio.create_task(self._send_updates(), name="acp-updates"),
        )

    async def close(self) -> None:
        await end_tasks(*self._tasks)

    # ------------------------------------------------------------ what is heard

    def token(self, frame: dict[str, Any]) -> None:
        self._show(self._spoken.token(frame["turn"], frame["attempt"], frame["text"]))

    def progress(self, frame: dict[str, Any]) -> None:
        """Leave it out: an editor is shown calls as the log has them."""

    def message(self, frame: dict[str, Any]) -> None:
        self._show(self._spoken.said(frame["text"]))

    def notice(self, text: str) -> None:
        print(f"vigil: {text}", file=sys.stderr)

    def _show(self, piece: str) -> None:
        if piece:
            self._updates.put_nowait(lambda: self._editor.piece(self._key, piece))

    async def _send_updates(self) -> None:
        """Tell the editor one thing after the other."""
        while True:
            send = await self._updates.get()
            try:
                await send()
            finally:
                self._updates.task_done()

    # ------------------------------------------------------------ what is said

    async def prompt(self, text: str, files: list[str]) -> Literal["end_turn", "cancelled"]:
        """Say something, and return when all that came of it is told.

        Raises:
            VigilError: it isn't stored, or can't be followed.
        """
        async with self._lock:
            self._spoken = StreamedAnswer()
            stored = await asyncio.to_thread(
                self._client.send,
                self._key,
                text,
                idempotency_key=str(uuid4()),
                attachments=files,
            )
            end = PromptEnd(stored["event_id"])
            after = await self._follow(end, stored["seq"])
            if not end.is_stopped and await self._decided(list(end.requests.values())):
                await self._follow_on(after)
            await self._conversation.wait_shown(end.said, SHOW_S)
            await self._updates.join()
            return "cancelled" if end.is_stopped else "end_turn"

    async def stop(self) -> None:
        """Have the turn that runs ended; before anything is stored there is none."""
        try:
            await asyncio.to_thread(self._client.stop, self._key)
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    async def _follow(self, end: PromptEnd, after: int) -> int:
        """Return how far the log was read, once it is over."""
        while True:
            after = await self._read(end, after)
            if end.is_over:
                return after
            self._check_follows()
            await self._conversation.wait_changed(POLL_S)

    async def _read(self, end: PromptEnd, after: int) -> int:
        while True:
            page = await asyncio.to_thread(self._client.timeline, self._key, after=after)
            for record in page["records"]:
                after = record["seq"]
                for call in end.take(record["kind"], record["data"]):
                    self._updates.put_nowait(lambda n=call: self._editor.tool(self._key, n))  # type: ignore[misc]
            if page.get("next_after") is None:
                return after

    def _check_follows(self) -> None:
        """Raises: VigilError, the gateway will not have it followed any more."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error if isinstance(error, VigilError) else VigilError(str(error))

    async def _decided(self, requests: Iterable[Mapping[str, Any]]) -> bool:
        """Ask about these requests; whether one was decided."""
        is_decided = False
        for one in requests:
            await self._updates.join()
            verdict = await self._editor.permit(self._key, one)
            decide = {"accept": self._client.accept, "reject": self._client.reject}.get(verdict)
            if decide is not None:
                await self._decide(lambda d=decide, o=one: d(o["id"], digest=o["digest"]))  # type: ignore[misc]
                is_decided = True
        return is_decided

    async def _decide(self, decide: Callable[[], object]) -> None:
        """Give a verdict, as soon as the board has the request: it's told a moment later."""
        for left in reversed(range(LISTED_TRIES)):
            try:
                await asyncio.to_thread(decide)
            except ApiError as error:
                if error.status != http.HTTPStatus.NOT_FOUND or not left:
                    raise
                await asyncio.sleep(LISTED_S)
            else:
                return

    async def _follow_on(self, after: int) -> None:
        """Wait until the agent said what came of a decision."""
        count = len(self._conversation.said)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_ON_S):
                while True:
                    self._check_follows()
                    now = await asyncio.to_thread(self._client.now, self._key)
                    is_quiet = not now["is_thinking"] and not now["queued"]
                    if is_quiet and len(self._conversation.said) > count:
                        return
                    await self._conversation.wait_changed(POLL_S)
