"""A world whose person has a mailbox of their own on a real Dovecot, and whoever writes there."""

from __future__ import annotations

import asyncio
import contextlib
import imaplib
import itertools
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.mail_servers import PASSWORD, MailServers
from tests.support.mailing import until_told
from tests.support.pauses import pauses
from tests.support.talk import PATIENCE_S
from tests.support.world import World, running_world
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.contracts.codec import decode_mail
from vigil.contracts.mail import CameMail, MailEntry
from vigil.subjects import Scope

NAME: Final = "work"
STREAM: Final = "MAILS"
ANNS: Final = Scope("vigil", "ann")


def section(servers: MailServers, number: int, **changes: Any) -> dict[str, Any]:
    """Return `[mailboxes.work]` of ann's account."""
    return {
        "user": "ann",
        "address": f"ann{number}@b.example",
        "login": f"ann{number}",
        "imap_host": "localhost",
        "imap_port": servers.ports["imaps"],
        "smtp_host": "localhost",
        "smtp_port": servers.ports["smtp"],
        "smtp_security": "starttls",
        "password": PASSWORD,
        "ca_file": str(servers.root / "cert.pem"),
        "poll_s": 0.2,
    } | changes


def mail(subject: str = "Hello", text: str = "How are you?", **fields: str) -> EmailMessage:
    """Return a mail; keywords are fields of its head, with ``_`` for ``-``."""
    made = EmailMessage()
    numbered = next(_NUMBERS)
    head = {
        "From": "Ben Miller <ben@c.example>",
        "To": "ann@b.example",
        "Subject": subject,
        "Date": "Fri, 20 Nov 2026 09:00:00 +0000",
        "Message-ID": f"<m{numbered}@c.example>",
    }
    for name, value in (head | {key.replace("_", "-"): one for key, one in fields.items()}).items():
        if value:
            made[name] = value
    made.set_content(text)
    return made


_NUMBERS: Final = itertools.count(1)


class OwnMailbox:
    """Ann's mailbox, as the server has it, and what of it is stored."""

    def __init__(self, servers: MailServers, number: int) -> None:
        self.servers = servers
        self.box = f"ann{number}"
        self.address = f"{self.box}@b.example"

    def put(self, *mails: EmailMessage | bytes, at: datetime | None = None) -> None:
        """Have mails come, in order, by the server's clock or at an instant."""
        with self.servers.mailbox(self.box) as client:
            for one in mails:
                data = one if isinstance(one, bytes) else one.as_bytes(policy=SMTP)
                when = imaplib.Time2Internaldate((at or datetime.now(UTC)).timestamp())
                answer, told = client.append("INBOX", "", when, data)
                assert answer == "OK", told

    async def stored(self, bus: Bus, count: int) -> list[CameMail]:
        """Wait until so many mails are stored; return all, which are no more."""
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while len(found := [one.mail for one in await entries(bus) if one.mail]) < count:
                await asyncio.sleep(next(pause_s))
        assert len(found) == count, texts(found)
        return found


async def entries(bus: Bus, whose: Scope = ANNS, name: str = NAME) -> list[MailEntry]:
    """Return all that is stored of a mailbox."""
    return [decode_mail(one.data) for one in await bus.read(STREAM, [whose.mail(name)])]


def texts(mails: Iterable[CameMail]) -> list[tuple[str, str]]:
    """Return what sort each mail is, and its subject."""
    return [(one.kind, one.subject) for one in mails]


@contextlib.asynccontextmanager
async def running_mailbox_world(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    servers: MailServers,
    *,
    clock: Clock | None = None,
    changes: dict[str, Any] | None = None,
    state: str = "listening",
    **sections: Any,
) -> AsyncIterator[tuple[World, OwnMailbox]]:
    """All services, with ann's mailbox followed."""
    number = servers.account()
    own = OwnMailbox(servers, number)
    sections |= {"mailboxes": {NAME: section(servers, number, **(changes or {}))}}
    async with running_world(home, monkeypatch, clock, has_hands=True, **sections) as world:
        await until_followed(world, state)
        yield world, own


async def until_followed(world: World, state: str = "listening") -> dict[str, Any]:
    """Wait until the mailbox is followed; returns what the executor's health tells of it."""
    return await until_told(world, "executor", "mailboxes", NAME, state)
