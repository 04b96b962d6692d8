"""`vigil token`: who may use the API.

Tokens are made on the bus with the operator's own credential, not over HTTP: whoever may read
that credential's file owns the installation anyway, and no token is needed to make the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil.settings import config
from vigil.teams import check_user

from .. import configured, output, prefixes, tables, times, wall
from ..registry import CommandLine
from ..tables import Column, Result
from . import operator, programs

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

app = CommandLine(no_args_is_help=True, help="Make, list and revoke the tokens of people.")


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
    last: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="With --bus: its signals begin there: 2h, 7d. Default: now."
        ),
    ] = None,
) -> Result:
    """Make a token and print it. It is shown once and stored nowhere."""
    check_user(user)
    now = datetime.now(UTC)
    if bus:
        if expires_days is not None:
            raise typer.BadParameter("a credential for the bus ends when it is revoked")
        since = times.moment("--last", last, now, lambda: "UTC") if last else None
        made = programs.create(config.load(), user, name, is_admin=admin, since=since)
        return Result(made, partial(programs.show, made))
    if last is not None:
        raise typer.BadParameter("--last is for a credential for the bus: --bus")
    expires_at = now + timedelta(days=expires_days) if expires_days is not None else None

    settings = config.load()

    async def make(bus: Bus) -> tuple[str, str]:
        from vigil.settings import own, tokens

        person = await own.standing(bus, user, settings.config.person_of(user))
        made = await tokens.create(
            bus, user=user, now=now, is_admin=admin, name=name, expires_at=expires_at
        )
        return made, person.timezone

    text, zone = operator.run(settings, make)
    facts = {"token": text, "user": user, "is_admin": admin, "expires_at": expires_at}
    return Result(facts | {"timezone": zone}, partial(_show, text, user, zone))


def _show(text: str, user: str, zone: str) -> None:
    output.data(text)
    output.message("Keep it: it can't be shown again. Use it as VIGIL_TOKEN.")
    output.message(f"{user}'s clocks go by {zone}; `vigil me --timezone ZONE` with it sets others.")


@app.command("list")
def list_all() -> Result:
    """List the tokens, and the credentials of programs: their ids, never their text."""
    settings = configured.settings()
    found = sorted(operator.run(settings, stored), key=lambda t: (t["user"], str(t["created_at"])))
    on_bus = programs.stored(settings)
    shown = [*found, *({**one, "is_on_bus": True} for one in on_bus)]
    listed = tables.listing(
        "tokens", shown, COLUMNS, empty="No tokens. `vigil token create` makes one."
    )
    return listed._replace(facts={"tokens": found, "programs": on_bus})


def _role(token: Mapping[str, Any]) -> str:
    """Say what a token may do, and where.

    >>> _role({"is_admin": True}), _role({"is_admin": True, "is_on_bus": True})
    ('admin', 'bus, admin')
    >>> _role({"is_admin": False, "scopes": ("calendar",)})
    'calendar'
    """
    is_link = "calendar" in token.get("scopes", ())
    parts = (("bus", token.get("is_on_bus")), ("admin", token["is_admin"]), ("calendar", is_link))
    return ", ".join(name for name, holds in parts if holds)


COLUMNS: Final = (
    Column("ID", "id"),
    Column("USER", "user"),
    Column("ROLE", _role),
    Column("NAME", "name"),
    Column("CREATED", "created_at", is_instant=True),
    Column("EXPIRES", lambda one: wall.zoned(one.get("expires_at")) or "never"),
)


async def stored(bus: Bus) -> list[dict[str, Any]]:
    from vigil.settings import tokens

    return [
        {"id": id_, **msgspec.structs.asdict(msgspec.json.decode(value, type=tokens.Token))}
        for id_, value in (await operator.entries(bus, tokens.BUCKET)).items()
    ]


@app.command()
def revoke(
    token: Annotated[
        str, typer.Argument(help="The token, its id or the start of it, or bus:USER.NAME.")
    ],
) -> Result:
    """End a token, at once and everywhere."""
    settings = config.load()
    if token.startswith(programs.PREFIX):
        ended = programs.revoke(settings, token)
        return tables.done(f"Revoked {ended}.", {"revoked": ended})

    async def end(bus: Bus) -> str:
        from vigil.settings import tokens

        wanted = tokens.token_id_of(token) if tokens.is_token(token) else token
        there = [one["id"] for one in await stored(bus)]
        token_id = prefixes.whole("token", wanted, there, length=None)
        await tokens.revoke(bus, token_id)
        return token_id

    token_id = operator.run(settings, end)
    return tables.done(f"Revoked {token_id[:12]}.", {"revoked": token_id})
