"""The instants that a page shows, and whether they are on its reader's clocks."""

from __future__ import annotations

import html.parser
import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

EXACT: Final = frozenset({"code", "pre", "textarea", "style", "title"})
"""What shows a record, or what somebody wrote, exactly as it is."""
STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]|\b\d\d:\d\d\b")
BY_THE_WALL: Final = re.compile(r"(: )?At \d\d:\d\d .*\([\w/]+\)|(.*, )?as \d\d:\d\d.*", re.DOTALL)
"""When a row is due, with the zone whose wall says so; and how a field is filled in."""
_CLOCK: Final = re.compile(r"\d\d:\d\d")


class PageTimes(html.parser.HTMLParser):
    """What of a page is an instant.

    Args:
        zone: the reader's.
    """

    def __init__(self, source: str, zone: str) -> None:
        super().__init__()
        self.count = 0
        """Elements `time`."""
        self.wrong: list[str] = []
        """Elements that show another instant than they name, and stamps outside of such."""
        self._zone = ZoneInfo(zone)
        self._open: list[str] = []
        self._at = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "input", "br", "img"):
            self._open.append(tag)
        if tag == "time":
            self.count += 1
            self._at = dict(attrs).get("datetime") or ""

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if not EXACT.isdisjoint(self._open):
            return
        if "time" not in self._open:
            text = data.strip()
            if STAMP.search(text) and not BY_THE_WALL.fullmatch(text):
                self.wrong.append(text)
            return
        at = datetime.fromisoformat(self._at).astimezone(self._zone)
        clock = _CLOCK.search(data)
        day = f"{at:%d %b}" in data or (clock is not None and clock[0] == data.strip())
        if not day or (clock is not None and clock[0] != f"{at:%H:%M}"):
            self.wrong.append(f"{self._at} as {data}")
