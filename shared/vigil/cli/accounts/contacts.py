"""`vigil contacts`: whom people know, from lists, vCard files and CardDAV servers.

Lists are sections of vigil.toml. What is in them is asked of the gateway, which refreshes them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from vigil.contacts.section import ContactSource, check
from vigil.contacts.source import missing
from vigil.edits import toml_sections
from vigil.edits.toml_sections import AT_ONCE
from vigil.errors import ConfigError, InvalidInput
from vigil.settings import config
from vigil.teams import check_user
from vigil.words.nearest import meant

from .. import completion, exits, options, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

NOT_THEIRS: Final = (
    "Whom it has can be looked up, and doesn't count as known to you. If nobody but you writes to "
    "it, and no program puts senders of mail in, say --mine-alone."
)

app = CommandLine(cls=ListedGroup, help="Whom people know: list, find, add, remove. Default: list.")
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="NAME of [contacts.NAME].", autocompletion=completion.named("contacts")
    ),
]
Whose = Annotated[str | None, typer.Option("--user", help="Whose they are. Default: the token's.")]

SOURCES: Final = (
    Column("NAME", "name"),
    Column("PLACE", "place"),
    Column("STATE", lambda one: one["state"].replace("_", " ")),
    Column("PEOPLE", "people"),
    Column("COUNTS AS KNOWN", lambda one: "yes" if one["counts"] else "no"),
    Column("PROBLEM", lambda one: tables.short(one["problem"])),
)
PEOPLE: Final = (
    Column("NAME", "name"),
    Column("ADDRESSES", lambda one: ", ".join(one.get("addresses", ()))),
    Column("PHONES", lambda one: ", ".join(one.get("phones", ()))),
    Column("FROM", "source"),
)


@app.command("list")
def list_(user: Whose = None) -> Result:
    """List where your contacts come from, and how each is."""
    listed = options.client().contacts(user=user)["sources"]
    empty = "No lists of contacts. `vigil contacts add` adds one."
    return tables.listing("sources", listed, SOURCES, empty=empty)


@app.command()
def find(
    name: Annotated[str, typer.Argument(metavar="WHO", help="A name, its beginning, an address.")],
    user: Whose = None,
) -> Result:
    """Say whom a name means, as an agent finds it."""
    listed = options.client().contacts(name, user=user)["contacts"]
    return tables.listing("contacts", listed, PEOPLE, empty="Nobody of that name.")


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the list is called.")],
    person: Annotated[
        list[str] | None,
        typer.Option(metavar="WHO", help="'Ben Miller <ben@example.org>'; once for each."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Instead: a vCard file.")] = None,
    url: Annotated[str, typer.Option(help="Instead: an address book on a CardDAV server.")] = "",
    login: Annotated[str, typer.Option(help="The user name on that server.")] = "",
    password_file: Annotated[
        Path | None, typer.Option(help="A file with the password; read at each log-in.")
    ] = None,
    mine_alone: Annotated[
        bool, typer.Option("--mine-alone", help="Nobody else, and no program, writes to it.")
    ] = False,
    user: Whose = None,
) -> Result:
    """Add a list to vigil.toml."""
    settings = config.load()
    whose = check_user(user or options.client().me()["user"])
    wanted: dict[str, Any] = {
        "user": whose,
        "people": person or [],
        "file": str(file.expanduser().absolute()) if file else "",
        "url": url,
        "login": login,
        "password_file": str(password_file.expanduser().absolute()) if password_file else "",
        "is_mine_alone": mine_alone,
    }
    values = {key: value for key, value in wanted.items() if value}
    source = msgspec.convert(values, ContactSource)
    try:
        check(name, source)
    except ConfigError as error:
        raise InvalidInput(name, str(error).partition(": ")[2]) from error
    if not source.people and (needed := missing()):
        raise InvalidInput(name, needed)
    from vigil.local.home import ensure_home

    ensure_home(settings)
    toml_sections.add(settings.file, "contacts", name, values)
    advice = "" if source.is_theirs else f"\n{NOT_THEIRS}"
    text = f"[contacts.{name}] is in {settings.file}. {AT_ONCE}{advice}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


@app.command()
def remove(name: Name) -> Result:
    """Take a list out of vigil.toml; whom it had is forgotten."""
    settings = config.load()
    if name not in (there := settings.config.contacts):
        raise exits.NotReady(f"there is no list of contacts {name!r}{meant(name, sorted(there))}")
    toml_sections.remove(settings.file, "contacts", name)
    text = f"[contacts.{name}] is no longer in {settings.file}. {AT_ONCE}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))
