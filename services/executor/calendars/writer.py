"""Changes calendars on their servers: conditionally, and by the name of who asked.

A new event's UID and address follow from the call, and it's stored only where there is none: so a
repeat after a crash makes no second one. A change takes the place of exactly what was read before
(its ETag), and the call stands in it: a repeat finds that it was done. Where an answer is missing,
it's looked whether it was done, before anything is said.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from vigil import crash
from vigil.calendars import mirror
from vigil.calendars.agenda import stamp_of
from vigil.calendars.apart import edited_apart, objects_apart
from vigil.calendars.dav import ChangedElsewhere, Collection
from vigil.calendars.edits import (
    CancelledInstance,
    ChangedEvent,
    Edit,
    NewEvent,
    ToEdit,
    is_of,
)
from vigil.calendars.entries import CalendarObject, CalendarWindow, RawObject
from vigil.calendars.mirror import Mirror
from vigil.calendars.places import CalendarProblem, PasswordRefused
from vigil.calendars.reader import CalendarReader, check_refused, refused_of
from vigil.calendars.section import CalendarSection
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import token_of

from .book import CalendarBook

SETTLE_S: Final = 2.0
UNCLEAR: Final = (
    "It isn't known whether that was done: {reason}. Look with calendar_list or calendar_find "
    "before you ask for it again"
)


class UnclearChange(CalendarProblem):
    """It may have been done."""


class CalendarWrite(NamedTuple):
    """What came of a change."""

    event: CalendarObject | None
    """As it is now; None: there is none any more, or it isn't known."""
    is_known: bool = True
    """Whether it could be read after it was changed."""


def uid_of(call: str) -> str:
    """Return the UID of the event that a call makes."""
    return f"{token_of('calendar event of a call', call)}@vigil"


