"""Writing what a person has, and nobody else: as records, and as pages that they can read.

Everything is read from the log, where an erasing would find it (`places`), so what is exported is
what would be erased. Records are written as they are stored, a line each; the newest state alone of
what stands on the board, as older ones aren't theirs to have back.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from .. import __version__
from ..attachments.store import read as read_file
from ..attachments.subjects import ABOUT
from ..backup import workspaces
from ..bus.bus import Bus, Message
from ..contracts.events import Attachment
from ..erasure.shared_memory import Sifting
from ..erasure.theirs import filters_of
from ..errors import Unavailable
from ..settings.config import Settings
from ..subjects import Scope, SessionKey
from ..teams import TEAM
from . import prose
from .bundle import BundlePart, BundleWriter, ExportManifest
from .places import LEFT_OUT, TAKEN, is_setting_of

SILENCE_MAX_S: Final = 10.0
REMINDERS: Final = "reminders.md"
"""The page of the reminders that are open."""


class ExportedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record, as a line of a part."""

    subject: str
    record: msgspec.Raw


async def export(
    bus: Bus, settings: Settings, user: str, path: Path, now: datetime
) -> ExportManifest:
    """Write all that a person has to a folder, or to a file that ends in ``.zip``.

    Raises:
        InvalidInput: that is nobody's name.
        OSError: it can't be written; nothing is left of it.
        Unavailable, BusError: the broker is away, or refused.
    """
    filters = filters_of(user)
    writer = BundleWriter(path)
    try:
        exporter = _Exporter(bus, user, writer)
        for name in TAKEN:
            if name == "FILES":
                await exporter.files(filters[name])
            elif name == "KV_CONFIG":
                await exporter.settings()
            else:
                await exporter.records(name, filters[name])
        await exporter.pages(filters["SESSIONS"])
        _workspaces(writer, settings.home, user)
        return writer.finish(vigil=__version__, user=user, made_at=now, left_out=LEFT_OUT)
    finally:
        writer.abort()


class _Exporter:
    def __init__(self, bus: Bus, user: str, writer: BundleWriter) -> None:
        self._bus, self._user, self._writer = bus, user, writer

    async def records(self, name: str, filters: Iterable[str]) -> None:
        newest: dict[str, Message] = {}
        memories: list[Message] = []
        with self._writer.part(f"records/{name}.jsonl") as part:
            for stream in (await self._bus.layout()).streams(name):
                async for message in _read(self._bus, stream, filters):
                    if name == "BOARD":
                        newest.pop(message.subject, None)
                        newest[message.subject] = message
                    else:
                        _write(part, message)
                        if name == "MEMORIES":
                            memories.append(message)
            if name == "MEMORIES":
                async for message in self._given_to_teams():
                    _write(part, message)
            for message in newest.values():
                _write(part, message)
        if memories:
            self._page("memories.md", _memory_lines(memories))
        entities = [msgspec.json.decode(m.data).get("entity", {}) for m in newest.values()]
        for kind in prose.TITLES:
            of_kind = [one for one in entities if one.get("kind") == kind]
            if items := prose.board_items(kind, of_kind):
                self._page(f"{kind}s.md", items, f"{kind.capitalize()}s")

    async def _given_to_teams(self) -> AsyncIterator[Message]:
        """Yield what the person saved into memories that a team shares: by their own hand."""
        sifting = Sifting(self._user)
        shared = [Scope("*", TEAM).everything]
        async for message in _read(self._bus, "MEMORIES", shared):
            record = msgspec.json.decode(message.data)
            is_saved = record.get("op") == "save" and sifting.is_theirs(str(record.get("by")))
            if is_saved and not record["memory"].get("provenance"):
                yield message

    async def files(self, filters: Iterable[str]) -> None:
        names: dict[str, Attachment] = {}
        async for message in _read(self._bus, "FILES", filters):
            if message.subject.endswith(f".{ABOUT}"):
                about = msgspec.json.decode(message.data, type=Attachment)
                names[about.hash] = about
        for about in names.values():
            data = await read_file(self._bus, self._user, about)
            if data is not None:
                with self._writer.part(f"files/{about.hash}") as part:
                    part.write(data)
        with self._writer.part("records/FILES.jsonl") as part:
            for about in names.values():
                part.line(msgspec.json.encode(about))

    async def settings(self) -> None:
        found: dict[str, Message] = {}
        for message in await self._bus.read("KV_CONFIG", ["$KV.CONFIG.>"]):
            if is_setting_of(self._user, message.subject.removeprefix("$KV.CONFIG.")):
                found[message.subject] = message
        with self._writer.part("records/KV_CONFIG.jsonl") as part:
            for message in found.values():
                if message.data:
                    _write(part, message)

    async def pages(self, filters: Iterable[str]) -> None:
        """Write each conversation as a page, and one of the reminders that are open."""
        said: dict[str, list[str]] = {}
        turns: dict[SessionKey, bytes] = {}
        for stream in (await self._bus.layout()).streams("SESSIONS"):
            async for message in _read(self._bus, stream, filters):
                line = prose.spoken(message.subject, message.data)
                key = SessionKey.of_subject(message.subject)
                if message.subject.split(".")[4].startswith("turn"):
                    turns[key] = message.data
                if line is not None:
                    said.setdefault(f"conversations/{key.agent}/{key.thread}.md", []).append(line)
        if found := sorted(chain.from_iterable(map(prose.reminders, turns.values()))):
            self._page(REMINDERS, [line for _, line in found], "Reminders")
        for name, lines in said.items():
            self._page(name, lines)

    def _page(self, name: str, lines: list[str], heading: str = "") -> None:
        with self._writer.part(name) as part:
            if heading:
                part.write(f"# {heading}\n\n".encode())
            for line in lines:
                part.line(line.encode())


