"""People's own mailboxes on a real Dovecot: how soon a mail is stored, what the first look at a
full one takes, and what ten cost at rest."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import time
from email.policy import SMTP
from pathlib import Path
from typing import Any, Final

from bench import resting, system
from bench.numbers import percentile, report
from tests.support.mail_servers import MailServers, missing, running_mail_servers
from tests.support.mailboxes import OwnMailbox, mail, section
from vigil.bus.bus import Bus
from vigil.contracts.codec import decode_mail
from vigil.subjects import ANYBODY

STREAM: Final = "MAILS"
MAILS: Final = 150
FULL: Final = 10_000
ACCOUNTS: Final = 10
FULL_WITHIN_S: Final = 600.0
SETTLE_S: Final = 3.0


async def measure(home: Path) -> None:
    """Report all three; without the servers none."""
    if why := missing():
        report("mail_event_p99_ms", 0.0, "ms", skipped=why)
        return
    with running_mail_servers() as servers:
        await _events(_home(home, "events"), servers)
        await _full(_home(home, "full"), servers)
        await _idle(home, servers)


def _home(home: Path, name: str) -> Path:
    folder = home / name
    folder.mkdir()
    return folder


def _write(home: Path, sections: dict[str, dict[str, Any]]) -> None:
    lines: list[str] = []
    for name, keys in sections.items():
        lines.append(f"[mailboxes.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    (home / "vigil.toml").write_text("\n".join([*lines, ""]))


async def _events(home: Path, servers: MailServers) -> None:
    """From a mail that lies in the mailbox to its record, one mail after the other."""
    number = servers.account()
    own = OwnMailbox(servers, number)
    _write(home, {"work": section(servers, number, poll_s=60.0, reader=False)})
    async with system.running(home) as running:
        bus = await running.admin()
        follower = await bus.follow(STREAM, [ANYBODY.mail()], 1)
        stored = aiter(follower)
        await anext(stored)  # where reading begins
        await asyncio.sleep(SETTLE_S)
        waits_ms: list[float] = []
        with servers.mailbox(own.box) as client:
            for which in range(MAILS):
                data = mail(f"number {which}").as_bytes(policy=SMTP)
                await asyncio.to_thread(client.append, "INBOX", "", "", data)
                begun = time.perf_counter()
                await anext(stored)
                waits_ms.append((time.perf_counter() - begun) * 1000)
        await follower.close()
        await bus.close()
    report("mail_event_p50_ms", percentile(waits_ms, 50), "ms", mails=MAILS)
    report("mail_event_p99_ms", percentile(waits_ms, 99), "ms")


async def _full(home: Path, servers: MailServers) -> None:
    """A mailbox of 10,000 mails, of which all are to be taken in."""
    number = servers.account()
    own = OwnMailbox(servers, number)
    await asyncio.to_thread(_fill, servers, own)
    _write(home, {"work": section(servers, number, first_days=365, reader=False)})
    async with system.running(home) as running:
        begun, bus = time.perf_counter(), await running.admin()
        before_mb = running.services_rss_mb()
        async with asyncio.timeout(FULL_WITHIN_S):
            while await _count(bus) < FULL:
                await asyncio.sleep(0.05)
        taken_s = time.perf_counter() - begun
        grown_mb = running.services_rss_mb() - before_mb
        info = await bus.api(f"STREAM.INFO.{STREAM}", {})
        stored_mb = info["state"]["bytes"] / 2**20
        await bus.close()
    report("mailbox_10k_first_sync_s", taken_s, "s", per_s=round(FULL / taken_s))
    report("mailbox_10k_first_sync_mb", grown_mb, "MiB", stored_mb=round(stored_mb, 1))


def _fill(servers: MailServers, own: OwnMailbox) -> None:
    """Put the mails into the folder as a mail server does: half of them are newsletters."""
    own.put(mail("first"))
    folder = servers.root / "mail" / own.box / "new"
    owner = pwd.getpwnam("mail")
    for which in range(FULL - 1):
        head = {"List_Unsubscribe": "<https://c.example/u>"} if which % 2 else {}
        file = folder / f"{int(time.time())}.M{which:06}P1.bench"
        file.write_bytes(mail(f"number {which}", "text " * 200, **head).as_bytes(policy=SMTP))
        os.chown(file, owner.pw_uid, owner.pw_gid)


async def _count(bus: Bus) -> int:
    last = await bus.get_last(STREAM, ANYBODY.mail())
    return 0 if last is None else decode_mail(last.data).uid


async def _idle(home: Path, servers: MailServers) -> None:
    """The CPU of ten mailboxes at rest, beyond that of none."""
    found: list[float] = []
    for count in (0, ACCOUNTS):
        folder = _home(home, f"idle-{count}")
        sections = {
            f"m{one}": section(servers, servers.account(), poll_s=60.0) for one in range(count)
        }
        _write(folder, sections)
        async with system.running(folder) as running:
            await asyncio.sleep(SETTLE_S)
            found.append((await resting.idle(running))["cpu_pct"])
    none, ten = found
    report("idle_10_accounts_cpu_pct", ten - none, "% of a core", aim="< 0.3", none=round(none, 2))
