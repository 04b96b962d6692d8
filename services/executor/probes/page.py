"""A page or document that is watched: asked for with what it was known by, compared as text."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from msgspec.structs import replace

from vigil.contracts.board import LastSeen, WatchedUrl
from vigil.errors import InvalidInput
from vigil.facts.observed import Observation
from vigil.net.ssrf import RequestRefused
from vigil.texts.pointer import at_pointer

from ..own_tools.http_get import HTML, XHTML, Fetcher, Page, is_text, readable_of, text_of
from .result import ProbeResult, compared, difference, seen_of

OK: Final = 200
UNCHANGED_STATUS: Final = 304


async def probe(
    fetcher: Fetcher, kind: str, watch: WatchedUrl, before: LastSeen | None
) -> ProbeResult:
    """Look at a page for a session of that kind. Raises: as of `fetched`."""
    page = await fetched(fetcher, kind, watch.url, before)
    if before is not None and page.status == UNCHANGED_STATUS:
        return ProbeResult(
            again(before, page),
            is_tainted=False,
            is_moved=page.url != watch.url,
            observation=unchanged(page),
        )
    text = fetcher.hidden(await _text(page, watch))
    validators = (page.etag, page.modified) if page.is_whole else ()
    seen = seen_of(watch, text, *validators)
    change = await asyncio.to_thread(difference, before, seen)
    observation = compared(change, text_of(page) if page.is_whole and is_text(page) else None)
    observation = observation._replace(status=page.status, newest=modified_at(page))
    return ProbeResult(
        seen, change, is_tainted=False, is_moved=page.url != watch.url, observation=observation
    )


class AnsweredOtherwise(RequestRefused):
    """There was an answer, and not what is watched."""

    def __init__(self, page: Page) -> None:
        super().__init__("url", f"answers {page.status} {page.reason}".strip())
        self.status = page.status


def unchanged(page: Page) -> Observation:
    """Return what a look came to that read nothing: all is there, and as it was."""
    return Observation(status=OK, newest=modified_at(page), is_same=True)


def modified_at(page: Page) -> datetime | None:
    """Return when a page says that it changed last; None: it doesn't, or not as HTTP has it."""
    try:
        return parsedate_to_datetime(page.modified) if page.modified else None
    except ValueError:
        return None


async def fetched(fetcher: Fetcher, kind: str, url: str, before: LastSeen | None) -> Page:
    """Return what is there now; or, of what was seen before, only that nothing has changed.

    Raises:
        InvalidInput: it may not be reached, or answers something else.
        zlib.error, FAILURES: as of `Fetcher.fetch_if_changed`.
    """
    page = await fetcher.fetch_if_changed(url, kind, _conditions(before))
    if page.status != OK and (before is None or page.status != UNCHANGED_STATUS):
        raise AnsweredOtherwise(page)
    return page


def _conditions(seen: LastSeen | None) -> dict[str, str]:
    """Return the headers that have a server say only that nothing has changed (RFC 9110)."""
    if seen is None:
        return {}
    given = {"if-none-match": seen.etag, "if-modified-since": seen.modified}
    return {name: value for name, value in given.items() if value}


def again(seen: LastSeen, page: Page) -> LastSeen:
    """Keep what was seen: it works, and nothing has changed."""
    return replace(
        seen,
        etag=page.etag or seen.etag,
        modified=page.modified or seen.modified,
        failures=0,
        retry_at=None,
    )


async def _text(page: Page, watch: WatchedUrl) -> str:
    """Return what counts of a page. Raises: InvalidInput."""
    if watch.pointer:
        if not page.is_whole:
            raise InvalidInput("pointer", "leads into a document that is too long to be read")
        return shown(at_pointer(text_of(page), watch.pointer))
    if not is_text(page):
        return f"[{len(page.body)} bytes that are no text, {hashlib.sha256(page.body).hexdigest()}]"
    text = text_of(page)
    if page.type in HTML:
        return await readable_of(text, page.url, is_xml=page.type == XHTML)
    return text


def shown(value: Any) -> str:
    """Return a JSON value as text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
