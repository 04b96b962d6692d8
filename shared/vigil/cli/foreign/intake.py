"""Taking what another agent's home has in, over the API, as the person who takes it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from vigil.sdk.client import ApiError, Client, is_passing

from .home import HomeLine, Reading, Unread
from .talks import parts, thread_of

EXPIRES_DAYS: Final = 0.05
"""Of the token that an admin takes things in with, should ending it fail: an hour and some."""
PAGE: Final = 200
"""Memories that are asked for at once."""


class TakenCount(msgspec.Struct, kw_only=True):
    """What became of a kind."""

    taken: int = 0
    known: int = 0
    """They were there already."""


class HomeReport(msgspec.Struct, kw_only=True):
    """What was taken of a home, and what wasn't, and why."""

    taken: dict[str, TakenCount] = msgspec.field(default_factory=dict)
    left: list[Unread] = msgspec.field(default_factory=list)
    kept: dict[str, str] = msgspec.field(default_factory=dict)
    """Files that are known and never taken, and why."""
    replaced: dict[str, str] = msgspec.field(default_factory=dict)
    """What files of the agent said that another's took the place of."""


@contextlib.contextmanager
def speaking_for(client: Client, user: str) -> Iterator[Client]:
    """Yield a client that may do what that person may, and nothing more. Whoever isn't them has to
    be an admin, who makes a token for it, which is ended afterwards.

    Args:
        user: empty: the caller.

    Raises: ApiError with status 403, it's neither.
    """
    me = client.me()
    if not me["is_admin"] and user in ("", me["user"]):
        yield client
        return
    made = client.make_token(user or me["user"], name="import", expires_days=EXPIRES_DAYS)
    try:
        yield Client(client.url, made["token"])
    finally:
        client.end_token(made["id"])


def take(client: Client, agent: str, found: Reading, report: HomeReport) -> None:
    """Take what a home has; what is there already is left alone.

    Raises: ApiError, Unavailable: it can be done again.
    """
    report.left += found.left
    report.kept |= found.kept
    _each("memories", found.lines["memories"], _memories(client, agent), report)
    _each("rows", found.lines["rows"], _rows(client, agent), report)
    talks = found.lines["conversations"]
    _each("conversations", talks, _conversations(client, agent, found.form), report)


def _each(
    kind: str, lines: Iterable[HomeLine], work: Callable[[HomeLine], bool], report: HomeReport
) -> None:
    count = report.taken.setdefault(kind, TakenCount())
    for line in lines:
        try:
            is_new = work(line)
        except ApiError as error:
            if error.status in (401, 403) or is_passing(error):
                raise
            report.left.append(Unread(file=line.file, line=line.number, why=str(error)))
        else:
            count.taken += is_new
            count.known += not is_new


def _memories(client: Client, agent: str) -> Callable[[HomeLine], bool]:
    there = {
        (one["content"], one.get("is_tainted", False))
        for one in client.memories(agent=agent, page_size=PAGE)
    }

    def work(line: HomeLine) -> bool:
        same = (line.value["content"], line.value["is_tainted"])
        if same in there:
            return False
        key = hashlib.sha256(msgspec.json.encode([agent, *same])).hexdigest()[:40]
        saved = client.save_memory(agent=agent, idempotency_key=f"import:{key}", **line.value)
        there.add(same)
        return not saved.get("is_repeat")

    return work


def _conversations(client: Client, agent: str, origin: str) -> Callable[[HomeLine], bool]:
    user = client.me()["user"]

    def work(line: HomeLine) -> bool:
        talk = line.value
        key, new = f"{user}:{agent}:{thread_of(origin, talk['id'])}", 0
        for first, some in parts(talk["messages"]):
            taken = client.take_past(
                key,
                some,
                origin=origin,
                conversation=talk["id"],
                total=len(talk["messages"]),
                first=first,
                title=talk["title"],
                is_trusted=talk["is_trusted"],
            )
            new += taken["new"]
        return new > 0

    return work


def _rows(client: Client, agent: str) -> Callable[[HomeLine], bool]:
    user = client.me()["user"]
    there = {one["name"] for one in client.cron_rows(user=user) if one["owner"] == user}

    def work(line: HomeLine) -> bool:
        body: dict[str, Any] = dict(line.value)
        if body["name"] in there:
            return False
        client.make_cron_row(agent=agent, **body)
        there.add(body["name"])
        return True

    return work
