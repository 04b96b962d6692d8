"""A person's own mailbox, followed on a real Dovecot (issue: the agent's view of a mailbox)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.executor.mailboxes import log
from tests.support.mail_servers import PASSWORD, MailServers, running_mail_servers
from tests.support.mailboxes import entries, mail, running_mailbox_world, texts, until_followed
from vigil.backoff import Backoff
from vigil.mail import line

ICS = "\r\n".join(
    (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "METHOD:REQUEST",
        "BEGIN:VEVENT",
        "UID:1@c.example",
        "DTSTART:20261203T090000Z",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    )
)


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


async def test_each_mail_is_stored_once_with_what_rules_say_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """New mail becomes a record at once, each once; the mailbox stays as it is."""
    async with running_mailbox_world(tmp_path, monkeypatch, servers) as (world, own):
        own.put(
            mail("Plan", "Shall we?\n\n> old"),
            mail("News", List_Unsubscribe="<https://c.example/u>", Precedence="bulk"),
            mail("Away", Auto_Submitted="auto-replied"),
        )
        came = await own.stored(world.admin, 3)
        assert texts(came) == [("personal", "Plan"), ("newsletter", "News"), ("auto_reply", "Away")]
        assert (came[0].author, came[0].name) == ("ben@c.example", "Ben Miller")
        assert came[0].text == "Shall we?\n\n[1 quoted line]"
        assert came[1].text == ""
        assert not any(b"Seen" in one for one in servers.flags(own.box))
        await world.stack.stop("executor")
        own.put(mail("Later"))
        await world.stack.start("executor")
        assert len(await own.stored(world.admin, 4)) == 4
        uids = [one.uid for one in await entries(world.admin) if one.mail]
        assert uids == sorted(set(uids))


async def test_a_mailbox_that_changes_under_us_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """The server goes away and counts anew, somebody empties the mailbox, the password is changed,
    one of two replicas ends: each mail is stored once."""
    monkeypatch.setattr(line, "PASSWORD_POLL_S", 0.05)
    monkeypatch.setattr(line, "AGAIN", Backoff(0.05, 0.2))
    monkeypatch.setattr(log, "KNOWN_MAX", 2)  # as if those before were too old to be kept
    secret = tmp_path / "mail.secret"
    secret.write_text("wrong")
    changes = {"password": "", "password_file": str(secret)}
    async with running_mailbox_world(
        tmp_path, monkeypatch, servers, changes=changes, state="refused"
    ) as (world, own):
        facts = await until_followed(world, "refused")
        assert "refuses user name or password" in facts["problem"]
        assert "wrong" not in facts["problem"]
        own.put(mail("old"), at=datetime.now(UTC) - timedelta(days=40))
        own.put(mail("recent"), at=world.clock.now() - timedelta(days=2))
        secret.write_text(PASSWORD)
        await until_followed(world)
        assert texts(await own.stored(world.admin, 1)) == [("personal", "recent")]
        # A mailbox keeps when a mail came to the second: "three" comes in a later one for sure.
        own.put(mail("one"), mail("two"), at=world.clock.now() - timedelta(days=1))
        await own.stored(world.admin, 3)

        validity = servers.validity(own.box)
        servers.kill("imap")
        await until_followed(world, "away")
        for name in ("dovecot-uidlist", "dovecot.index.log", "dovecot.index.cache"):
            (servers.root / "mail" / own.box / name).unlink(missing_ok=True)
        servers.start("imap")
        own.put(mail("three"))
        await own.stored(world.admin, 4)
        assert servers.validity(own.box) != validity

        with servers.mailbox(own.box) as client:
            client.store("1:*", "+FLAGS", "\\Deleted")
            client.expunge()
        own.put(mail("four"))
        await own.stored(world.admin, 5)
        await world.stack.start("executor:2")
        await world.stack.stop("executor")
        own.put(mail("five"))
        came = await own.stored(world.admin, 6)
        assert [one.subject for one in came] == ["recent", "one", "two", "three", "four", "five"]


async def test_rules_sort_what_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """Invitations are known by a calendar with a METHOD, wherever it stands, but not in a mail that
    is forwarded; broken mails stop nothing; what nobody removed meanwhile is missed."""
    invited = mail("Lunch", "Shall we?")
    invited.add_alternative(ICS, subtype="calendar", params={"method": "request"})
    attached = mail("Trip", "See the file.")
    attached.add_attachment(ICS.encode(), maintype="text", subtype="calendar", filename="a.ics")
    plain = mail("Dates", "Mine.")
    plain.add_attachment(
        ICS.replace("METHOD:REQUEST\r\n", "").encode(),
        maintype="text", subtype="calendar", filename="b.ics",
    )  # fmt: skip
    forwarded = mail("Fwd", "Look.")
    forwarded.add_attachment(invited)
    page = mail("Page", "")
    page.set_content("<p>Your <b>parcel</b> is here.</p><blockquote>old</blockquote>", "html")
    async with running_mailbox_world(tmp_path, monkeypatch, servers) as (world, own):
        own.put(
            invited, attached, plain, forwarded, page,
            mail("Bill", "42 EUR", Auto_Submitted="auto-generated"),
            mail("Talk", "hi", List_Id="<l.c.example>", List_Post="<mailto:l@c.example>"),
            mail("Lost", "x", Return_Path="<>"),
            mail("Mine", "x", From=own.address),
            b"From: \xff\xfe broken\r\nContent-Type: multipart/mixed\r\n\r\n\x00\xff",
        )  # fmt: skip
        came = await own.stored(world.admin, 10)
        assert texts(came[:9]) == [
            ("invitation", "Lunch"), ("invitation", "Trip"), ("personal", "Dates"),
            ("personal", "Fwd"), ("personal", "Page"), ("notice", "Bill"), ("list", "Talk"),
            ("bounce", "Lost"), ("own", "Mine"),
        ]  # fmt: skip
        assert came[0].invitation is not None
        assert (came[0].invitation.method, "UID:1@c" in came[0].invitation.ics) == ("REQUEST", True)
        assert came[4].text == "Your parcel is here.\n\n[1 quoted line]"
        assert came[3].text == "Look."
        assert not came[9].author


async def test_whose_mailbox_fails_and_why_is_told_to_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """Who may ask whether Vigil is ready needs no token, and what it is may be read by all."""
    async with running_mailbox_world(
        tmp_path, monkeypatch, servers, changes={"imap_port": 9}, state="away"
    ) as (world, _):
        bob = await world.person("bob:vigil:t1", has_socket=False)
        for path in ("/readyz", "/api/status"):
            shown = (await bob.http.get(path)).text
            assert "mailboxes fail: 1 of 1" in shown
            assert not [word for word in ("mailbox work", "onnect", "away") if word in shown]
