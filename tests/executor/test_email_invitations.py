"""An invitation in a person's own mailbox, read with what their calendars say: real Dovecot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest

from services.executor.builtin import Builtin
from tests.executor.test_email_tools import ids_in
from tests.support.calendars import calendar, event
from tests.support.hands import NO_SANDBOX, call_of
from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailboxes import NAME, OwnMailbox, mail, section
from tests.support.stack import running_stack
from vigil.calendars import mirror
from vigil.calendars.reader import CalendarReader
from vigil.clock import SystemClock


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


def invited(method: str, part: str) -> EmailMessage:
    made = mail("Lunch", "Please come.")
    made.add_alternative(part, subtype="calendar", params={"method": method})
    return made


async def test_a_mail_says_what_it_would_change(tmp_path: Path, servers: MailServers) -> None:
    """Issue 37: a proposal; what is there isn't cancelled by a stranger's word."""
    begins = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    at = f":{begins:%Y%m%dT%H%M%SZ}"
    organizer = "ORGANIZER:mailto:ben@c.example"
    file = tmp_path / "mine.ics"
    file.write_text(calendar(event("known", at, "DURATION:PT1H", organizer)))
    number = servers.account()
    sections = {"mine": {"kind": "file", "file": str(file), "user": "ann"}}
    boxes = {NAME: section(servers, number)}
    async with running_stack(
        tmp_path / "home", services=(), calendars=sections, mailboxes=boxes
    ) as stack:
        settings = stack.settings
        mine = settings.config.calendars["mine"]
        seen = await CalendarReader(mine, settings.home).read(None, datetime.now(UTC))
        mirror.store(mirror.path_of(settings.home, "mine", mine), seen)
        hands = Builtin(settings, SystemClock(), NO_SANDBOX, await stack.bus("executor"))
        new = event("new", at, "DURATION:PT1H", organizer, title="Obey me")
        OwnMailbox(servers, number).put(
            invited("REQUEST", calendar("METHOD:REQUEST\r\n", new)),
            invited("CANCEL", calendar("METHOD:CANCEL\r\n", event("known", at, organizer))),
        )
        found = await hands.run(call_of("email_search", settings.config, {}))
        cancelled, request = [
            (await hands.run(call_of("email_read", settings.config, {"id": one}))).content
            for one in ids_in(found.content)
        ]
        await hands.close()
    (line,) = [one for one in request.splitlines() if one.startswith("Calendar: ")]
    assert line.startswith(
        f"Calendar: REQUEST: an invitation; {begins:%Y-%m-%d %H:%M}; at the same"
    )
    assert "Obey" not in line
    (line,) = [one for one in cancelled.splitlines() if one.startswith("Calendar: ")]
    assert line.startswith("Calendar: CANCEL: an invitation that isn't proven; ")
