"""The tools email_… against real Postfix and Dovecot (ADR 51)."""

from __future__ import annotations

import asyncio
import email
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

import pytest

from services.executor.builtin import Builtin
from services.executor.tools.declaration import declared
from tests.support.cut_lines import breaking_line
from tests.support.hands import NO_SANDBOX, Hands, call_of
from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailboxes import NAME, OwnMailbox, mail, section
from tests.support.talk import PATIENCE_S
from vigil.bus.bus import Bus
from vigil.clock import SystemClock
from vigil.errors import InvalidInput, Unavailable
from vigil.settings import config
from vigil.settings.config import Settings

BEN = "ben@c.example"


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


class MailHands(Hands):
    """The tools of somebody with a mailbox."""

    def __init__(self, home: Path, servers: MailServers, **changes: Any) -> None:
        number = servers.account()
        self.own = OwnMailbox(servers, number)
        self.to = f"mal{number}@c.example"
        self.to_box = f"mal{number}"
        raw = {"mailboxes": {NAME: section(servers, number, **changes)}}
        self.settings = Settings(config=config.read(raw), home=home)
        self.source = Builtin(self.settings, SystemClock(), NO_SANDBOX, cast(Bus, None))

    def got(self) -> list[EmailMessage]:
        found = self.own.servers.mails(self.to_box)
        return [email.message_from_bytes(one, policy=default) for one in found]  # type: ignore[misc]


def ids_in(text: str) -> list[str]:
    return re.findall(r", id (\S+)", text)


async def test_it_finds_and_reads_and_marks_nothing(tmp_path: Path, servers: MailServers) -> None:
    """What comes back is from outside; nobody else's session gets anything."""
    hands = MailHands(tmp_path, servers)
    now = datetime.now(UTC)
    hands.own.put(mail("Alt", "Grüße vom Müller"), at=now - timedelta(days=40))
    hands.own.put(
        mail("Rent", "It is due.\n\nOn 3 May 2026 Ann <a@b.example> wrote:\n> When?"),
        mail("Sale", "Buy!", From="Eve <eve@c.example>", List_Unsubscribe="<https://c.example/u>"),
    )
    with servers.mailbox(hands.own.box) as client:
        client.create("Archive/2026".replace("/", "."))
    found = await hands.call("email_search")
    assert re.findall("Subject: (.*)", found.content) == ["Sale", "Rent", "Alt"]
    assert "unread, newsletter" in found.content
    assert found.is_tainted
    words = await hands.call("email_search", text="müller")
    assert re.findall("Subject: (.*)", words.content) == ["Alt"]
    since = (now - timedelta(days=2)).date().isoformat()
    recent = await hands.call("email_search", since=since, sender="ben")
    assert re.findall("Subject: (.*)", recent.content) == ["Rent"]
    (id_,) = ids_in(recent.content)
    assert len(recent.fields) == 1
    read = await hands.call("email_read", id=id_)
    assert read.is_tainted
    assert "From: Ben Miller <ben@c.example>" in read.content
    assert read.content.endswith("It is due.\n\n[1 quoted line]")
    whole = await hands.call("email_read", id=id_, with_quotes=True)
    assert whole.content.endswith("> When?")
    piece = await hands.call("email_read", id=id_, offset=6)
    assert piece.content.endswith("\n\ndue.\n\n[1 quoted line]")
    assert not any(b"Seen" in one for one in servers.flags(hands.own.box))

    assert (await hands.call("email_search", folder="Archive.2026")).content == "Nothing was found."
    with pytest.raises(InvalidInput, match="folder: there is none called 'Nope'; there is: "):
        await hands.call("email_search", folder="Nope")
    for wrong in ("nonsense", "other:1:1"):
        with pytest.raises(InvalidInput, match=r"^(id|mailbox): "):
            await hands.call("email_read", id=wrong)
    with pytest.raises(InvalidInput, match="id: there is no such mail any more"):
        await hands.call("email_read", id=id_.rpartition(":")[0] + ":999")
    with pytest.raises(InvalidInput, match="id: the server counts its mails anew"):
        await hands.call("email_read", id=f"{NAME}:1:1")
    for user in ("bob", "team"):
        with pytest.raises(InvalidInput, match="there is no mailbox of this person's"):
            await hands.call("email_search", user=user)
        with pytest.raises(InvalidInput, match="there is no mailbox of this person's"):
            await hands.call("email_read", user=user, id=id_)


async def test_an_id_without_a_mailbox_reads_only_ones_own(
    tmp_path: Path, servers: MailServers
) -> None:
    """Two people with a mailbox each: whose line was opened first by no name isn't the other's."""
    hands = MailHands(tmp_path, servers)
    hands.own.put(mail("Secret", "Ann alone reads this."))
    number = servers.account()
    bobs = section(servers, number) | {"user": "bob"}
    OwnMailbox(servers, number).put(mail("Hello", "Bob alone reads this."))
    raw = {"mailboxes": {NAME: section(servers, int(hands.own.box[3:])), "bobs": bobs}}
    hands.settings = Settings(config=config.read(raw), home=tmp_path)
    hands.source = Builtin(hands.settings, SystemClock(), NO_SANDBOX, cast(Bus, None))
    texts = {"ann": "Ann alone reads this.", "bob": "Bob alone reads this."}
    of_each = {}
    for user in texts:
        (id_,) = ids_in((await hands.call("email_search", user=user)).content)
        of_each[user] = ":" + id_.partition(":")[2]
    for user, text in texts.items():
        read = await hands.call("email_read", user=user, id=of_each[user])
        assert read.content.endswith(text)


