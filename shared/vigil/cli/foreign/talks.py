"""Conversations of other agents, as they are taken in. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from vigil.marks.conversation_label import TITLE_LENGTH_MAX
from vigil.subjects import token_of

TEXT_MAX: Final = 15_000
"""Characters of one message: a longer one becomes several, each less than may be said."""
PART_MAX: Final = 40
PART_SIZE_MAX: Final = 100_000
"""Messages, and their characters, that are sent at once."""
ID_KEPT: Final = 180
"""Characters of an id that one of its own begins with."""
SECONDS_MAX: Final = 1e11
"""A larger number counts milliseconds: as seconds it would be after the year 5000."""
_ROLES: Final = {"user": "user", "assistant": "agent"}


class ForeignTalk(NamedTuple):
    """A conversation, with what was said in it by a person or the agent."""

    id: str
    title: str
    messages: list[dict[str, Any]]
    unread: tuple[int, ...] = ()
    """The lines of its file that can't be read, from 1."""


def thread_of(origin: str, id_: str) -> str:
    """Return the thread that a conversation gets.

    >>> thread_of("hermes", "20260301_090000_1f")
    'hermes-e2719666ccbc'
    """
    return f"{origin}-{token_of(id_)[:12]}"


def said(id_: str, role: Any, content: Any, at: datetime | None) -> Iterator[dict[str, Any]]:
    """Yield what somebody said, as messages; nothing, if it's a call of a tool or what that gave.

    Args:
        at: when; None: that can't be read.

    >>> at = instant(1772355600)
    >>> [one["text"] for one in said("1", "user", [{"type": "text", "text": "hi"}], at)]
    ['hi']
    >>> list(said("2", "toolResult", "42", at))
    []
    """
    text = _text(content).strip()
    if role not in _ROLES or not text:
        return
    for number, start in enumerate(range(0, len(text), TEXT_MAX)):
        part = text[start : start + TEXT_MAX].replace("\0", "")
        if part.strip():
            name = id_ if number == 0 else f"{id_}-{number + 1}"
            when = None if at is None else at.isoformat()
            yield {"id": name[-200:], "role": _ROLES[role], "text": part, "at": when}


def _text(content: Any) -> str:
    if isinstance(content, str) and content.startswith('[{"'):
        try:
            content = decoded(content)
        except ValueError:
            return str(content)
    if isinstance(content, list):
        parts = (one.get("text") for one in content if isinstance(one, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def instant(value: Any) -> datetime | None:
    """Return an instant of ISO 8601, or of seconds or milliseconds since 1970; None: it is none.

    >>> instant("2026-03-01T09:00:00Z") == instant(1772355600) == instant(1772355600000)
    True
    """
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > SECONDS_MAX else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def parts(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the messages in parts that are small enough to be sent, each with the place of its
    first, from 1."""
    start, size = 0, 0
    for place, one in enumerate(messages):
        if place > start and (place - start == PART_MAX or size + len(one["text"]) > PART_SIZE_MAX):
            yield start + 1, list(messages[start:place])
            start, size = place, 0
        size += len(one["text"])
    if messages:
        yield start + 1, list(messages[start:])


def decoded(text: str) -> Any:
    r"""Return what JSON says. Programs that cut a text between the halves of a character write half
    of it, which no text is: it becomes the sign of what can't be shown.

    Raises: ValueError, it's no JSON, or is nested without end.

    >>> decoded('["cut \\ud83d"]') == ["cut \ufffd"]
    True
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except msgspec.DecodeError:
        plain = json.dumps(json.loads(text), ensure_ascii=False)
    return json.loads(plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def lines_of(text: str) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    r"""Return the lines that are JSON objects, and which are none, from 1. The last may be cut, and
    counts as neither. Only what ends lines of JSON ends one: a text may hold other separators.

    >>> lines_of('{"a": "x\u2028y"}\n{"a\n{}\n{"cut')
    ([{'a': 'x\u2028y'}, {}], (2,))
    """
    found: list[dict[str, Any]] = []
    unread: list[int] = []
    *lines, last = text.split("\n")
    for number, line in enumerate([*lines, last], 1):
        if not line.strip():
            continue
        try:
            one = decoded(line)
        except ValueError:
            one = None
        if isinstance(one, dict):
            found.append(one)
        elif number <= len(lines):
            unread.append(number)
    return found, tuple(unread)


def dated(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with a time each: one that has none was said with the one before it, or
    with the first one that has. Where none has, nothing is left.

    >>> [one["at"] for one in dated([{"at": None}, {"at": "2026-03-01"}, {"at": None}])]
    ['2026-03-01', '2026-03-01', '2026-03-01']
    """
    messages = list(messages)
    at = next((one["at"] for one in messages if one["at"] is not None), None)
    if at is None:
        return []
    found = []
    for one in messages:
        at = one["at"] or at
        found.append(one | {"at": at})
    return found


def whole(talks: Iterable[ForeignTalk]) -> Iterator[ForeignTalk]:
    """Yield those in which something was said. What is there twice comes once; what has another
    one's id, or none, gets one of its own.

    >>> said = [{"id": "a", "text": "x"}, {"id": "a", "text": "x"}, {"id": "a", "text": "y"}]
    >>> [[one["id"] for one in talk.messages] for talk in whole([ForeignTalk("1", "", said)])]
    [['a', 'a~2']]
    """
    for talk in talks:
        known: dict[str, dict[str, Any]] = {}
        for one in talk.messages:
            own, count = one, 1
            while known.get(own["id"], own) != own:
                count += 1
                own = one | {"id": f"{one['id'][:ID_KEPT]}~{count}"}
            known[own["id"]] = own
        if known:
            title = " ".join(talk.title.split())[:TITLE_LENGTH_MAX]
            yield talk._replace(title=title, messages=list(known.values()))
