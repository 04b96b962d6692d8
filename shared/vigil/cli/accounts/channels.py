"""`vigil channels`: every way to people, how each is, and who is paired with it.

Channels are sections of vigil.toml. Who is paired is on the bus, changed with the operator's own
credential, as tokens are: whoever may read that credential's file owns the installation anyway.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from vigil.channels.contract import Channel
from vigil.edits.toml_sections import AT_ONCE
from vigil.errors import InvalidInput
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.credentials import write_private
from vigil.texts.trouble import reason_of
from vigil.words.nearest import meant

from .. import configured, exits, options, output, tables
from ..admin import operator
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .paired import STANDING, Name, Whose, coded, seen, taken_back, view_of

app = CommandLine(
    cls=ListedGroup,
    help="Ways to people: list, add, remove, pair, unpair, test, login. Default: list.",
)
LIST: Final = "vigil channels list"
KINDS_SHOWN: Final = "telegram, slack, discord, matrix, ntfy, apprise or desktop."
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("KIND", "kind"),
    Column("ADDRESS", "address"),
    *STANDING,
)


@app.command("list")
def list_() -> Result:
    """List the channels, how those are that hear, and whose addresses are heard."""
    settings = configured.settings()
    channels = dict(sorted(settings.config.channels.items()))
    people, states = seen(settings, channels)
    listed = [
        {"name": name, "kind": str(type(one).__struct_config__.tag), "address": one.paired_at}
        | view_of(one, settings.home, people.get(name, []), states.get(name, {}))
        for name, one in channels.items()
    ]
    empty = "No channels. `vigil channels add KIND` adds one, `vigil mail add` an e-mail account."
    return tables.listing("channels", listed, COLUMNS, empty=empty)


@app.command()
def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KINDS_SHOWN)],
    name: Annotated[str, typer.Option(help="What it's called. Default: as its kind.")] = "",
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="What the kind asks for; repeatable."),
    ] = None,
    given_files: Annotated[
        list[str] | None,
        typer.Option(
            "--file", metavar="FIELD=FILE", help="The same, as a file has it: for secrets."
        ),
    ] = None,
    user: Whose = None,
) -> Result:
    """Add a channel to vigil.toml; a running Vigil takes it in. What isn't given is asked for."""
    from vigil.edits import channel_sections
    from vigil.local.home import ensure_home

    settings, asked = config.load(), channel_sections.offered().get(kind)
    found = _given(given or [], given_files or [])
    if asked is not None and sys.stdin.isatty():
        found |= answers(asked, found)
    is_somebodys = asked is not None and "user" in asked.__struct_fields__
    whose = user or (options.client().me()["user"] if is_somebodys else "")
    ensure_home(settings)
    planned = channel_sections.plan(settings.config, kind, name, found, whose)
    advice = channel_sections.add(settings, planned)
    lines = [f"[channels.{planned.name}] is in {settings.file}. {AT_ONCE}"]
    if address := config.load().config.channels[planned.name].paired_at:
        lines.append(f"To be heard at {address}: vigil channels pair {planned.name}")
    text = output.printable("\n".join([*lines, advice]).rstrip())
    facts = {"name": planned.name, "kind": kind, "file": str(settings.file)}
    return Result(facts, partial(output.data, text))


def _given(values: list[str], files: list[str]) -> dict[str, str]:
    """Return what is given by options. Raises: InvalidInput."""
    found = dict(_pair_of("--set", one) for one in values)
    for one in files:
        name, file = _pair_of("--file", one)
        try:
            found[name] = Path(file).expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput("--file", f"{file} can't be read: {reason_of(error)}") from error
    return found


def answers(kind: type[Channel], found: dict[str, str]) -> dict[str, str]:
    """Ask for what isn't given yet."""
    given: dict[str, str] = {}
    for one in kind.asked or ():
        if one.name not in found:
            text = f"{one.label} ({one.hint})" if one.hint else one.label
            default = None if one.is_needed else ""
            given[one.name] = typer.prompt(
                text, default, hide_input=one.is_secret, show_default=False, err=True
            )
    return given


def _pair_of(option: str, given: str) -> tuple[str, str]:
    field, mark, value = given.partition("=")
    if not mark or not field:
        raise InvalidInput(option, f"{given!r} must be FIELD=…")
    return field, value


@app.command()
def remove(name: Name) -> Result:
    """Take a channel out of vigil.toml, and forget who was paired with it."""
    from vigil.channels import pairs
    from vigil.edits import channel_sections

    settings = config.load()
    _channel(settings, name)
    channel_sections.remove(settings, name)
    try:
        operator.run(settings, lambda bus: pairs.forget_channel(bus, name))
    except exits.NotReady:
        output.message(f"Vigil isn't running: who was paired with {name} stays paired.")
    text = f"[channels.{name}] is no longer in {settings.file}. {AT_ONCE}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


@app.command()
def pair(
    name: Name,
    address: Annotated[
        str,
        typer.Argument(
            metavar="[ADDRESS]",
            help="The person's own there, as @ann:example.org of Matrix; without, where that's "
            "possible: of whoever brings the code.",
        ),
    ] = "",
    user: Whose = None,
) -> Result:
    """Make a code: a message with it from that address makes the address the person's."""
    settings = config.load()
    channel = _channel(settings, name)
    if address or not channel.is_code_for_anybody:
        channel.check_may_pair(address)
    of = f" from {address}" if address else ""
    what = f"Send this code{of} to {channel.paired_at}, alone with it, within an hour:"
    return coded(settings, name, channel, address, user, what, LIST)


@app.command()
def unpair(
    name: Name,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="As `list` shows it.")],
    user: Whose = None,
) -> Result:
    """Take an address back: it's no longer heard, nor written to."""
    return taken_back(name, address, user, LIST)


@app.command()
def test(name: Name) -> Result:
    """Send yourself a message through a channel, and say how it went."""
    _channel(configured.settings(), name)
    tried = options.client().try_channel(name)
    words = f"{tried['outcome'].replace('_', ' ')}: {tried['reason']}".removesuffix(": ")
    end = None if tried["outcome"] == "taken" else typer.Exit(exits.FAILURE)
    return Result(tried, partial(output.data, output.printable(words)), end)


@app.command()
def login(
    homeserver: Annotated[str, typer.Argument(metavar="URL", help="Of the server of Matrix.")],
    user_id: Annotated[str, typer.Argument(metavar="ID", help="Of the agent's own account.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where the access token is kept.")],
) -> Result:
    """Log in once with a server of Matrix, and keep the token; the password isn't kept."""
    from vigil.channels.matrix.login import token_for
    from vigil.channels.matrix.section import MatrixAccount

    home = config.load().home
    account = MatrixAccount(homeserver=homeserver, user_id=user_id, access_token_file=file)
    account.check_fields()
    path = home / file
    if path.exists():
        raise InvalidInput("FILE", f"{path} is there already; a device is kept for good")
    password = str(typer.prompt(f"Password of {user_id}", hide_input=True, err=True))
    token = asyncio.run(token_for(account, password, home))
    write_private(path, f"{token}\n".encode())
    text = (
        f'The token is in {path}. In vigil.toml:\n\n[channels.matrix]\nkind = "matrix"\n'
        f'homeserver = "{homeserver}"\nuser_id = "{user_id}"\naccess_token_file = "{file}"'
    )
    return Result({"file": str(path)}, partial(output.data, output.printable(text)))


def _channel(settings: Settings, name: str) -> Channel:
    there = settings.config.channels
    if (found := there.get(name)) is None:
        raise exits.NotReady(f"there is no channel {name!r}{meant(name, sorted(there))}")
    return found
