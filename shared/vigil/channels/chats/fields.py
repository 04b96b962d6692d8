"""Fields of what a network tells, which may have any form: what isn't as it should be isn't there.
Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

_HALF: Final = re.compile("[\ud800-\udfff]")
"""What is no character by itself, and can't be stored."""


def dict_in(data: Any, *path: str) -> dict[str, Any]:
    """Return the object at the end of a path; empty: there is none.

    >>> dict_in({"chat": {"id": 1}}, "chat"), dict_in({"chat": "me"}, "chat", "id")
    ({'id': 1}, {})
    """
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def dicts_in(data: Any, *path: str) -> list[dict[str, Any]]:
    """Return the objects of the list at the end of a path.

    >>> dicts_in({"files": [{"id": 1}, "me"]}, "files"), dicts_in({"files": {}}, "files")
    ([{'id': 1}], [])
    """
    *way, last = path
    found = dict_in(data, *way).get(last)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text_in(data: Any, *path: str) -> str:
    """Return the text at the end of a path, in which all can be stored; empty: there is none.

    >>> text_in({"chat": {"type": "private"}}, "chat", "type"), text_in([], "chat")
    ('private', '')
    """
    *way, last = path
    found = dict_in(data, *way).get(last)
    return _HALF.sub("\ufffd", found) if isinstance(found, str) else ""


def instant_of(epoch_s: float) -> datetime | None:
    """Return an instant as networks tell it; None: it's of no time.

    >>> instant_of(0), instant_of(1e300)
    (datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), None)
    """
    try:
        return datetime.fromtimestamp(epoch_s, UTC)
    except (OverflowError, OSError, ValueError):
        return None
