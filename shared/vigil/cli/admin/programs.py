"""Credentials of outside programs: what `vigil token` does with ``--bus`` and ``bus:…``.

A program gets an nkey of its own, a durable consumer for signals, and an account on the broker
that reaches one subject of events (:mod:`vigil.broker.programs`). The embedded broker learns
of it at once; a broker of one's own reads the configuration that `vigil provision` writes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from vigil.broker.programs import DOMAIN, Outside
from vigil.errors import VigilError
from vigil.local import runfile
from vigil.settings import credentials
from vigil.settings.config import Settings

from .. import exits, output

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

PREFIX: Final = "bus:"
"""What the id of such a credential begins with, where tokens have ids, too."""
DEFAULT_NAME: Final = "default"
FOREIGN: Final = (
    "The broker isn't the embedded one: let `vigil provision --credentials-only --write-nats-conf "
    "FILE` write its configuration again, and have it read that (`nats-server --signal reload`, "
    "twice). Then this holds."
)


def create(settings: Settings, user: str, name: str, *, is_admin: bool) -> dict[str, Any]:
    """Make a credential, and tell everything that its program needs.

    Raises:
        InvalidInput: the user or the name can't be used.
        NotReady: nothing runs.
    """
    url = _url(settings)
    made = credentials.make_outside(
        settings.credentials, user, name or DEFAULT_NAME, is_admin=is_admin
    )

    async def add(admin: Bus) -> None:
        from vigil.broker.provision import provision_outside

        await provision_outside(admin, [made])

    async def take_back(admin: Bus) -> None:
        from vigil.broker.provision import remove_outside

        await remove_outside(admin, made)

    try:
        asyncio.run(_as_admin(settings, url, add))
        _tell_broker(settings)
    except VigilError:
        credentials.drop_outside(settings.credentials, made)
        with contextlib.suppress(VigilError):
            asyncio.run(_as_admin(settings, url, take_back))
        raise
    return describe(settings, made, url)


def describe(settings: Settings, made: Outside, url: str) -> dict[str, Any]:
    """Return what a program needs to use its credential."""
    return {
        "id": f"{PREFIX}{made.id}",
        "user": made.user,
        "name": made.name,
        "is_admin": made.is_admin,
        "url": url,
        "seed_file": str(credentials.outside_seed(settings.credentials, made)),
        "publish": made.events,
        "inbox_prefix": made.inbox,
        "signals": made.signals,
        "stream": made.consumer.stream,
        "consumer": made.consumer.name,
        "domain": DOMAIN,
    }


def show(described: dict[str, Any]) -> None:
    """Print it for a person."""
    rows = (
        ("URL", "url"), ("Seed", "seed_file"), ("Publish to", "publish"),
        ("Inbox prefix", "inbox_prefix"), ("Signals", "signals"), ("Stream", "stream"),
        ("Consumer", "consumer"), ("Domain", "domain"),
    )  # fmt: skip
    for label, key in rows:
        output.data(f"{label:<13} {described[key]}")
    output.message("Anyone with the seed can use it. docs/clients.md shows how.")


def stored(settings: Settings) -> list[dict[str, Any]]:
    """Return the credentials there are, without their keys."""
    return [
        {"id": f"{PREFIX}{one.id}", "user": one.user, "name": one.name, "is_admin": one.is_admin}
        for one in credentials.outside(settings.credentials)
    ]


def revoke(settings: Settings, given: str) -> str:
    """End a credential (``bus:user.name``), at once on the embedded broker; return its id.

    The seed goes last, so that whatever fails before may be repeated.

    Raises:
        NotReady: there is none, or nothing runs.
    """
    url = _url(settings)
    wanted = given.removeprefix(PREFIX)
    folder = settings.credentials
    known = [*credentials.outside(folder), *credentials.begun_drops(folder)]
    found = [c for c in known if c.id == wanted]
    if not found:
        raise exits.NotReady("no such credential: `vigil token list` shows them")

    async def remove(admin: Bus) -> None:
        from vigil.broker.provision import remove_outside

        await remove_outside(admin, found[0])

    credentials.begin_drop(folder, found[0])
    _tell_broker(settings)
    asyncio.run(_as_admin(settings, url, remove))
    credentials.drop_outside(folder, found[0])
    return f"{PREFIX}{wanted}"


def _url(settings: Settings) -> str:
    run = runfile.running(settings.run_file)
    url = settings.config.nats.url or (run.nats_url if run else "")
    if not url:
        raise exits.NotReady("Vigil is not running: `vigil up` first, or set NATS_URL")
    return url


def _tell_broker(settings: Settings) -> None:
    from vigil.broker.reload import reload

    run = runfile.running(settings.run_file)
    if run is None or not run.broker_pid:
        output.message(FOREIGN)
        return
    reload(settings.home, run.broker_pid)


async def _as_admin(settings: Settings, url: str, work: Callable[[Bus], Awaitable[None]]) -> None:
    from vigil.local.home import connect_admin

    admin = await connect_admin(settings, url)
    try:
        await work(admin)
    finally:
        await admin.close()
