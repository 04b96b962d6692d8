"""A feed that is watched: its entries are known by their ids, and new ones are the difference."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
from datetime import datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

import msgspec

from vigil.contracts.board import LastSeen, WatchedFeed
from vigil.errors import InvalidInput
from vigil.facts.observed import Observation
from vigil.processes.process import start
from vigil.timetable.probe import TEXT_LENGTH_MAX
from vigil.watching.watched import what_of

from ..own_tools.http_get import HTML, Fetcher, Page
from ..sandbox.box import python
from . import feed_entries
from .page import UNCHANGED_STATUS, again, fetched, unchanged
from .result import ProbeResult, shortened

READ_S: Final = 15.0
"""Processor time has its own limit; this is for a machine that has none to give."""
KNOWN_MAX: Final = 1_000
"""FeedContent that are known: those that are there, then those that were before."""


class FeedEntry(msgspec.Struct, frozen=True):
    """An entry of a feed."""

    id: str
    """What tells it from others, 12 hex digits."""
    title: str
    link: str
    at: str
    """When it was made, as the feed has it."""
    text: str
    made_at: str = ""
    """The same in UTC; empty: the feed says no instant."""


class FeedContent(msgspec.Struct, frozen=True):
    """What a feed holds."""

    version: str
    """Empty: it's no feed."""
    entries: tuple[FeedEntry, ...]
    """The newest first."""


async def probe(
    fetcher: Fetcher, kind: str, watch: WatchedFeed, before: LastSeen | None
) -> ProbeResult:
    """Look at a feed for a session of that kind.

    Raises:
        InvalidInput: it may not be reached, or is no feed.
        zlib.error, FAILURES: as of `Fetcher.fetch_if_changed`.
    """
    page = await fetched(fetcher, kind, watch.url, before)
    digest = hashlib.sha256(page.body).hexdigest()
    if before is not None and (page.status == UNCHANGED_STATUS or digest == before.digest):
        observation = unchanged(page)._replace(newest=None)  # of the document, and not of an entry
        return ProbeResult(again(before, page), is_tainted=False, observation=observation)
    there = await read(page)
    known = {} if before is None else before.parts
    parts = dict.fromkeys((one.id for one in there), "")
    parts |= dict.fromkeys([one for one in known if one not in parts], "")
    seen = LastSeen(
        what=what_of(watch),
        etag=page.etag if page.is_whole else "",
        modified=page.modified if page.is_whole else "",
        digest=digest,
        text=fetcher.hidden(words_of(there))[:TEXT_LENGTH_MAX],
        parts=dict(list(parts.items())[:KNOWN_MAX]),
    )
    fresh = [] if before is None else [one for one in there if one.id not in known]
    change = shortened(fetcher.hidden(words_of(fresh)))
    made_at = [datetime.fromisoformat(one.made_at) for one in there if one.made_at]
    observation = Observation(
        changed=bool(fresh), new=len(fresh), status=page.status, newest=max(made_at, default=None)
    )
    return ProbeResult(
        seen, change, is_tainted=False, is_moved=page.url != watch.url, observation=observation
    )


def words_of(entries: list[FeedEntry]) -> str:
    """Return entries as text, a paragraph each."""
    shown = (filter(None, (one.title, one.at, one.link, one.text)) for one in entries)
    return "\n\n".join("\n".join(lines) for lines in shown)


async def read(page: Page) -> list[FeedEntry]:
    """Return the entries of a feed, the newest first; of one that was cut not the last.

    Raises:
        InvalidInput: it's no feed, or can't be read in time.
    """
    found = importlib.util.find_spec("feedparser")
    if found is None or found.origin is None:
        raise InvalidInput("feed", "can't be read: feedparser isn't installed")
    folder = Path(found.origin).parent.parent
    words = [str(python()), "-I", "-S", str(Path(feed_entries.__file__)), str(folder)]
    process = await start(
        *words, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, start_new_session=True
    )
    kind = f"{page.type}; charset={page.charset}" if page.charset else page.type
    head = f"{page.url}\n{kind}\n".encode("utf-8", "replace")
    try:
        async with asyncio.timeout(READ_S):
            told, _ = await process.communicate(head + page.body)
    except TimeoutError:
        raise InvalidInput("feed", "can't be read in time") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == feed_entries.BROKEN:
        raise InvalidInput("feed", "can't be read: something in it is broken")
    if process.returncode:
        raise InvalidInput("feed", "can't be read: it takes too long or too much memory")
    entries = msgspec.json.decode(told, type=FeedContent)
    if not entries.version:
        what = "an HTML page" if page.type in HTML else page.type or "of no type"
        raise InvalidInput("url", f"leads to no feed, RSS or Atom: it is {what}")
    return list(entries.entries if page.is_whole else entries.entries[:-1])