class CalendarWriter:
    """Makes one change of one calendar.

    Args:
        call: the effect's id, the same for every try.
    """

    def __init__(
        self,
        book: CalendarBook,
        name: str,
        section: CalendarSection,
        call: str,
        *,
        ports_never: frozenset[int] = frozenset(),
    ) -> None:
        if not section.is_writable:
            raise InvalidInput("calendar", f"{name!r} is only read: its is_writable isn't set")
        self._book = book
        self._name = name
        self._section = section
        self._call = call
        self._reader = CalendarReader(section, book.home, ports_never=ports_never)

    async def make(self, edit: NewEvent, now: datetime) -> CalendarWrite:
        """Make an event. Raises: InvalidInput, CalendarProblem, Unavailable."""
        data = await self._edited(edit, now)
        async with self._collection(now) as collection:
            href = collection.href_of(f"{token_of(edit.uid)}.ics")
            return await self._stored(collection, href, data, None, now)

    async def change(
        self, href: str, stamp: str, edit: ChangedEvent | CancelledInstance, now: datetime
    ) -> CalendarWrite:
        """Change an event, if it's as it was listed.

        Args:
            stamp: what tells that state from others (`stamp_of`).

        Raises: as `make`; ChangedElsewhere: it isn't.
        """
        async with self._collection(now) as collection:
            there = await collection.get(href)
            if there is None:
                raise ChangedElsewhere("it isn't there any more")
            if is_of(there.data, self._call):
                return await self._read(collection, href, now)
            if stamp_of(there.etag) != stamp:
                await self._read(collection, href, now)
                raise ChangedElsewhere("it was changed since it was listed")
            data = await self._edited(replace(edit, data=there.data), now)
            return await self._stored(collection, href, data, there.etag, now)

    async def remove(self, href: str, stamp: str, now: datetime) -> CalendarWrite:
        """Remove an event, if it's as it was listed. One that isn't there any more is removed.

        Raises: as `change`.
        """
        async with self._collection(now) as collection:
            there = await collection.get(href)
            if there is not None:
                if stamp_of(there.etag) != stamp:
                    await self._read(collection, href, now)
                    raise ChangedElsewhere("it was changed since it was listed")
                crash.point("calendar.write.before")
                try:
                    await collection.delete(href, expect=there.etag)
                except (ChangedElsewhere, PasswordRefused):
                    raise
                except CalendarProblem as error:
                    if await self._found(collection, href, error) is not None:
                        raise
                crash.point("calendar.write.after")
            await self._note(href, None)
            return CalendarWrite(None)

    @contextlib.asynccontextmanager
    async def _collection(self, now: datetime) -> AsyncIterator[Collection]:
        known = (await self._book.known(self._name)).mirror
        server = self._reader.server()
        try:
            check_refused(server, None if known is None else known.refused, now)
            async with asyncio.timeout(self._section.timeout_s):
                yield Collection(server)
        except TimeoutError as error:
            raise UnclearChange(UNCLEAR.format(reason="its server doesn't answer")) from error
        except PasswordRefused as error:
            refused = refused_of(error, now)
            if refused is not None:
                before = known or mirror.nothing(self._section, now)
                await self._keep(replace(before, refused=refused))
            raise
        finally:
            await server.close()

    async def _edited(self, edit: Edit, now: datetime) -> bytes:
        """Raises: InvalidInput, Unavailable."""
        done = await edited_apart(ToEdit(edit=edit, call=self._call, now=now))
        if done.problem:
            field, _, reason = done.problem.partition(": ")
            raise InvalidInput(field, reason or done.problem)
        return done.data

    async def _stored(
        self, collection: Collection, href: str, data: bytes, expect: str | None, now: datetime
    ) -> CalendarWrite:
        """Store an object, and read it again. Raises: CalendarProblem."""
        crash.point("calendar.write.before")
        try:
            await collection.put(href, data, expect=expect)
        except ChangedElsewhere:
            await self._check_ours(collection, href)
        except PasswordRefused:
            raise  # it wasn't done, and to ask would show the password again
        except CalendarProblem as error:
            await self._settle(collection, href, error)
        crash.point("calendar.write.after")
        return await self._read_after(collection, href, now)

    async def _check_ours(self, collection: Collection, href: str) -> None:
        """Raises: ChangedElsewhere: what is there is another's."""
        try:
            there = await collection.get(href)
        except CalendarProblem as error:
            raise UnclearChange(UNCLEAR.format(reason=error)) from error
        if there is None or not is_of(there.data, self._call):
            raise ChangedElsewhere("somebody else changed it at the same time")

    async def _settle(self, collection: Collection, href: str, error: CalendarProblem) -> None:
        """Find out whether it was stored. Raises: the error, if not; UnclearChange."""
        there = await self._found(collection, href, error)
        if there is None or not is_of(there.data, self._call):
            raise error

    async def _found(
        self, collection: Collection, href: str, error: CalendarProblem
    ) -> RawObject | None:
        try:
            return await collection.get(href)
        except CalendarProblem:
            await asyncio.sleep(SETTLE_S)
        try:
            return await collection.get(href)
        except CalendarProblem:
            raise UnclearChange(UNCLEAR.format(reason=str(error))) from error

    async def _read_after(self, collection: Collection, href: str, now: datetime) -> CalendarWrite:
        """Take in what was stored; where its server is away by now, it was stored all the same."""
        try:
            return await self._read(collection, href, now)
        except Unavailable:
            self._book.wake(self._name)
            return CalendarWrite(None, is_known=False)

    async def _read(self, collection: Collection, href: str, now: datetime) -> CalendarWrite:
        """Take in how an object is now, so that who looks next sees it."""
        there = await collection.get(href)
        if there is None:
            await self._note(href, None)
            return CalendarWrite(None)
        known = (await self._book.known(self._name)).mirror
        window = known.window if known else CalendarWindow.around(now)
        (found,) = await objects_apart([there], window)
        await self._note(href, found)
        return CalendarWrite(found)

    async def _note(self, href: str, found: CalendarObject | None) -> None:
        """Put what was read into what is known. Whoever keeps the calendar finds the same."""
        known = (await self._book.known(self._name)).mirror
        if known is not None:
            others = tuple(one for one in known.objects if one.href != href)
            objects = others if found is None else (*others, found)
            await self._keep(replace(known, objects=objects))
        self._book.wake(self._name)

    async def _keep(self, known: Mirror) -> None:
        """Store what is known; where it can't be, whoever keeps the calendar says so."""
        path = mirror.path_of(self._book.home, self._name, self._section)
        with contextlib.suppress(OSError):
            await asyncio.to_thread(mirror.store, path, known)
