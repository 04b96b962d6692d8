"""What comes to a mailbox that nobody would have written: nothing is lost by it, and it's said."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.examples import repeats
from tests.support.mail_servers import HOST, MailServers, running_mail_servers
from tests.support.mailing import CHANNEL, running_mail_world, until_heard
from tests.support.world import World
from vigil.channels.mail import listener
from vigil.clock import SystemClock
from vigil.contracts import UserMessage, decode_event

MANY: Final = repeats(300, fast=40)
PARTS: Final = 'Content-Type: multipart/mixed; boundary="x"\r\n\r\n'


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


def heard(world: World) -> list[str]:
    """Return what became messages, in the order of each thread."""
    talks = [talk for key, talk in world._talks.items() if key.thread.startswith("mail-")]
    events = [
        decode_event(m.data) for talk in talks for m in talk.log if m.subject == talk.key.in_user
    ]
    return [event.payload.text for event in events if isinstance(event, UserMessage)]


def nested(depth: int) -> str:
    """Return parts in parts."""
    begun = (
        f'Content-Type: multipart/mixed; boundary="b{n}"\r\n\r\n--b{n}\r\n' for n in range(depth)
    )
    ended = (f"--b{n}--\r\n" for n in reversed(range(depth)))
    return "".join([*begun, "Content-Type: text/plain\r\n\r\ndeep down\r\n", *ended])


@pytest.mark.repeated
async def test_what_nobody_would_write_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """X-6: hundreds at once of a stranger, 27 MB, 200 parts deep, 5,000 parts, 4 MB in one line,
    charsets nobody knows, no Date, two From, a report without end: each is read as far as it can
    be, and what comes behind is heard."""
    read: list[tuple[int, int]] = []
    whole = listener._OpenMailbox._whole

    async def counted(one: Any, seen: Any, bytes_max: int = 0) -> Any:
        read.append((seen.size, bytes_max))
        return await whole(one, seen, bytes_max)

    monkeypatch.setattr(listener._OpenMailbox, "_whole", counted)
    async with running_mail_world(tmp_path, monkeypatch, servers, clock=SystemClock()) as (
        world,
        ann,
    ):
        vouched = f"Authentication-Results: {HOST}; dmarc=pass header.from=b.example\r\n"
        to = f"To: {ann.to}\r\n"

        def hers(number: int, rest: str) -> bytes:
            head = f"{vouched}From: {ann.address}\r\n{to}Message-ID: <{number}@b.example>\r\n"
            return (head + rest).encode("latin-1")

        strangers = (
            f"From: mal@c.example\r\n{to}Message-ID: <{n}@c.example>\r\n\r\nhi\r\n"
            for n in range(MANY)
        )
        zipped = base64.encodebytes(os.urandom(20 * 1024**2)).decode()
        text, end = "--x\r\nContent-Type: text/plain\r\n\r\n{}\r\n", "--x--\r\n"
        large = "--x\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        mails = [
            hers(1, PARTS + text.format("large") + large + zipped + text.format("end") + end),
            hers(2, nested(200)),
            hers(3, PARTS + text.format("part") * 5000 + end),
            hers(4, "\r\n" + "word " * 800_000),
            hers(
                5,
                "Subject: =?x-none?b?/w==?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\n"
                "Gr\xfc\xdfe",
            ),
            hers(6, "From: bob@b.example\r\n\r\ntwo From\r\n"),
            hers(7, f"Return-Path: <>\r\n{PARTS}" + "x" * 2_000_000),
            hers(8, "\r\nthe last\r\n"),
        ]
        servers.drop(ann.to_box, *(one.encode() for one in strangers), *mails)
        await world.until(lambda: "the last" in heard(world))

        found = {one.split("\n")[0]: one for one in heard(world)}
        assert len(found) == len(heard(world)) == 6
        assert found["large"].endswith("the first 26214 were read]")
        assert "[attached, not taken: a file, " in found["large"]
        assert found["deep down"] == "deep down"
        assert found["part"].endswith("[can't be read: parts that lie too deep, or are too many]")
        assert next(one for one in heard(world) if one.startswith("word")).endswith(
            "in the mailbox]"
        )
        assert "Subject: \ufffd" in found

        facts = await until_heard(world)
        await world.until(lambda: until_counted(world) == MANY + 2)
        assert (facts["refused"], facts["problem"]) == (0, "")
        assert [limit for size, limit in read if size > 1_900_000 and limit] == [256 * 1024]
        assert not any(b"Seen" in one for one in servers.flags(ann.to_box))
        # Beside these there may be reports of what was answered.
        assert len(servers.flags(ann.to_box)) >= MANY + 8


def until_counted(world: World) -> int:
    facts: dict[str, Any] = world.stack.contexts["gateway"].facts["hears"][CHANNEL]
    return int(facts["outside"])
