"""`vigil mail`: e-mail accounts of agents, and whose addresses are heard.

Accounts are sections of vigil.toml. Who is paired is on the bus, changed with the operator's own
credential, as tokens are: whoever may read that credential's file owns the installation anyway.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil.channels.mail.section import MailAccount
from vigil.edits import toml_sections
from vigil.edits.toml_sections import AT_ONCE
from vigil.errors import InvalidInput, VigilError
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import check_part
from vigil.words.nearest import meant

from .. import configured, exits, options, output, tables
from ..admin import operator
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .paired import HEARS, STANDING, Name, Whose, coded, seen, taken_back, view_of
from .servers import PasswordFile, StartTls, TokenCommand, login_of, server_of

if TYPE_CHECKING:
    from vigil.bus.bus import Bus
    from vigil.channels.pairs import ChannelPerson

app = CommandLine(
    cls=ListedGroup, help="E-mail accounts: list, add, test, pair, unpair, remove. Default: list."
)
Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="An address of the person's own.")]
LIST: Final = "vigil mail list"


# ---------------------------------------------------------------- looking


@app.command("list")
def list_() -> Result:
    """List the accounts, how they are, and whose addresses are heard."""
    settings = configured.settings()
    accounts = accounts_of(settings)
    people, states = seen(settings, accounts)
    listed = [
        _view(name, account, settings.home, people.get(name, []), states.get(name, {}))
        for name, account in accounts.items()
    ]
    empty = "No e-mail accounts. `vigil mail add` adds one."
    return tables.listing("accounts", listed, COLUMNS, empty=empty)


COLUMNS: Final = (
    Column("NAME", "name"),
    Column("ADDRESS", "address"),
    *STANDING,
)


def accounts_of(settings: Settings) -> dict[str, MailAccount]:
    """Return the accounts that are configured, by name."""
    found = sorted(settings.config.channels.items())
    return {name: one for name, one in found if isinstance(one, MailAccount)}


def _view(
    name: str,
    account: MailAccount,
    home: Path,
    people: list[ChannelPerson],
    state: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "name": name,
        "address": account.address,
        "unproven": state.get("unproven", 0),
        **view_of(account, home, people, state),
    }


@app.command()
def test(name: Name) -> Result:
    """Send yourself a mail through an account, and say whether it hears."""
    account = _account(config.load(), name)
    tried = options.client().try_channel(name)
    state: dict[str, Any] = {}
    with contextlib.suppress(VigilError):
        state = operator.asked_once(config.load(), HEARS)().get(name, {})
    words = f"out: {tried['outcome'].replace('_', ' ')}: {tried['reason']}"
    if account.imap_host:
        problem = f": {state['problem']}" if state.get("problem") else ""
        words += f"\nin: {state.get('state', 'not known')}{problem}"
    is_well = tried["outcome"] == "taken" and not state.get("problem")
    facts = {"out": tried, "in": state}
    end = None if is_well else typer.Exit(exits.FAILURE)
    return Result(facts, partial(output.data, output.printable(words)), end)


# ---------------------------------------------------------------- whose address


@app.command()
def pair(name: Name, address: Address, user: Whose = None) -> Result:
    """Make a code: a mail with it from that address makes the address the person's."""
    settings = config.load()
    account = _account(settings, name)
    account.check_may_pair(address)
    what = f"Send a mail with this code from {address} to {account.address}, within an hour:"
    return coded(settings, name, account, address, user, what, LIST)


@app.command()
def unpair(name: Name, address: Address, user: Whose = None) -> Result:
    """Take an address back: it's no longer heard, nor written to."""
    return taken_back(name, address, user, LIST)


# ---------------------------------------------------------------- configuring


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the channel is called.")],
    address: Annotated[str, typer.Option(help="Of the account, which is the agent's own.")],
    smtp: Annotated[str, typer.Option(metavar="HOST[:PORT]", help="Where it sends.")],
    imap: Annotated[
        str, typer.Option(metavar="HOST[:PORT]", help="Where it reads. Without, it only writes.")
    ] = "",
    user: Annotated[str, typer.Option(help="To log in with. Default: the address.")] = "",
    password_file: PasswordFile = None,
    token_command: TokenCommand = None,
    starttls: StartTls = False,
    authserv_id: Annotated[
        str, typer.Option(help="The server whose Authentication-Results are believed.")
    ] = "",
    rejects_forgeries: Annotated[
        bool, typer.Option("--rejects-forgeries", help="The server lets no forged From in.")
    ] = False,
    console_url: Annotated[str, typer.Option(help="Where people reach the console.")] = "",
) -> Result:
    """Add an account to vigil.toml."""
    settings = config.load()
    check_part("name", name)
    wanted: dict[str, Any] = {
        "kind": "mail",
        "address": address,
        "user": user,
        **server_of("smtp", smtp, starttls=starttls),
        **(server_of("imap", imap, starttls=starttls) if imap else {}),
        **login_of(password_file, token_command),
        "authserv_id": authserv_id,
        "rejects_forgeries": rejects_forgeries,
        "console_url": console_url,
    }
    values = {key: value for key, value in wanted.items() if value}
    account = msgspec.convert(values, MailAccount)
    found = account.examine(settings.home)
    if found.state == "fail":
        raise InvalidInput(name, found.found)
    from vigil.local.home import ensure_home

    ensure_home(settings)
    toml_sections.add(settings.file, "channels", name, values)
    advice = f"\n{found.found}: {found.advice}" if found.advice else ""
    text = f"[channels.{name}] is in {settings.file}. {AT_ONCE}{output.printable(advice)}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


@app.command()
def remove(name: Name) -> Result:
    """Take an account out of vigil.toml, and forget who was paired with it."""
    settings = config.load()
    _account(settings, name)
    toml_sections.remove(settings.file, "channels", name)
    try:
        operator.run(settings, lambda bus: _forget(bus, name))
    except exits.NotReady:
        output.message(f"Vigil isn't running: who was paired with {name} stays paired.")
    text = f"[channels.{name}] is no longer in {settings.file}. {AT_ONCE}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


async def _forget(bus: Bus, name: str) -> None:
    from vigil.channels import pairs

    await pairs.forget_channel(bus, name)


def _account(settings: Settings, name: str) -> MailAccount:
    accounts = accounts_of(settings)
    if name not in accounts:
        raise exits.NotReady(f"there is no e-mail account {name!r}{meant(name, accounts)}")
    return accounts[name]
