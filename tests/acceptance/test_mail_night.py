"""A mailbox of 400 mails, a night, and a question in the morning: scenario 3 of seed 000 (ADR 51).

Everything is real but the model's mind, which is a script behind the Messages API, and the clock:
Dovecot, IMAP, all services.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Final

import pytest

from services.scheduler.timetable import clock as timetable
from services.scheduler.timetable.kinds.mail import FIRST_AFTER
from tests.support.agent import Agent
from tests.support.due import row_of, slots
from tests.support.executing import has_offered
from tests.support.gateway import Gate
from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailbox_night import (
    BEN,
    COUNT,
    LEASE,
    RESULTS,
    SENDERS,
    SOFIA,
    MorningModel,
    made,
)
from tests.support.mailboxes import NAME, OwnMailbox, entries, section, until_followed
from tests.support.messages_api import messages_api
from tests.support.pauses import pauses
from tests.support.remembering import look
from tests.support.stack import running_stack
from tests.support.talk import PATIENCE_S
from tests.support.world import SERVICES, Person, StoppedClock, World
from vigil.contracts.mail import is_read_by_model

EVERY_S: Final = 3600
WAVES: Final = 8
PRICES: Final = [{"since": "2026-01-01", "input": 1.0, "output": 5.0}]
"""USD for a million tokens: those of a small model."""


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


@asynccontextmanager
async def running(
    home: Path, patch: pytest.MonkeyPatch, servers: MailServers
) -> AsyncIterator[tuple[World, MorningModel, OwnMailbox]]:
    patch.setattr(timetable, "POLL_S", 0.05)
    clock, number = StoppedClock(), servers.account()
    evening = clock.now().replace(hour=22, minute=0, second=0, microsecond=0)
    clock.move((evening - clock.now()).total_seconds())
    model = MorningModel()
    async with messages_api(model.reply) as api:
        sections: dict[str, Any] = {
            "model": {"main": "claude-test"},
            "models": {"claude-test": {"prices": PRICES}},
            "person": {
                "contacts": [BEN], "quiet_hours": "22:00-07:00", "digest_at": "07:30",
            },
            "mailboxes": {NAME: section(servers, number, digest_s=EVERY_S)},
        }  # fmt: skip
        services = (*SERVICES, "executor")
        async with running_stack(home, services, clock, api.url, **sections) as stack:
            gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
            world = World(gate, Agent(), clock, services)
            following = asyncio.create_task(world.follow())
            await has_offered(gate.admin)
            await until_followed(world)
            try:
                yield world, model, OwnMailbox(servers, number)
            finally:
                following.cancel()
                await gate.close()


async def the_night(world: World, ann: Person, own: OwnMailbox, mails: tuple[Any, ...]) -> Any:
    """The mails come, some each hour; return the row by which they are read."""
    assert isinstance(world.clock, StoppedClock)
    row = await row_of(ann.http, "mail")
    size, known = -(-len(mails) // WAVES), 0
    for wave in range(WAVES):
        here = mails[wave * size : (wave + 1) * size]
        await asyncio.to_thread(own.put, *here, at=world.clock.now())
        await own.stored(world.admin, min((wave + 1) * size, len(mails)))
        world.clock.move(EVERY_S if wave else FIRST_AFTER.total_seconds())
        found = await slots(ann.http, row, known + 2)
        assert [one["state"] for one in found[known:]] == ["running", "ran"], found[known:]
        known = len(found)
    return row


async def test_two_of_400_mails_are_told_in_the_morning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """Scenario 3: the two that matter are told with sender, subject and deadline; it costs eight
    calls of a small model; what three mails order is done by nobody."""
    async with running(tmp_path, monkeypatch, servers) as (world, model, own):
        assert isinstance(world.clock, StoppedClock)
        today = world.clock.now().date()
        lease_by, results_by = today + timedelta(days=9), today + timedelta(days=4)
        night = made(1, lease_by, results_by)
        assert len(night.mails) == COUNT
        assert len({parseaddr(one["from"])[1] for one in night.mails}) == SENDERS
        ann = await world.person("ann:vigil:main", has_socket=False)
        await ann.exchange("Good night")
        row = await the_night(world, ann, own, night.mails)

        # What a rule can say cost no model; the rest one cheap call a digest.
        stored = [one.mail for one in await entries(world.admin) if one.mail]
        assert sum(map(is_read_by_model, stored)) == night.read == model.mails
        assert model.sorted == WAVES
        found = (await ann.http.get("/api/slots", params={"row": row["id"]})).json()["slots"]
        ran = [one for one in found if one["state"] == "ran"]
        micro_usd, tokens = (sum(one[key] for one in ran) for key in ("micro_usd", "tokens"))
        assert 5_000 < tokens < 10_000
        assert 5_000 < micro_usd < 15_000, "a cent for the night"

        costs = (await ann.http.get("/api/cost", params={"by": "cause"})).json()["lines"]
        (of_mail,) = [one for one in costs if one["cause_name"] == f"mail-{NAME}"]
        assert (of_mail["calls"], of_mail["micro_usd"]) == (WAVES, micro_usd), "by account"

        # Nobody was woken; what was found stands in a digest, and in facts.
        assert len(ann.talk.said) == 1
        await world.advance(4 * 3600)
        await ann.talk.until(lambda: len(ann.talk.said) > 1)
        told = " ".join(one.text for one in ann.talk.said[1:])
        assert f"{BEN}: “{LEASE}”, due {lease_by}" in told
        assert f"{SOFIA}: “{RESULTS}”, due {results_by}" in told
        kept = (await look(ann.http, source=f"mail:{NAME}"))["memories"]
        assert len(kept) == 2
        assert all(one["is_tainted"] for one in kept)
        facts = {
            one["name"]: one["value"]
            for one in (await ann.http.get(f"/api/cron/{row['id']}")).json()["facts"]
        }
        assert (facts["due"], facts["due_from"]) == (results_by.isoformat(), "other")

        # The question in the morning.
        await ann.exchange("What came in my mail?")
        answer = ann.talk.said[-1].text
        assert f"{BEN} wrote “{LEASE}”: by {lease_by}." in answer
        assert f"{SOFIA} wrote “{RESULTS}”: by {results_by}." in answer

        # It reads what gives orders with all its tools at hand, and obeys: it all waits for her.
        await ann.exchange("What does Mallory want of me?")
        assert {"email_send", "shell", "email_draft"} <= model.orders
        asked = (await ann.http.get("/api/approvals")).json()["approvals"]
        assert {one["tool"] for one in asked} == {"email_send", "email_draft", "shell"}
        reason = '"mallory@c.example" is neither in what you said nor among your contacts'
        assert reason in json.dumps(asked, ensure_ascii=False).replace('\\"', '"')
        workspace = world.stack.settings.workspaces / "vigil" / "ann"
        assert not (workspace / "evil").exists()
        assert not [
            one for one in (servers.root / "mail" / own.box).iterdir() if "Draft" in one.name
        ]
        assert f"from=<{own.address}>" not in (servers.root / "postfix.log").read_text()
        assert not any(b"Seen" in one for one in servers.flags(own.box))

        # What she says herself is sent in her name, once, without a question.
        desk = await world.person("ann:vigil:desk", has_socket=False)
        friend = own.address.replace("ann", "mal").replace("b.example", "c.example")
        await desk.exchange(f"Send {friend} this: I sign it today.")
        assert desk.talk.said[-1].text.startswith(f"It was handed over for {friend}. ")
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while not (got := await asyncio.to_thread(servers.mails, friend.partition("@")[0])):
                await asyncio.sleep(next(pause_s))
        (letter,) = got
        assert b"I sign it today." in letter
        assert len((await ann.http.get("/api/approvals")).json()["approvals"]) == len(asked)