async def test_a_draft_lies_there_once_and_isnt_sent(tmp_path: Path, servers: MailServers) -> None:
    """A try that comes again after a crash finds the draft of the one before."""
    hands = MailHands(tmp_path, servers, name="Ann")
    hands.own.put(mail("Rent", "It is due."))
    (id_,) = ids_in((await hands.call("email_search")).content)
    given = {
        "to": [hands.to], "bcc": ["c@c.example"], "subject": "Re: Rent", "text": "Grüße.\n",
        "reply_to": id_,
    }  # fmt: skip
    call = call_of("email_draft", hands.settings.config, given)
    told = await hands.source.run(call)
    assert told.content == f"It lies in Drafts of {NAME}. It was not sent."
    assert (await hands.source.run(call)).content == told.content
    with servers.mailbox(hands.own.box) as client:
        client.select("Drafts")
        _, found = client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[])")
    drafts = [one for one in found if isinstance(one, tuple)]
    assert len(drafts) == 1
    assert rb"\Draft" in drafts[0][0]
    draft = email.message_from_bytes(drafts[0][1], policy=default)
    assert (draft["from"], draft["bcc"]) == (f"Ann <{hands.own.address}>", "c@c.example")
    assert draft["in-reply-to"] == draft["references"]
    assert draft.get_content().strip() == "Grüße."  # type: ignore[attr-defined]
    assert hands.got() == []


async def test_it_is_sent_once_or_nobody_knows(tmp_path: Path, servers: MailServers) -> None:
    """Lost before the body was complete: tried again. Lost after it: ambiguous, and not again."""
    async with breaking_line(servers.ports["smtp"]) as line:
        hands = MailHands(tmp_path, servers, smtp_port=line.port, smtp_security="none")
        given = {"to": [hands.to], "bcc": [hands.own.address], "subject": "Hi", "text": ".\nBye"}
        call = call_of("email_send", hands.settings.config, given)
        line.cuts = ["before"]
        with pytest.raises(Unavailable, match="sending it: "):
            await hands.source.run(call)
        told = await hands.source.run(call)
        assert not told.is_error
        assert f"Message-ID: <vigil-mail.{call.id}@b.example>" in told.content

        line.cuts = ["after"]
        other = call_of("email_send", hands.settings.config, given | {"subject": "Again"})
        unclear = await hands.source.run(other)
        assert unclear.is_error
        assert unclear.content.startswith("ambiguous: after all of it was sent: ")
        assert f"<vigil-mail.{other.id}@b.example>" in unclear.content
    async with asyncio.timeout(PATIENCE_S):
        while len(got := await asyncio.to_thread(hands.got)) < 2:
            await asyncio.sleep(0.05)
    # A mail server delivers two mails at once, so either may be the first there.
    _, first = sorted(got, key=lambda one: str(one["subject"]))
    assert sorted(str(one["subject"]) for one in got) == ["Again", "Hi"]
    assert (first["to"], first["bcc"]) == (hands.to, None)
    assert first["message-id"] == f"<vigil-mail.{call.id}@b.example>"
    assert first.get_content().split() == [".", "Bye"]  # type: ignore[attr-defined]


async def test_what_cant_be_sent_is_told(tmp_path: Path, servers: MailServers) -> None:
    """Nobody is written to whose address means something else elsewhere; a refusal names them."""
    hands = MailHands(tmp_path, servers)
    text = {"subject": "Hi", "text": "Hi"}
    for wrong in ("no address", 'a"b@c.example', "a@b.example\nBcc: c@d.example"):
        with pytest.raises(InvalidInput, match=r"to: .* is no plain address"):
            await hands.call("email_send", to=[wrong], **text)
    with pytest.raises(InvalidInput, match="at most 20 in all"):
        await hands.call("email_send", to=[BEN] * 11, cc=[BEN] * 11, **text)
    refused = await hands.call("email_send", to=[hands.to, "nobody@c.example"], **text)
    assert refused.is_error
    assert "doesn't go there: nobody@c.example" in refused.content
    nobody = await hands.call("email_send", to=["nobody@c.example"], **text)
    assert nobody.content.startswith("It was not sent: 550 ")
    reading = MailHands(tmp_path, servers, smtp_host="")
    assert not declared()["email_send"].is_offered(reading.settings.config)
    assert declared()["email_draft"].is_offered(reading.settings.config)
    with pytest.raises(InvalidInput, match="can't send"):
        await reading.call("email_send", to=[BEN], **text)


async def test_a_wrong_password_is_asked_once(tmp_path: Path, servers: MailServers) -> None:
    """Servers lock accounts; and no password is in what is told."""
    hands = MailHands(tmp_path, servers, password="wrong-secret")
    for reason in ("Authentication failed", "refused user name or password before"):
        with pytest.raises(Unavailable, match=reason) as found:
            await hands.call("email_search")
        assert "wrong-secret" not in str(found.value)
