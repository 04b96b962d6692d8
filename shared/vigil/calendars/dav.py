"""CalDAV (RFC 4791, 6578), as much as is needed: what has changed, and conditional changes.

Four requests. PROPFIND of the collection tells whether anything changed (its sync token, or ctag);
REPORT sync-collection what, where the server does that, else PROPFIND of all etags; REPORT
calendar-multiget fetches it. PUT and DELETE carry the ETag of what was read: who was faster isn't
overwritten. A sync token that its server doesn't know any more leads to a look at all etags.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

from .entries import RawObject
from .places import CalendarProblem, CalendarServer, PasswordRefused, ServerReply, said

DAV: Final = "{DAV:}"
CAL: Final = "{urn:ietf:params:xml:ns:caldav}"
CS: Final = "{http://calendarserver.org/ns/}"
XML: Final = {"content-type": "application/xml; charset=utf-8"}
CALENDAR_TYPE: Final = "text/calendar; charset=utf-8"
FETCHED_AT_ONCE: Final = 100
ROUNDS_MAX: Final = 1_000
"""Pieces in which a server may tell what changed."""
MULTI_STATUS: Final = 207
SYNC_TOKEN, CTAG = "sync-token", "ctag"

_STATE: Final = (
    b'<?xml version="1.0" encoding="utf-8"?><d:propfind xmlns:d="DAV:" '
    b'xmlns:cs="http://calendarserver.org/ns/"><d:prop><d:resourcetype/><d:sync-token/>'
    b"<cs:getctag/></d:prop></d:propfind>"
)
_ETAGS: Final = (
    b'<?xml version="1.0" encoding="utf-8"?><d:propfind xmlns:d="DAV:"><d:prop><d:getetag/>'
    b"<d:resourcetype/></d:prop></d:propfind>"
)
_CHANGES: Final = (
    '<?xml version="1.0" encoding="utf-8"?><d:sync-collection xmlns:d="DAV:"><d:sync-token>{token}'
    "</d:sync-token><d:sync-level>1</d:sync-level><d:prop><d:getetag/></d:prop>"
    "</d:sync-collection>"
)
_FETCH: Final = (
    '<?xml version="1.0" encoding="utf-8"?><c:calendar-multiget xmlns:d="DAV:" '
    'xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop><d:getetag/><c:calendar-data/></d:prop>'
    "{hrefs}</c:calendar-multiget>"
)


class DavChanges(NamedTuple):
    """What is otherwise than it was known."""

    marks: dict[str, str]
    """What tells the next look whether anything has changed since this one."""
    fetched: tuple[RawObject, ...]
    gone: frozenset[str]
    """Of those that were known."""


class ChangedElsewhere(CalendarProblem):
    """Somebody else changed it first."""


class _Row(NamedTuple):
    href: str
    status: int
    element: ET.Element

    def text(self, name: str) -> str:
        return (self.element.findtext(f".//{name}") or "").strip()

    def has(self, name: str) -> bool:
        return self.element.find(f".//{name}") is not None


class Collection:
    """One collection of a server."""

    def __init__(self, server: CalendarServer) -> None:
        self._server = server
        self._path = unquote(urlsplit(server.url).path)

    async def changes(
        self, marks: Mapping[str, str], known: Mapping[str, str]
    ) -> DavChanges | None:
        """Return what has changed since; None: nothing.

        Args:
            marks: of the look before.
            known: the etag of each object, by its path.

        Raises:
            CalendarProblem: it can't be told now.
        """
        now = await self._marks()
        if any(now.values()) and dict(marks) == now:
            return None
        synced = None
        if marks.get(SYNC_TOKEN) and now[SYNC_TOKEN]:
            synced = await self._synced(marks[SYNC_TOKEN])
        if synced is None:
            etags = await self._etags()
            gone = frozenset(known.keys() - etags.keys())
        else:
            etags, removed = synced
            gone = frozenset(known.keys() & removed)
        wanted = [href for href, etag in etags.items() if not etag or known.get(href) != etag]
        fetched, missing = await self._fetch(wanted)
        return DavChanges(now, fetched, gone | (missing & known.keys()))

    async def _marks(self) -> dict[str, str]:
        reply = await self._server.ask("PROPFIND", headers={**XML, "depth": "0"}, content=_STATE)
        row = next(_rows(reply), None)
        if row is None or not row.has(f"{CAL}calendar"):
            raise CalendarProblem(
                "at that address is no calendar collection: an address that leads to one is wanted"
            )
        return {SYNC_TOKEN: row.text(f"{DAV}sync-token"), CTAG: row.text(f"{CS}getctag")}

    async def _synced(self, token: str) -> tuple[dict[str, str], frozenset[str]] | None:
        """Return the etags of what changed, and what went; None: its server can't tell."""
        etags: dict[str, str] = {}
        removed: set[str] = set()
        for _ in range(ROUNDS_MAX):
            asked = _CHANGES.format(token=escape(token)).encode()
            headers = {**XML, "depth": "0"}
            reply = await self._server.ask("REPORT", headers=headers, content=asked)
            if reply.status != MULTI_STATUS:
                return None  # it forgot the token, or does no such report
            is_cut = False
            for row in _rows(reply):
                if row.href == self._path:
                    is_cut = is_cut or row.status == 507
                elif row.status == 404:
                    removed.add(row.href)
                    etags.pop(row.href, None)
                else:
                    etags[row.href] = row.text(f"{DAV}getetag")
                    removed.discard(row.href)
            following = (_tree(reply).findtext(f"{DAV}sync-token") or "").strip()
            if not is_cut:
                return etags, frozenset(removed)
            if not following or following == token:
                return None
            token = following
        return None

    async def _etags(self) -> dict[str, str]:
        reply = await self._server.ask("PROPFIND", headers={**XML, "depth": "1"}, content=_ETAGS)
        return {
            row.href: row.text(f"{DAV}getetag")
            for row in _rows(reply)
            if row.href != self._path and not row.has(f"{DAV}collection")
        }

    async def _fetch(self, hrefs: Sequence[str]) -> tuple[tuple[RawObject, ...], frozenset[str]]:
        """Return objects as they are, and which of them aren't there any more."""
        found: list[RawObject] = []
        missing: set[str] = set()
        for at in range(0, len(hrefs), FETCHED_AT_ONCE):
            some = hrefs[at : at + FETCHED_AT_ONCE]
            named = "".join(f"<d:href>{escape(quote(one))}</d:href>" for one in some)
            asked = _FETCH.format(hrefs=named).encode()
            reply = await self._server.ask("REPORT", headers={**XML, "depth": "1"}, content=asked)
            there = {row.href: row for row in _rows(reply)}
            for href in some:
                row = there.get(href)
                data = "" if row is None else row.text(f"{CAL}calendar-data")
                if row is None or row.status == 404 or not data:
                    missing.add(href)
                else:
                    found.append(RawObject(href=href, etag=row.text(f"{DAV}getetag"), data=data))
        return tuple(found), frozenset(missing)

    # ------------------------------------------------------------ one object

    def href_of(self, name: str) -> str:
        """Return where an object of that name is, or would be."""
        return f"{self._path}{name}"

    async def get(self, href: str) -> RawObject | None:
        """Return an object as it is; None: there is none. Raises: CalendarProblem."""
        reply = await self._server.ask("GET", quote(href))
        if reply.status in (404, 410):
            return None
        if reply.status != 200:
            raise CalendarProblem(said(reply))
        data = reply.body.decode("utf-8", "replace")
        return RawObject(href=href, etag=reply.headers.get("etag", ""), data=data)

    async def put(self, href: str, data: bytes, *, expect: str | None) -> None:
        """Store an object, if it is as expected.

        Args:
            expect: the ETag of what it takes the place of; None: there must be none.

        Raises:
            ChangedElsewhere: it isn't.
            CalendarProblem: it's not known whether it was stored.
        """
        condition = {"if-none-match": "*"} if expect is None else {"if-match": expect}
        headers = {"content-type": CALENDAR_TYPE, **condition}
        reply = await self._server.ask("PUT", quote(href), headers=headers, content=data)
        _check_done(reply)

    async def delete(self, href: str, *, expect: str) -> None:
        """Remove an object, if it is as expected. Raises: as `put`."""
        reply = await self._server.ask("DELETE", quote(href), headers={"if-match": expect})
        if reply.status not in (404, 410):
            _check_done(reply)