def _write(part: BundlePart, message: Message) -> None:
    """Write a record; what isn't JSON is nobody's record, and is written as a text."""
    try:
        msgspec.json.decode(message.data)
        data = message.data
    except (msgspec.MsgspecError, ValueError):
        data = msgspec.json.encode(message.data.decode("utf-8", "replace"))
    part.line(
        msgspec.json.encode(ExportedRecord(subject=message.subject, record=msgspec.Raw(data)))
    )


def _memory_lines(messages: Iterable[Message]) -> list[str]:
    """Return what is known by now: without what was forgotten, undone or replaced."""
    known: dict[str, dict[str, Any]] = {}
    ended: set[str] = set()
    for message in messages:
        record = msgspec.json.decode(message.data)
        if memory := record.get("memory"):
            known[memory["id"]] = memory
        if record.get("op") in ("forget", "undo", "replace"):
            ended.update(record.get("memory_ids", ()))
            ended.difference_update(record.get("restored_ids", ()))
        ended.update(record.get("merged_ids", ()))
    return [prose.memory_line(one) for id_, one in known.items() if id_ not in ended]


def _workspaces(writer: BundleWriter, home: Path, user: str) -> None:
    """Write the files that tools left in the person's folders."""
    for file in workspaces.files(home):
        folder, agent, owner, *rest = file.relative_to(home).parts + ("",) * 3
        if folder == "workspaces" and owner == user and agent and any(rest):
            opened = workspaces.open_plain(home, file)
            if opened is not None:
                name = file.relative_to(home).as_posix()
                with os.fdopen(opened, "rb") as source, writer.part(name) as part:
                    while block := source.read(1 << 20):
                        part.write(block)


async def _read(bus: Bus, stream: str, filters: Iterable[str]) -> AsyncIterator[Message]:
    """Yield what lies there now, in order."""
    follower = await bus.follow(stream, list(filters), 1)
    try:
        for _ in range(follower.waiting):
            message = await follower.next_within(SILENCE_MAX_S)
            if message is None:
                raise Unavailable(f"{stream}: the broker fell silent")
            yield message
            if message.pending == 0:  # some were removed since it was opened
                return
    finally:
        await follower.close()
