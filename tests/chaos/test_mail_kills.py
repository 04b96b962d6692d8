"""Mail servers and services killed at random while a person writes and is answered by mail.

Both mailboxes are the judge: what ann sent is heard once, in the order in which it lies in the
mailbox; what is said is in her mailbox once if its receipt says so, and twice never.
"""

from __future__ import annotations

import asyncio
import random
import re
import smtplib
from collections import Counter
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.ended import SETTLED_S, all_settled, records, texts_heard, toml_of
from tests.chaos.killable import killable, steps_of
from tests.chaos.processes import Processes
from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailing import CHANNEL, pair, section
from tests.support.pauses import pauses
from vigil.bus.bus import Bus
from vigil.channels.mail.composition import Letterhead, composed
from vigil.contracts import UserMessage, decode_event, decode_said
from vigil.mail import ids
from vigil.mail.bodies import read_mail
from vigil.mail.heads import read_head

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVERS: Final = ("smtp", "imap")
SERVICES: Final = ("gateway", "delivery", "cortex")
POINTS: Final = ("mail.heard", "mail.place")
"""At which the gateway ends, too, at first."""
PLAN: Final = {"gateway": POINTS, "delivery": (), "cortex": ()}
OPEN: Final = "ambiguous"
SETTINGS: Final = {
    "VIGIL_PORT": "0",
    # A server that is away opens the circuit of its channel; the test need not wait for long.
    "VIGIL_HEALTH__CIRCUIT_OPEN_S": "1",
    "VIGIL_HEALTH__CIRCUIT_OPEN_S_MAX": "2",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


def text_of(which: int) -> str:
    """Return what a mail says: also what is written otherwise on the way, as lines that begin with
    a dot, are too long for a line of mail, or aren't ASCII."""
    more = ("", "\n.\n..and on", "\nGrüße 🙂", f"\n{'long ' * 300}end")
    return f"number {which}{more[which % len(more)]}"


def write(servers: MailServers, number: int, which: int) -> None:
    """Send a mail as a program of people does: again, until a server takes it."""
    mail = EmailMessage()
    mail["From"], mail["To"] = f"ann{number}@b.example", f"vigil{number}@a.example"
    mail["Message-ID"] = f"<{which}@b.example>"
    if which:
        mail["References"] = "<0@b.example>"
    mail.set_content(text_of(which))
    while True:
        try:
            return servers.post(mail, str(mail["To"]), sender=str(mail["From"]))
        except (OSError, smtplib.SMTPException):
            continue


async def all_heard(
    bus: Bus, servers: MailServers, processes: Processes, number: int, wanted: set[str]
) -> None:
    """Wait until each of ann's mails is a message; says where those are that never become one."""
    try:
        async with asyncio.timeout(SETTLED_S):
            while not set(await texts_heard(bus)) >= wanted:
                processes.check()  # of a service that isn't started again nobody would hear
                await asyncio.sleep(0.1)
    except TimeoutError:
        missing = wanted - set(await texts_heard(bus))
        mailbox = await asyncio.to_thread(servers.mails, f"vigil{number}")
        lying = [read_mail(one).text.strip() for one in mailbox]
        place = await bus.get_last("KV_CONFIG", "$KV.CONFIG.mail.place.>")
        raise AssertionError(f"{missing} not heard; there are {lying}; {place}") from None


async def test_each_mail_is_heard_once_and_said_once_whatever_is_killed(
    tmp_path: Path, servers: MailServers, is_long: bool, seed: int
) -> None:
    """D-2, D-3: 40 kills of servers and services in the long form."""
    kills, dice, number = 40 if is_long else 3, random.Random(seed), servers.account()
    terms = {
        "attempts_max": 100,
        "backoff_base_s": 2.0,
        "backoff_cap_s": 2.0,
        "poll_s": 2.0,
        "timeout_s": 5.0,
    }
    (tmp_path / "vigil.toml").write_text(toml_of(CHANNEL, section(servers, number, **terms)))
    async with killable(tmp_path, steps_of(PLAN), SETTINGS) as (
        stack,
        processes,
    ):
        bus = await stack.bus("admin")
        await pair(bus, "ann", f"ann{number}@b.example")
        async with asyncio.timeout(60):
            pause_s = pauses()
            while await bus.get_last("KV_CONFIG", "$KV.CONFIG.mail.place.>") is None:
                await asyncio.sleep(next(pause_s))

        async def correspond() -> None:
            for which in range(kills):
                await asyncio.to_thread(write, servers, number, which)
                await asyncio.sleep(dice.uniform(0.0, 0.3))

        writing = asyncio.create_task(correspond())
        killed: Counter[str] = Counter()
        while killed.total() < kills:
            await asyncio.sleep(dice.uniform(0.05, 0.8))
            name = dice.choice((*SERVERS, *SERVICES))
            if name in SERVERS:
                servers.kill(name)
                await asyncio.sleep(dice.uniform(0.0, 0.4))
                await asyncio.to_thread(servers.start, name)
            elif not processes.kill(name):
                continue
            killed[name] += 1
        await writing

        wanted = {text_of(which) for which in range(kills)}
        await all_heard(bus, servers, processes, number, wanted)
        await processes.plans_over(SETTLED_S)  # who ended at the last mail begins anew by itself
        ends = await all_settled(bus)
        heard = await texts_heard(bus)
        said = [decode_said(one.data) for one in await records(bus, "out.said.*")]
        asked = [decode_event(one.data) for one in await records(bus, "in.said.user")]
        crashed = {one.crash_at.partition(":")[0] for one in processes.exits if one.is_crash}
        assert crashed == set(POINTS)
        assert not [fault for fault in processes.faults() if "Traceback" in fault]
        print(f"killed {dict(killed)}, seed {seed}: {Counter(ends.values())}")

    # Nothing is heard twice, and in the order of the mailbox, from which nothing went.
    mailbox = await asyncio.to_thread(servers.mails, f"vigil{number}")
    lying = [read_mail(one).text.strip() for one in mailbox if b"From: ann" in one]
    assert heard == [one for one in dict.fromkeys(lying) if one in wanted]
    assert not any(b"Seen" in one for one in servers.flags(f"vigil{number}"))

    # A server that is killed may deliver what it took twice, which one tells by its own number.
    sent: dict[str, set[bytes]] = {}
    hers = await asyncio.to_thread(servers.mails, f"ann{number}")
    for one in hers:
        known = ids.read_message_id(read_head(one).message_id, "a.example")
        assert known is not None
        sent.setdefault(known[0], set()).update(re.findall(rb"SMTPSA? id (\w+)", one))
    assert set(sent) <= set(ends)
    assert [effect for effect, queued in sent.items() if len(queued) != 1] == []
    assert {effect for effect, end in ends.items() if end == "delivered"} <= set(sent)
    # Whatever was tried again, and went through both servers, is as it was meant, to the byte.
    heads = [one.payload.mail for one in asked if isinstance(one, UserMessage)]
    answered = {one.message_id: one for one in heads if one is not None}
    texts = {one.id: one for one in said}
    letterhead = Letterhead(
        address=f"vigil{number}@a.example", name="Vigil", console_url="https://vigil.example"
    )
    for one in hers:
        head = read_head(one)
        known = ids.read_message_id(head.message_id, "a.example")
        assert known is not None
        meant = composed(texts[known[0]], head.to[0], answered[head.in_reply_to], letterhead)
        assert one[one.index(b"Message-ID: ") :] == meant
        assert max(map(len, one.split(b"\r\n"))) <= 998
    nowhere = {ends[effect] for effect in set(ends) - set(sent)}
    assert nowhere <= {OPEN, "void", "dropped"}
