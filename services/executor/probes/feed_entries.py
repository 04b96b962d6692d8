"""Feed to entries, as a program: it reads the address of a feed, a line feed, its content type, a
line feed and the feed, and writes JSON.

A feed is written by a stranger. So it is parsed by a process of its own that has little time and
memory (``python -I -S feed_entries.py FOLDER``: where feedparser is).
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import resource
import sys
from datetime import UTC, datetime
from typing import Any, Final

CPU_S: Final = 8
MEMORY_BYTES: Final = 512 * 1024 * 1024
ENTRIES_MAX: Final = 500
"""The newest, if all tell when they were made; else the first."""
TITLE_LENGTH_MAX: Final = 300
LINK_LENGTH_MAX: Final = 1_000
TEXT_LENGTH_MAX: Final = 500
BROKEN: Final = 3
"""How the program ends where the parser fails at what a feed holds."""
PARSER_FAILURES: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_TAG: Final = re.compile(r"<[^>]{0,2000}>")


def entries_of(body: bytes, url: str, kind: str) -> dict[str, Any]:
    """Return what kind of feed it is, empty if it's none, and its entries, the newest first."""
    import feedparser

    headers = {"content-type": kind, "content-location": url}
    found = feedparser.parse(io.BytesIO(body), response_headers=headers)
    entries = list(found.entries)
    times = [one.get("published_parsed") or one.get("updated_parsed") for one in entries]
    if all(times):
        order = sorted(range(len(entries)), key=lambda at: times[at][:6], reverse=True)
        entries = [entries[at] for at in order]
    return {
        "version": found.get("version", ""),
        "entries": [entry_of(one) for one in entries[:ENTRIES_MAX]],
    }


def entry_of(found: Any) -> dict[str, str]:
    """Return what is kept of an entry: one without an id is known by its link, or by its text."""
    title = line_of(found.get("title", ""))[:TITLE_LENGTH_MAX]
    link = str(found.get("link", ""))
    text = line_of(found.get("summary", ""))
    id_ = str(found.get("id", "")) or link or f"{title}\n{text}"
    return {
        "id": hashlib.sha256(id_.encode("utf-8", "replace")).hexdigest()[:12],
        "title": title,
        "link": link[:LINK_LENGTH_MAX],
        "at": line_of(found.get("published", "") or found.get("updated", ""))[:100],
        "text": text[:TEXT_LENGTH_MAX],
        "made_at": utc_of(found.get("published_parsed") or found.get("updated_parsed")),
    }


def utc_of(parsed: Any) -> str:
    """Return a time that feedparser read, which is UTC; empty: it is none.

    >>> utc_of((2026, 11, 20, 8, 30, 0, 4, 324, 0))
    '2026-11-20T08:30:00+00:00'
    """
    try:
        year, month, day, hour, minute, second = parsed[:6]
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).isoformat()
    except (TypeError, ValueError):
        return ""


def line_of(text: object) -> str:
    """Return what HTML shows as one line.

    >>> line_of("<p>Two &amp;\\n three</p>")
    'Two & three'
    """
    return " ".join(html.unescape(_TAG.sub(" ", str(text))).split())


def main() -> None:
    """Read, convert, write."""
    sys.path.append(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    url, kind, body = sys.stdin.buffer.read().split(b"\n", 2)
    try:
        told = entries_of(body, url.decode("utf-8", "replace"), kind.decode("utf-8", "replace"))
    except PARSER_FAILURES:
        sys.exit(BROKEN)
    sys.stdout.buffer.write(json.dumps(told).encode())


if __name__ == "__main__":
    main()
