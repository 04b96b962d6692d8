"""A world whose agent has an e-mail account, and a person who writes to it."""

from __future__ import annotations

import asyncio
import contextlib
import email
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.mail_servers import HOST, PASSWORD, MailServers, token_for
from tests.support.pauses import pauses
from tests.support.talk import PATIENCE_S
from tests.support.world import World, running_world
from vigil.bus.bus import Bus
from vigil.channels import pairs
from vigil.channels.pairs import ChannelPerson, PairedAddress
from vigil.clock import Clock

CHANNEL: Final = "post"


def section(servers: MailServers, number: int, **changes: Any) -> dict[str, Any]:
    """Return `[channels.post]` of an account."""
    return {
        "kind": "mail",
        "address": f"vigil{number}@a.example",
        "user": f"vigil{number}",
        "smtp_host": "localhost",
        "smtp_port": servers.ports["smtp"],
        "smtp_security": "starttls",
        "imap_host": "localhost",
        "imap_port": servers.ports["imaps"],
        "imap_security": "tls",
        "password": PASSWORD,
        "ca_file": str(servers.root / "cert.pem"),
        "authserv_id": HOST,
        "console_url": "https://vigil.example",
        "backoff_base_s": 0.05,
    } | changes


async def pair(bus: Bus, user: str, address: str) -> None:
    """Pair an address as its owner's code would."""
    new = PairedAddress(address=address, at=datetime.now(UTC))
    await pairs.store_paired(bus, ChannelPerson(user=user, channel=CHANNEL, addresses=(new,)))


class Correspondent:
    """Somebody with a mail program, and an account."""

    def __init__(self, servers: MailServers, number: int, *, who: str = "ann") -> None:
        self.servers = servers
        self.box = f"{who}{number}"
        self.address = f"{self.box}@{'b' if who == 'ann' else 'c'}.example"
        self.to = f"vigil{number}@a.example"
        self.to_box = f"vigil{number}"
        self._numbers = itertools.count(1)
        self._last = b""

    async def write(
        self,
        text: str,
        *,
        reply_to: EmailMessage | None = None,
        files: tuple[tuple[str, bytes], ...] = (),
        handed_on: EmailMessage | None = None,
        **fields: str,
    ) -> str:
        """Send a mail as a program of people does; returns its Message-ID."""
        mail = EmailMessage()
        own = f"<{self.box}.{next(self._numbers)}.{'long' * 25}@b.example>"
        head = {"From": f"Ann <{self.address}>", "To": self.to, "Subject": ""}
        for name, value in (head | fields).items():
            mail[name] = value
        mail.set_content(text)
        for name, data in files:
            mail.add_attachment(data, maintype="image", subtype="png", filename=name)
        if handed_on is not None:
            mail.add_attachment(handed_on)
        # The library would write long ids as encoded words (see findings).
        ids = [f"Message-ID: {own}"]
        if reply_to is not None:
            ids.append(f"In-Reply-To: {reply_to['message-id']}")
            ids.append(f"References: {reply_to['references']} {reply_to['message-id']}")
        data = "".join(f"{line}\r\n" for line in ids).encode() + mail.as_bytes(
            policy=default.clone(linesep="\r\n")
        )
        self._last = data
        await self.resend()
        return own

    async def resend(self) -> None:
        """Send the last mail once more, as whoever has it could."""
        await asyncio.to_thread(self.servers.post, self._last, self.to, sender=self.address)

    async def got(self, count: int) -> list[EmailMessage]:
        """Wait until so many mails are there; returns all."""
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while len(found := await asyncio.to_thread(self.servers.mails, self.box)) < count:
                await asyncio.sleep(next(pause_s))
        return [email.message_from_bytes(one, policy=default) for one in found]  # type: ignore[misc]


def text_of(mail: EmailMessage) -> str:
    """Return what was said in a mail of the agent's."""
    body = mail.get_body(("plain",))
    assert body is not None
    text = str(body.get_content()).replace("\r\n", "\n")
    return text.partition("\n\n-- \n")[0].strip()


@contextlib.asynccontextmanager
async def running_mail_world(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    servers: MailServers,
    *,
    is_paired: bool = True,
    prefers: str = "",
    clock: Clock | None = None,
    state: str = "listening",
    has_token: bool = False,
    has_hands: bool = False,
    **changes: Any,
) -> AsyncIterator[tuple[World, Correspondent]]:
    """All services with a mail account, and ann, whose address is paired."""
    number = servers.account()
    if has_token:
        (home / "token").write_text(token_for(f"vigil{number}") + "\n")
        changes |= {"password": "", "token_command": ["cat", str(home / "token")]}
    sections = {
        "channels": {CHANNEL: section(servers, number, **changes)},
        "person": {"channel": prefers},
    }
    async with running_world(home, monkeypatch, clock, has_hands=has_hands, **sections) as world:
        ann = Correspondent(servers, number)
        if is_paired:
            await pair(world.admin, "ann", ann.address)
        await until_heard(world, state)
        yield world, ann


async def until_heard(world: World, state: str = "listening") -> dict[str, Any]:
    """Wait until the mailbox is read; returns what the gateway's health tells of it."""
    return await until_told(world, "gateway", "hears", CHANNEL, state)


async def until_told(
    world: World, service: str, what: str, name: str, state: str
) -> dict[str, Any]:
    """Wait until a service's health tells of a thing that it's in a state; returns all it tells."""

    def is_so() -> dict[str, Any]:
        facts = world.stack.contexts[service].facts.get(what, {}).get(name, {})
        return facts if facts.get("state") == state else {}

    return await world.until(is_so)
