"""One reading of a calendar: what is known of it becomes what it is now.

What could not be had leaves everything as it was known; one that is cut off leaves nothing half.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from .. import distribution
from ..errors import InvalidInput
from . import places
from .apart import document_apart, objects_apart
from .dav import Collection
from .entries import CalendarObject, CalendarWindow, RawObject
from .mirror import Mirror, RefusedPassword, nothing
from .places import CalendarProblem, CalendarServer, PasswordRefused
from .section import CalendarSection

REFUSED_FOR: Final = timedelta(hours=6)
"""How long a server isn't shown the password again that it refused: asked on and on, servers lock
accounts."""
LIBRARIES: Final = ("icalendar", "recurring_ical_events")
DIGEST, ETAG, MODIFIED = "digest", "etag", "last-modified"


class PasswordKept(CalendarProblem):
    """The password was refused, and isn't shown again yet."""


class CalendarReader:
    """Reads one calendar.

    Args:
        ports_never: the broker's, say.
    """

    def __init__(
        self, section: CalendarSection, home: Path, *, ports_never: Iterable[int] = ()
    ) -> None:
        self.section = section
        self._home = home
        self._ports_never = frozenset(ports_never)

    def server(self) -> CalendarServer:
        """Return its server, to be closed. Raises: CalendarProblem."""
        try:
            return CalendarServer(self.section, self._home, ports_never=self._ports_never)
        except InvalidInput as error:
            raise CalendarProblem(str(error)) from error

    async def read(self, before: Mirror | None, now: datetime) -> Mirror:
        """Return it as it is now.

        Raises:
            PasswordRefused: its server refuses whoever asks.
            PasswordKept: it did, and isn't asked.
            Unavailable: it can't be read now.
        """
        missing = [one for one in LIBRARIES if importlib.util.find_spec(one) is None]
        if missing:
            needed = distribution.command_for()
            raise CalendarProblem(f"it needs {', '.join(missing)}: {needed}")
        window = CalendarWindow.around(now)
        known = before or nothing(self.section, now)
        if known.window != window:
            known = await self._moved(known, window)
        try:
            async with asyncio.timeout(self.section.timeout_s):
                found = await self._fetched(known, now)
        except TimeoutError as error:
            limit = f"{self.section.timeout_s:g} s (timeout_s)"
            raise CalendarProblem(f"there was no whole answer within {limit}") from error
        return replace(await found.read(), synced_at=now, refused=None)

    async def _moved(self, known: Mirror, window: CalendarWindow) -> Mirror:
        """Return what is known with the instances of another stretch of time. A document is read
        again as a whole."""
        if self.section.kind != "caldav":
            return replace(known, window=window, marks={})
        raws = [RawObject(href=one.href, etag=one.etag, data=one.data) for one in known.objects]
        read = await objects_apart([one for one in raws if one.data], window)
        others = tuple(one for one in known.objects if not one.data)
        return replace(known, window=window, objects=(*read, *others))

    async def _fetched(self, known: Mirror, now: datetime) -> _Fetched:
        """Raises: CalendarProblem."""
        if self.section.kind == "file":
            data, digest = await asyncio.to_thread(places.read_file, self.section, self._home)
            return _Document(
                known, None if known.marks.get(DIGEST) == digest else data, {DIGEST: digest}
            )
        server = self.server()
        try:
            check_refused(server, known.refused, now)
            if self.section.kind == "ics":
                return await self._document(server, known)
            etags = {one.href: one.etag for one in known.objects}
            changes = await Collection(server).changes(known.marks, etags)
        finally:
            await server.close()
        if changes is None:
            return _Fetched(known)
        return _Objects(known, changes.marks, changes.fetched, changes.gone)

    async def _document(self, server: CalendarServer, known: Mirror) -> _Fetched:
        conditions = {"accept": "text/calendar, text/plain;q=0.5"}
        if known.marks.get(ETAG):
            conditions["if-none-match"] = known.marks[ETAG]
        elif known.marks.get(MODIFIED):
            conditions["if-modified-since"] = known.marks[MODIFIED]
        reply = await server.ask("GET", headers=conditions)
        if reply.status == places.NOT_CHANGED:
            return _Fetched(known)
        if reply.status != 200:
            raise CalendarProblem(places.said(reply))
        marks = {name: reply.headers.get(name, "") for name in (ETAG, MODIFIED)}
        return _Document(known, reply.body, {name: one for name, one in marks.items() if one})


class _Fetched:
    """What was fetched, still to be read: nothing new."""

    def __init__(self, known: Mirror) -> None:
        self.known = known

    async def read(self) -> Mirror:
        """Return what is known with it. Raises: Unavailable."""
        return self.known


class _Document(_Fetched):
    """A document; None: it's the same as before."""

    def __init__(self, known: Mirror, data: bytes | None, marks: dict[str, str]) -> None:
        super().__init__(known)
        self._data = data
        self._marks = marks

    async def read(self) -> Mirror:
        if self._data is None:
            return self.known
        found = await document_apart(self._data, self.known.window)
        if found.problem:
            raise CalendarProblem(found.problem)
        return replace(self.known, objects=found.objects, remarks=found.remarks, marks=self._marks)


class _Objects(_Fetched):
    """Objects of a collection that were changed, and those that went."""

    def __init__(
        self,
        known: Mirror,
        marks: dict[str, str],
        fetched: tuple[RawObject, ...],
        gone: frozenset[str],
    ) -> None:
        super().__init__(known)
        self._marks = marks
        self._fetched = fetched
        self._gone = gone

    async def read(self) -> Mirror:
        read = await objects_apart(self._fetched, self.known.window)
        objects: dict[str, CalendarObject] = {
            one.href: one for one in self.known.objects if one.href not in self._gone
        }
        objects |= {one.href: one for one in read}
        return replace(self.known, objects=tuple(objects.values()), marks=self._marks)


def refused_of(error: PasswordRefused, now: datetime) -> RefusedPassword | None:
    """Return what to remember of a refusal; None: nothing was shown."""
    return RefusedPassword(token=error.token, at=now) if error.token else None


def check_refused(server: CalendarServer, refused: RefusedPassword | None, now: datetime) -> None:
    """Raises: PasswordKept: its server refused what it would be shown, a short while ago."""
    if refused is None or now - refused.at >= REFUSED_FOR:
        return
    if refused.token == places.token_for(server.secret()):
        raise PasswordKept(
            "401: its server refused the login and password; it isn't asked again with the "
            "same ones for 6 hours: change the password"
        )
