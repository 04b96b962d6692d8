"""What several commands share: the options, and where they connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

import typer

from vigil.errors import InvalidInput
from vigil.sdk.client import Client, connect
from vigil.settings import config
from vigil.subjects import SessionKey, check_part
from vigil.teams import TEAM
from vigil.words.nearest import meant

from . import completion

Json = Annotated[
    bool, typer.Option("--json", help="Print JSON: one object, or one a line for streams.")
]
Agent = Annotated[str, typer.Option("--agent", help="The agent.", autocompletion=completion.agents)]
Thread = Annotated[str | None, typer.Option("--thread", help="The thread to go on with.")]
Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="A session: userId:agentId:threadId.",
        autocompletion=completion.session_keys,
    ),
]

Service = Literal["gateway", "cortex", "memory", "scheduler", "executor", "delivery"]


def id_of(thing: str, command: str, offer: Callable[..., Any] | None = None, text: str = "") -> Any:
    """Return the argument that is an id, or the beginning of one; `command` lists them."""
    text = text or f"Of {thing}, as `{command}` lists; its beginning is enough."
    return typer.Argument(metavar="ID", help=text, autocompletion=offer)


def check_services(names: list[str] | None) -> list[str]:
    """Return the names; raise BadParameter for one that is no service."""
    for name in names or ():
        if name not in (there := get_args(Service)):
            raise typer.BadParameter(f"no service is called {name}{meant(name, there)}")
    return names or []


def reset(names: list[str] | None, fields: Mapping[str, str]) -> dict[str, None]:
    """Return the fields that are to be as configured again.

    Args:
        names: as typed: those of options, or of fields.
        fields: that can be, by each name.

    Raises:
        InvalidInput: there is no such field.

    >>> reset(["zone", "quiet-hours"], {"zone": "timezone", "quiet_hours": "quiet_hours"})
    {'timezone': None, 'quiet_hours': None}
    """
    wanted = {name: name.replace("-", "_") for name in names or ()}
    for name, field in wanted.items():
        if field not in fields:
            raise InvalidInput("--reset", f"nothing is called {name!r}{meant(field, fields)}")
    return {fields[field]: None for field in wanted.values()}


def client() -> Client:
    """Return a client of what the settings, or VIGIL_URL and VIGIL_TOKEN, lead to."""
    return connect(config.unread())


def checked(key: str) -> str:
    """Return `key` if it is a session key. Raises: InvalidInput."""
    return str(SessionKey.parse(key))


def session_of(client: Client, agent: str, thread: str | None) -> SessionKey:
    """Return the session of the token's own user, or of their team with its agent; without a
    thread, the home.

    Raises:
        InvalidInput, ApiError.
    """
    check_part("agent", agent)
    if thread is not None:
        check_part("thread", thread)
    me = client.me()
    owner = TEAM if agent in me.get("teams", ()) else me["user"]
    return SessionKey.of(owner, agent, thread or me["home_thread"])
