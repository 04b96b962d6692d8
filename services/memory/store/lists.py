"""Lists of memories, a page at a time.

A page goes on where the one before ended, by the sort key and the number of its last memory, so
nothing is shown twice or left out because of what is saved meanwhile. The cursor carries the moment
of the first page as well: importance is then that of one moment on all of them. What is accessed
while one pages by accesses may move over a border.
"""

from __future__ import annotations

import base64
import binascii
import sqlite3
from datetime import datetime
from typing import Annotated, Final

import msgspec

from vigil.errors import InvalidInput
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.questions import Sort

from ..rules.instants import instant, micros
from . import views
from .places import Place
from .views import COLUMNS, DECAYED

_INT64: Final = 2**63 - 1
_Integer = Annotated[int, msgspec.Meta(ge=-_INT64, le=_INT64)]
_DAYS_MAX: Final = 2_932_896
"""9999-12-31, from 1970."""
_Moment = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=_DAYS_MAX * 86_400_000_000)]

_KEYS: Final[dict[Sort, str]] = {
    "recent": "m.happened_at",
    "importance": DECAYED,
    "accessed": "m.accesses",
}
"""By what a sort goes, the largest first; then the number."""


class _Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    sort: Sort
    now: _Moment
    key: _Integer | float
    num: _Integer


def page(
    db: sqlite3.Connection, place: Place | None, question: ListMemories, now: datetime
) -> Listed:
    """Return one page. Raises: InvalidInput if `after` isn't a cursor of such a list."""
    cursor = _parse(question) if question.after else None
    if place is None:
        return Listed(memories=())
    moment = now if cursor is None else instant(cursor.now)
    rows = _rows(db, place, question, moment, cursor)
    seen = [views.view(row, views.moment_of(question, moment)) for row in rows]
    shown = views.fitting(seen[: question.limit])
    if len(shown) == len(seen):
        return Listed(memories=tuple(shown))
    last = rows[len(shown) - 1]
    token = _Cursor(question.sort, micros(moment), last[views.WIDTH], last[0])
    return Listed(memories=tuple(shown), next_after=_written(token))


def _rows(
    db: sqlite3.Connection,
    place: Place,
    question: ListMemories,
    now: datetime,
    cursor: _Cursor | None,
) -> list[views.Row]:
    key = _KEYS[question.sort]
    if question.sort == "accessed" and (question.source or question.thread):
        key = f"+{key}"  # Few have that source: find them by it, and not by the order.
    reach: views.Reach = "all" if question.with_ended else "standing"
    condition, params = views.where(place, question, now, reach)
    if cursor is not None:
        condition += f" AND ({key}, m.num) < (:after_key, :after_num)"
        params |= {"after_key": cursor.key, "after_num": cursor.num}
    # Sorted first, and read then: else a sort drags along what isn't shown.
    sql = f"""WITH page (num, key) AS (
            SELECT m.num, {key} AS key FROM memories m WHERE {condition}
            ORDER BY key DESC, m.num DESC LIMIT :limit)
        SELECT {COLUMNS}, page.key FROM page CROSS JOIN memories m ON m.num = page.num
        ORDER BY page.key DESC, page.num DESC"""  # noqa: S608 - all of it is ours
    return db.execute(sql, params | {"limit": question.limit + 1}).fetchall()


def _written(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).rstrip(b"=").decode()


def _parse(question: ListMemories) -> _Cursor:
    padded = question.after + "=" * (-len(question.after) % 4)
    try:
        raw = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        cursor = msgspec.json.decode(raw, type=_Cursor)
    except (binascii.Error, UnicodeEncodeError, msgspec.MsgspecError, ValueError) as error:
        raise InvalidInput("after", "isn't a cursor that a list returned") from error
    if cursor.sort != question.sort:
        raise InvalidInput("after", "is a cursor of another list")
    return cursor
