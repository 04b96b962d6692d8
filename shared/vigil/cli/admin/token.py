"""`vigil token`: who may use the API.

Tokens are made on the bus with the operator's own credential, not over HTTP: whoever may read
that credential's file owns the installation anyway, and no token is needed to make the first.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil.local import runfile
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import check_user

from .. import exits, options, output, tables
from ..tables import Column
from . import programs

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of people.")


def _run(task: Callable[[Bus], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with operator(config.load()) as bus:
            return await task(bus)

    return asyncio.run(main())


@contextlib.asynccontextmanager
async def operator(settings: Settings) -> AsyncIterator[Bus]:
    """Connect to the broker as the one who makes tokens. Raises: NotReady, ConfigError."""
    from vigil.bus.bus import Bus
    from vigil.settings import credentials

    run = runfile.running(settings.run_file)
    url = settings.config.nats.url or (run.nats_url if run else "")
    if not url:
        raise exits.NotReady("Vigil is not running: `vigil up` first, or set NATS_URL")
    seed = credentials.load(settings.credentials, "operator")
    bus = await Bus.connect(url, role="operator", seed=seed)
    try:
        yield bus
    finally:
        await bus.close()


@app.command()
def create(
    user: Annotated[str, typer.Option(help="Whom it speaks for.")],
    admin: Annotated[bool, typer.Option("--admin", help="May also do what is for all.")] = False,
    name: Annotated[str, typer.Option(help='For you to tell tokens apart: "laptop".')] = "",
    expires_days: Annotated[
        float | None, typer.Option(min=0.001, help="Days until it ends. Default: never.")
    ] = None,
    bus: Annotated[
        bool, typer.Option("--bus", help="For a program on the bus: a key of NATS, no token.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Make a token and print it. It is shown once and stored nowhere."""
    check_user(user)
    if bus:
        if expires_days is not None:
            raise typer.BadParameter("a credential for the bus ends when it is revoked")
        made = programs.create(config.load(), user, name, is_admin=admin)
        output.json(made) if json else programs.show(made)
        return
    now = datetime.now(UTC)
    expires_at = now + timedelta(days=expires_days) if expires_days is not None else None

    async def make(bus: Bus) -> str:
        from vigil.settings import tokens

        return await tokens.create(
            bus, user=user, now=now, is_admin=admin, name=name, expires_at=expires_at
        )

    text = _run(make)
    if json:
        output.json({"token": text, "user": user, "is_admin": admin, "expires_at": expires_at})
        return
    output.data(text)
    output.message("Keep it: it can't be shown again. Use it as VIGIL_TOKEN.")


@app.command("list")
def list_all(json: options.Json = False) -> None:
    """List the tokens, and the credentials of programs: their ids, never their text."""
    found = sorted(_run(_stored), key=lambda t: (t["user"], str(t["created_at"])))
    on_bus = programs.stored(config.load())
    if json:
        output.json({"tokens": found, "programs": on_bus})
        return
    programs_shown = [{**one, "is_on_bus": True} for one in on_bus]
    if not (found or programs_shown):
        output.message("No tokens. `vigil token create` makes one.")
    else:
        tables.table(COLUMNS, [*found, *programs_shown])


def _role(token: Mapping[str, Any]) -> str:
    """Say what a token may do, and where.

    >>> _role({"is_admin": True}), _role({"is_admin": True, "is_on_bus": True})
    ('admin', 'bus, admin')
    """
    parts = (("bus", token.get("is_on_bus")), ("admin", token["is_admin"]))
    return ", ".join(name for name, holds in parts if holds)


COLUMNS: Final = (
    Column("ID", "id"),
    Column("USER", "user"),
    Column("ROLE", _role),
    Column("NAME", "name"),
    Column("CREATED", "created_at", is_instant=True),
    Column("EXPIRES (UTC)", lambda one: tables.instant(one.get("expires_at")) or "never"),
)


async def _stored(bus: Bus) -> list[dict[str, Any]]:
    from vigil.bus.kv import Bucket
    from vigil.settings import tokens

    entries: dict[str, bytes] = {}

    def take(token_id: str, value: bytes | None) -> None:
        if value is not None:
            entries[token_id] = value

    watch = await Bucket(bus, tokens.BUCKET).watch(take)
    await watch.close()
    result = []
    for token_id, value in entries.items():
        token = msgspec.json.decode(value, type=tokens.Token)
        result.append({"id": token_id, **msgspec.structs.asdict(token)})
    return result


@app.command()
def revoke(
    token: Annotated[
        str, typer.Argument(help="The token, its id or the start of it, or bus:USER.NAME.")
    ],
    json: options.Json = False,
) -> None:
    """End a token, at once and everywhere."""
    if token.startswith(programs.PREFIX):
        ended = programs.revoke(config.load(), token)
        tables.done(f"Revoked {ended}.", {"revoked": ended}, is_json=json)
        return

    async def end(bus: Bus) -> str:
        from vigil.settings import tokens

        token_id = _resolve(token, {t["id"] for t in await _stored(bus)})
        await tokens.revoke(bus, token_id)
        return token_id

    token_id = _run(end)
    tables.done(f"Revoked {token_id[:12]}.", {"revoked": token_id}, is_json=json)


def _resolve(given: str, known: set[str]) -> str:
    """Return the id that was meant. Raises: NotReady, BadParameter."""
    from vigil.settings import tokens

    wanted = tokens.token_id_of(given) if given.startswith(tokens.PREFIX) else given
    found = [token_id for token_id in known if token_id.startswith(wanted)] if wanted else []
    if not found:
        raise exits.NotReady("no such token: `vigil token list` shows them")
    if len(found) > 1:
        raise typer.BadParameter(f"{len(found)} tokens start with that: give more of the id")
    return found[0]
