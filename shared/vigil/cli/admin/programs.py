"""Credentials of outside programs: what `vigil token` does with ``--bus`` and ``bus:…``.

A program gets an nkey of its own, a durable consumer for signals, and an account on the broker
that reaches one subject of events (:mod:`vigil.outside.programs`). The embedded broker learns
of it at once; a broker of one's own reads the configuration that `vigil provision` writes.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from vigil.errors import VigilError
from vigil.local import runfile
from vigil.outside.programs import DOMAIN, Outside
from vigil.settings import credentials
from vigil.settings.config import Settings

from .. import exits, output, tables
from ..tables import Column
from . import operator

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


def create(
    settings: Settings, user: str, name: str, *, is_admin: bool, since: datetime | None = None
) -> dict[str, Any]:
    """Make a credential, and tell everything that its program needs.

    Args:
        since: when the signals begin that it gets, aware UTC; None: now.

    Raises:
        InvalidInput: the user or the name can't be used.
        NotReady: nothing runs.
    """
    url = operator.url_of(settings)
    made = credentials.make_outside(
        settings.credentials, user, name or DEFAULT_NAME, is_admin=is_admin, since=since
    )

    async def add(admin: Bus) -> None:
        from vigil.broker.provision import provision_outside

        await provision_outside(admin, [made])

    async def take_back(admin: Bus) -> None:
        from vigil.broker.provision import remove_outside

        await remove_outside(admin, made)

    try:
        operator.run_as_admin(settings, add)
        _reload_broker(settings)
    except VigilError:
        credentials.drop_outside(settings.credentials, made)
        with contextlib.suppress(VigilError):
            operator.run_as_admin(settings, take_back)
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


FIELDS: Final = (
    Column("URL", "url"),
    Column("Seed", "seed_file"),
    Column("Publish to", "publish"),
    Column("Inbox prefix", "inbox_prefix"),
    Column("Signals", "signals"),
    Column("Stream", "stream"),
    Column("Consumer", "consumer"),
    Column("Domain", "domain"),
)


def show(described: dict[str, Any]) -> None:
    """Print it for a person."""
    tables.fields(FIELDS, described)
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
    operator.url_of(settings)
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
    _reload_broker(settings)
    operator.run_as_admin(settings, remove)
    credentials.drop_outside(folder, found[0])
    return f"{PREFIX}{wanted}"


def _reload_broker(settings: Settings) -> None:
    from vigil.broker.reload import reload

    run = runfile.running(settings.run_file)
    if run is None or not run.broker_pid:
        output.message(FOREIGN)
        return
    reload(settings.home, run.broker_pid)
