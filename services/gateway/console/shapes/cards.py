"""What tools did in a part of a conversation, for cards between its messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ...http.wire import TimelineRecord
from ..text import clip

GIST_MAX: Final = 120
INPUT_MAX: Final = 800
"""Characters of arguments; the record itself has them whole."""


class ToolCard(msgspec.Struct, kw_only=True):
    """A call of a tool, and what came of it."""

    seq: int
    """Of the turn that called it."""
    name: str
    input: str
    """As JSON, cut to what a card holds."""
    gist: str = ""
    """What it's called with, in a line."""
    result: str | None = None
    """None: it isn't there yet."""
    is_error: bool = False


def cards_of(records: Iterable[TimelineRecord]) -> list[ToolCard]:
    """Return the calls that turns made, oldest first, with the results that later turns have.

    >>> use = {"type": "tool_use", "id": "1", "name": "clock", "input": {}}
    >>> result = {"type": "tool_result", "tool_use_id": "1", "content": "noon"}
    >>> turns = [TimelineRecord(seq=n, kind="turn", data={"rows": [{"blocks": [block]}]})
    ...          for n, block in enumerate((use, result))]
    >>> [(card.name, card.result) for card in cards_of(turns)]
    [('clock', 'noon')]
    """
    cards: dict[str, ToolCard] = {}
    for record in records:
        if record.kind != "turn" or not isinstance(record.data, dict):
            continue
        for row in record.data.get("rows") or ():
            for block in row["blocks"]:
                _take(cards, record.seq, block)
    return list(cards.values())


def _written(given: Any) -> str:
    return clip(msgspec.json.format(msgspec.json.encode(given), indent=2).decode(), INPUT_MAX)


def gist_of(given: Any) -> str:
    """Return arguments in a line: the only one, or each with its name; what has parts as JSON.

    >>> gist_of({"command": "df -h"}), gist_of({"query": "tea", "limit": 3})
    ('df -h', 'query: tea, limit: 3')
    >>> gist_of({"to": ["a@b.org"]})
    '{"to":["a@b.org"]}'
    """
    values = list(given.values()) if isinstance(given, dict) else []
    if len(values) == 1 and isinstance(values[0], str):
        text = values[0]
    elif values and all(isinstance(one, str | int | float) for one in values):
        text = ", ".join(f"{name}: {one}" for name, one in given.items())
    else:
        text = msgspec.json.encode(given).decode()
    return clip(" ".join(text[: 4 * GIST_MAX].split()), GIST_MAX)


def _take(cards: dict[str, ToolCard], seq: int, block: dict[str, Any]) -> None:
    match block:
        case {"type": "tool_use", "id": id_, "name": name, "input": given}:
            card = ToolCard(seq=seq, name=name, input=_written(given), gist=gist_of(given))
            cards[id_] = card
        case {"type": "tool_result", "tool_use_id": id_} if id_ in cards:
            cards[id_].result = str(block.get("content", ""))
            cards[id_].is_error = bool(block.get("is_error", False))