def _check_done(reply: ServerReply) -> None:
    if reply.status in (409, 412):
        raise ChangedElsewhere("it was changed since it was read")
    if reply.status == 403:
        raise PasswordRefused("403: its server doesn't let that be changed", "")
    if not 200 <= reply.status < 300:
        raise CalendarProblem(said(reply))


# ---------------------------------------------------------------- XML


def _tree(reply: ServerReply) -> ET.Element:
    """Raises: CalendarProblem: it's no answer of WebDAV."""
    if reply.status != MULTI_STATUS:
        raise CalendarProblem(said(reply))
    try:
        text = reply.body.decode("utf-8-sig")
        if "<!" in text.replace("<![CDATA[", "").replace("<!--", ""):
            raise CalendarProblem("its server's answer declares entities, and isn't read")
        parser: Any = ET.XMLPullParser(["start"])
        parser.feed(text)
        parser.close()
        _, root = next(iter(parser.read_events()))
    except (ET.ParseError, ValueError, StopIteration) as error:
        raise CalendarProblem("its server's answer is no XML") from error
    if not isinstance(root, ET.Element):
        raise AssertionError("a start is of an element")
    return root


def _rows(reply: ServerReply) -> Iterator[_Row]:
    for element in _tree(reply).iter(f"{DAV}response"):
        href = unquote(urlsplit((element.findtext(f"{DAV}href") or "").strip()).path)
        status = element.findtext(f"{DAV}status") or ""
        numbers = [part for part in status.split() if part.isdigit()]
        # A property that isn't there has a status of its own, which says nothing of the object.
        found = next(
            (
                one
                for one in element.iter(f"{DAV}propstat")
                if " 200 " in f"{one.findtext(f'{DAV}status') or ''} "
            ),
            ET.Element("none"),
        )
        yield _Row(href, int(numbers[0]) if numbers else 200, found)
