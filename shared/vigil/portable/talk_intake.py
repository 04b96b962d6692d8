"""Taking the conversations of an export in, and what their person calls them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from ..attachments import store
from ..bus.bus import Bus
from ..contracts import Attachment
from ..errors import InvalidInput
from ..marks import conversation_label, thread_mark
from ..marks.conversation_label import ConversationLabel
from ..past import intake
from ..past.intake import TakenPast
from ..subjects import SessionKey
from . import talks
from .adopt import StaysBehind
from .talks import ExportedTalk


class TalkIntake:
    """Takes conversations in, for one person.

    Raises, from each method:
        Unavailable, BusError: the broker is away, or refused; call again.
    """

    def __init__(self, bus: Bus, to: str, space: str, now: datetime, *, is_trusted: bool) -> None:
        self._bus, self._to, self._space, self._now = bus, to, space, now
        self._is_trusted = is_trusted
        self._threads: dict[SessionKey, SessionKey] = {}
        """Where each is now, by its name there."""

    async def is_deleted(self, talk: ExportedTalk, since: datetime, *, is_theirs: bool) -> bool:
        """Whether a conversation of an export was deleted here since then, and isn't here again.

        Args:
            is_theirs: the export is of the same person's, so that conversations are called as here.
        """
        threads = talks.named(talk, self._space)
        for key in dict.fromkeys([*([talk.key] if is_theirs else []), *threads]):
            mark = await thread_mark.find(self._bus, key)
            if mark is None or mark.asked_at < since:
                continue
            of = talk.token(self._space)
            found = [(await intake.standing(self._bus, one, of)).standing for one in threads]
            return mark.is_open or "ours" not in found
        return False

    async def take(self, talk: ExportedTalk) -> TakenPast:
        """Take a conversation in; what of it is here already stays. Raises: InvalidInput."""
        if talk.key.user != self._to:
            raise InvalidInput("session_key", "is somebody else's")
        lines = {
            id_: replace(one, attachments=await self._kept(one)) for id_, one in talk.lines.items()
        }
        talk = ExportedTalk(key=talk.key, lines=lines)
        threads = talks.named(talk, self._space)
        key = await self._thread(talk, threads)
        if key is None:
            self._threads[talk.key] = talk.key
            return TakenPast(0, len(lines))
        self._threads[talk.key] = key
        words = talks.words_of(
            talk, key, self._space, is_trusted=self._is_trusted, by=self._to, now=self._now
        )
        return await intake.take(self._bus, key, words, len(words), self._now)

    async def _kept(self, line: talks.SaidLine) -> tuple[Attachment, ...]:
        """Return the files of a message that are here, whatever they were called there."""
        found = [await store.find(self._bus, self._to, one.hash) for one in line.attachments]
        return tuple(one for one in found if one is not None)

    async def _thread(self, talk: ExportedTalk, threads: list[SessionKey]) -> SessionKey | None:
        """Return where it is, or may be; None: it was led here, and still is.

        Raises: InvalidInput, each of its threads holds something else.
        """
        of = talk.token(self._space)
        standings = [(await intake.standing(self._bus, one, of)).standing for one in threads]
        for wanted in ("ours", "free"):
            if wanted == "free" and standings[0] == "others" and await self._is_here(talk):
                return None
            if wanted in standings:
                return threads[standings.index(wanted)]
        raise InvalidInput("session_key", "threads of that name hold something else")

    async def _is_here(self, talk: ExportedTalk) -> bool:
        found = await self._bus.read(talk.key.stream, [talk.key.transcript])
        return talk.lines.keys() <= {id_in(one.data) for one in found}

    async def label(self, value: Any, user: str) -> bool:
        """Take in what a person calls a conversation; return whether that's new. Raises:
        InvalidInput."""
        try:
            label = msgspec.convert(value, ConversationLabel)
        except msgspec.ValidationError as error:
            raise InvalidInput("label", str(error)) from error
        there = SessionKey.parse(label.session)
        key = self._threads.get(SessionKey(self._to, there.agent, there.thread))
        if label.reader not in (user, self._to) or there.user != user or key is None:
            raise StaysBehind("session", "is of a conversation that isn't here")
        title = " ".join(label.title.split())[: conversation_label.TITLE_LENGTH_MAX]
        ours = replace(label, reader=self._to, session=str(key), title=title)
        known, revision = await conversation_label.find(self._bus, self._to, key)
        if known is None:
            await conversation_label.put(self._bus, ours, expect=revision)
        return known is None


class _Identified(msgspec.Struct):
    id: str = ""


def id_in(record: bytes) -> str:
    """Return the id of a stored record; empty: it has none, or can't be read.

    >>> id_in(b'{"id": "a", "v": 99}'), id_in(b"{")
    ('a', '')
    """
    try:
        return msgspec.json.decode(record, type=_Identified).id
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""


def is_label(subject: str) -> bool:
    """Whether an entry of CONFIG is what somebody calls a conversation."""
    return subject.startswith(f"$KV.{conversation_label.BUCKET}.{conversation_label.PREFIX}")
