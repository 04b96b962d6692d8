"""`vigil mailbox`: people's own mailboxes, which agents look at for them.

They are sections of vigil.toml; how each is followed the executor tells. A test logs in from here,
with the secrets of this home, and changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil.clock import SystemClock
from vigil.edits import toml_sections
from vigil.edits.toml_sections import AT_ONCE
from vigil.errors import InvalidInput, VigilError
from vigil.mail.servers import missing_libraries
from vigil.settings import config, mailboxes
from vigil.settings.config import Settings
from vigil.settings.mailboxes import FACT, MailboxSection
from vigil.subjects import check_part
from vigil.teams import check_user
from vigil.texts.trouble import reason_of
from vigil.words.amounts import span_of
from vigil.words.nearest import meant

from .. import completion, configured, exits, options, output, tables
from ..admin import operator
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .servers import PasswordFile, StartTls, TokenCommand, login_of, server_of

if TYPE_CHECKING:
    pass

app = CommandLine(
    cls=ListedGroup, help="Your own mailboxes: list, add, test, remove. Default: list."
)
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="NAME of [mailboxes.NAME].",
        autocompletion=completion.named("mailboxes"),
    ),
]


@app.command("list")
def list_() -> Result:
    """List the mailboxes, and how they are followed."""
    settings = configured.settings()
    states: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(exits.NotReady):  # nothing runs: what is configured is shown
        states = operator.asked_once(settings, FACT)()
    listed = [
        _view(name, section, states.get(name, {}))
        for name, section in sorted(settings.config.mailboxes.items())
    ]
    empty = "No mailboxes. `vigil mailbox add` adds one."
    return tables.listing("mailboxes", listed, COLUMNS, empty=empty)


COLUMNS: Final = (
    Column("NAME", "name"),
    Column("ADDRESS", "address"),
    Column("WHOSE", lambda one: f"{one['user']}:{one['agent']}"),
    Column("STATE", "state"),
    Column("READ BY", "row"),
    Column("PROBLEM", lambda one: tables.short(one["problem"])),
)


def _view(name: str, section: MailboxSection, state: dict[str, Any]) -> dict[str, Any]:
    idle = "not followed" if section.is_enabled else "off"
    return {
        "name": name,
        "address": section.address,
        "user": section.user,
        "agent": section.agent,
        "state": state.get("state", idle),
        "problem": state.get("problem", ""),
        "row": f"mail-{name}" if section.reader and section.is_enabled else "",
        "can_send": bool(section.smtp_host),
    }


# ---------------------------------------------------------------- trying


@app.command()
def test(name: Name) -> Result:
    """Log in to a mailbox, and to the server that it sends by. Nothing is sent or changed."""
    settings = configured.settings()
    section = _section(settings, name)
    facts = asyncio.run(tried(name, section, settings.home))
    words = f"in: {facts['in'] or facts['found']}\nout: {facts['out'] or facts['out_found']}"
    end = typer.Exit(exits.FAILURE) if facts["in"] or facts["out"] else None
    return Result(facts, partial(output.data, output.printable(words)), end)


async def tried(name: str, section: MailboxSection, home: Path) -> dict[str, str]:
    """Return what is wrong with the ways in and out, and what there is where nothing is."""
    if missing := missing_libraries():
        return {"in": missing, "found": "", "out": missing, "out_found": ""}
    from vigil.mail.line import MailboxLine, imap_of
    from vigil.mail.mailbox import Mailbox
    from vigil.mail.smtp import SmtpWay, smtp_of

    clock, access, box = SystemClock(), section.access(home), Mailbox()
    facts = {"in": "", "found": "", "out": "", "out_found": "nothing is sent: smtp_host is not set"}
    try:
        server = imap_of(section.imap(), section, section.folder)
        await MailboxLine(server, access, home, clock, name).opened(box)
        how = (
            "tells of new mail" if box.has_idle else f"is looked at every {span_of(section.poll_s)}"
        )
        facts["found"] = f"{section.folder} has {await box.unread()} unread, and {how}"
    except (VigilError, OSError) as error:
        facts["in"] = reason_of(error)
    finally:
        await box.close()
    if section.smtp_host:
        way = SmtpWay(smtp_of(section.smtp(), section), access, home, clock)
        facts["out"], facts["out_found"] = await way.log_in(), "logged in"
    return facts


# ---------------------------------------------------------------- configuring


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the mailbox is called.")],
    address: Annotated[str, typer.Option(help="Your address there.")],
    imap: Annotated[str, typer.Option(metavar="HOST[:PORT]", help="Where it is read.")],
    smtp: Annotated[
        str, typer.Option(metavar="HOST[:PORT]", help="Where it sends. Without, nothing is sent.")
    ] = "",
    login: Annotated[str, typer.Option(help="To log in with. Default: the address.")] = "",
    password_file: PasswordFile = None,
    token_command: TokenCommand = None,
    starttls: StartTls = False,
    user: Annotated[str | None, typer.Option(help="Whose it is. Default: the token's.")] = None,
    agent: Annotated[str, typer.Option(help="Who looks at it.")] = "vigil",
) -> Result:
    """Add a mailbox to vigil.toml."""
    settings = config.load()
    check_part("name", name)
    wanted: dict[str, Any] = {
        "user": check_user(user or options.client().me()["user"]),
        "agent": agent if agent != "vigil" else "",
        "address": address,
        **server_of("imap", imap, starttls=starttls),
        **(server_of("smtp", smtp, starttls=starttls) if smtp else {}),
        "login": login,
        **login_of(password_file, token_command),
    }
    values = {key: value for key, value in wanted.items() if value}
    section = msgspec.convert(values, MailboxSection)
    mailboxes.check_fields(name, section)
    section.access(settings.home).check()
    from vigil.local.home import ensure_home

    ensure_home(settings)
    toml_sections.add(settings.file, "mailboxes", name, values)
    tries = f"`vigil mailbox test {name}` tries it."
    text = f"[mailboxes.{name}] is in {settings.file}. {tries} {AT_ONCE}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


@app.command()
def remove(name: Name) -> Result:
    """Take a mailbox out of vigil.toml. What was kept of its mails stays until it is too old."""
    settings = config.load()
    _section(settings, name)
    toml_sections.remove(settings.file, "mailboxes", name)
    text = f"[mailboxes.{name}] is no longer in {settings.file}. {AT_ONCE}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


def _section(settings: Settings, name: str) -> MailboxSection:
    found = settings.config.mailboxes
    if name not in found:
        raise exits.NotReady(f"there is no mailbox {name!r}{meant(name, found)}")
    return found[name]


def invalid(section: MailboxSection, home: Path) -> str:
    """Return why a mailbox can't be opened, by its files; empty: nothing is in its way."""
    try:
        section.access(home).check()
    except InvalidInput as error:
        return str(error)
    return missing_libraries()
