"""The mail server and the executor killed at random while mails come to a person's own mailbox.

The mailbox is the judge: each mail in it is stored once, in the order in which it lies there.
"""

from __future__ import annotations

import asyncio
import imaplib
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.killable import NO_SANDBOX, killable, steps_of
from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailboxes import NAME, OwnMailbox, entries, mail, section
from tests.support.pauses import pauses
from vigil.bus.bus import Bus
from vigil.contracts.mail import MailEntry
from vigil.errors import VigilError
from vigil.mail.heads import read_head

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

POINTS: Final = ("mailbox.begun", "mailbox.mail")
SETTLED_S: Final = 120.0


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


async def stored(bus: Bus) -> list[MailEntry]:
    while True:
        try:
            return await entries(bus)
        except VigilError:
            await asyncio.sleep(0.1)


def put(own: OwnMailbox, which: int) -> None:
    """Have a mail come: again, until the server takes it. A server that is killed may have it."""
    while True:
        try:
            return own.put(mail(f"number {which}"))
        except (OSError, imaplib.IMAP4.error):
            continue


async def test_each_mail_is_stored_once_whatever_is_killed(
    tmp_path: Path, servers: MailServers, is_long: bool, seed: int
) -> None:
    """40 kills of the server and the executor in the long form."""
    kills, dice, number = 40 if is_long else 3, random.Random(seed), servers.account()
    own = OwnMailbox(servers, number)
    keys = section(servers, number, poll_s=2.0, first_days=0)
    lines = (f"{key} = {json.dumps(value)}" for key, value in keys.items())
    (tmp_path / "vigil.toml").write_text("\n".join((f"[mailboxes.{NAME}]", *lines, "")))
    steps = steps_of({"executor": POINTS, "executor:2": ()}, {"mailbox.mail": 2})
    async with killable(tmp_path, steps, NO_SANDBOX) as (stack, processes):
        bus = await stack.bus("admin")
        async with asyncio.timeout(60):
            pause_s = pauses()
            while not await stored(bus):
                await asyncio.sleep(next(pause_s))

        async def write() -> None:
            for which in range(kills * 2):
                await asyncio.to_thread(put, own, which)
                await asyncio.sleep(dice.uniform(0.0, 0.2))

        writing = asyncio.create_task(write())
        killed: Counter[str] = Counter()
        while killed.total() < kills:
            await asyncio.sleep(dice.uniform(0.05, 0.8))
            name = dice.choice(("imap", "executor", "executor:2"))
            if name == "imap":
                servers.kill(name)
                await asyncio.sleep(dice.uniform(0.0, 0.4))
                await asyncio.to_thread(servers.start, name)
            elif not processes.kill(name):
                continue
            killed[name] += 1
        await writing
        lying = [read_head(one) for one in await asyncio.to_thread(servers.mails, own.box)]
        async with asyncio.timeout(SETTLED_S):
            while sum(one.mail is not None for one in await stored(bus)) < len(lying):
                await asyncio.sleep(0.1)
        found = [one.mail for one in await stored(bus) if one.mail is not None]
        assert not [fault for fault in processes.faults() if "Traceback" in fault]
        print(f"killed {dict(killed)}, seed {seed}: {len(found)} mails")
    assert [one.message_id for one in found] == [one.message_id for one in lying]
    assert not any(b"Seen" in one for one in servers.flags(own.box))
