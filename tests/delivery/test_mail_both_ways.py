"""E-mail as a channel, against real Postfix and Dovecot, through all services (SPEC D-1 to D-3)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent import ask, follow_up
from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailing import (
    CHANNEL,
    Correspondent,
    running_mail_world,
    text_of,
    until_heard,
)
from tests.support.talk import Talk
from tests.support.world import World
from vigil.contracts import UserMessage, decode_event

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


def threads_of(world: World) -> list[Talk]:
    return [talk for key, talk in world._talks.items() if key.thread.startswith("mail-")]


def heard(talk: Talk) -> list[UserMessage]:
    events = [decode_event(m.data) for m in talk.log if m.subject == talk.key.in_user]
    return [event for event in events if isinstance(event, UserMessage)]


async def test_a_thread_of_three_a_reminder_and_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """D-1, L-14: what ann writes is answered in its thread, in order; what the agent says unasked
    comes as a mail; a stranger gets nothing; the mailbox stays as it is."""
    async with running_mail_world(tmp_path, monkeypatch, servers, prefers=CHANNEL) as (world, ann):
        stranger = Correspondent(servers, int(ann.box[3:]), who="mal")
        await stranger.write("Let me in.", Subject="Hello")
        first = await ann.write("Shall we?\n\n> old\n> older\n", Subject="Grüße: a plan")
        (answer,) = await ann.got(1)
        assert text_of(answer) == "re: Subject: Grüße: a plan\n\nShall we?\n\n[2 quoted lines]"
        assert answer["subject"] == "Re: Grüße: a plan"
        assert answer["in-reply-to"] == first
        assert answer["references"].split()[1:] == [first]
        assert answer["to"] == ann.address
        assert answer["auto-submitted"] == "auto-replied"
        page = answer.get_body(("html",))
        assert page is not None
        (talk,) = await world.until(lambda: threads_of(world))
        assert f"https://vigil.example/console/conversations/{talk.key}" in page.get_content()

        files = (("a.png", PNG), ("b.txt", b"no image"))
        second = await ann.write("And then?", reply_to=answer, files=files)
        answers = await ann.got(2)
        assert answers[1]["in-reply-to"] == second
        third = await ann.write("Thanks.", reply_to=answers[1], Subject="Re: Grüße: a plan")
        answers = await ann.got(3)
        assert answers[2]["in-reply-to"] == third
        assert text_of(answers[2]).endswith("Thanks.")
        assert len({one["message-id"] for one in answers}) == 3
        root = answers[0]["references"].split()[0]
        assert [one["references"].split()[0] for one in answers] == [root] * 3

        assert {key.user for key in world._talks} == {"ann"}
        events = heard(talk)
        assert [event.payload.channel for event in events] == [CHANNEL] * 3
        assert [one.name for one in events[1].payload.attachments] == ["a.png"]
        assert "[attached, not taken: b.txt (image/png, 1 kB)" in events[1].payload.text
        replied = [event.payload.reply_to for event in events]
        assert replied[0] is None
        assert [one.id for one in replied[1:] if one] == [said.id for said in talk.said[:2]]
        await talk.until(lambda: len(talk.receipts) == 3)
        assert {one.outcome for one in talk.receipts} == {"delivered"}

        await ann.write(ask(follow_up("tea", 30, "tea is ready")))
        assert text_of((await ann.got(4))[3]) == "Done."
        await world.at_rest()
        await world.advance(30)
        *_, done, reminder = await ann.got(5)
        assert text_of(reminder) == "tea is ready"
        assert reminder["auto-submitted"] == "auto-generated"
        assert reminder["in-reply-to"] is None
        assert reminder["references"] == done["references"].split()[0] != root
        assert len(threads_of(world)) == 2

        facts = await until_heard(world)
        assert facts["outside"] >= 1
        assert servers.mails(stranger.box) == []
        flags = servers.flags(ann.to_box)
        assert len(flags) >= 4
        assert not any(b"Seen" in one for one in flags)
