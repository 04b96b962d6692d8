"""`vigil calendar`: calendars of people, as sections of vigil.toml, and how each is."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil.calendars.section import CalendarKind, CalendarSection
from vigil.calendars.section import check as check_section
from vigil.edits import toml_sections
from vigil.edits.toml_sections import AT_ONCE
from vigil.errors import ConfigError, InvalidInput, Unavailable, VigilError
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import check_part
from vigil.words import amounts
from vigil.words.nearest import meant
from vigil.zones.database import zone_named

from .. import completion, configured, exits, options, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

if TYPE_CHECKING:
    from vigil.calendars.mirror import Mirror

SHOWN: Final = timedelta(days=7)
SHOWN_MAX: Final = 10
TABLE: Final = "calendars"

app = CommandLine(cls=ListedGroup, help="Calendars: list, add, test, remove. Default: list.")
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="NAME of [calendars.NAME].",
        autocompletion=completion.named("calendars"),
    ),
]


@app.command("list")
def list_() -> Result:
    """List the calendars, and how each is."""
    settings = configured.settings()
    listed: list[dict[str, Any]] = [
        {
            "name": name,
            "kind": one.kind,
            "owner": one.user,
            "is_writable": one.is_writable,
            "state": "not_running",
            "synced_at": None,
            "problem": "",
            "remarks": [],
            "events": 0,
        }
        for name, one in sorted(settings.config.calendars.items())
    ]
    with contextlib.suppress(VigilError, KeyError):  # nothing runs: what is configured is shown
        known = {one["name"]: one for one in options.client().calendars()}
        listed = [known.get(one["name"], one) for one in listed]
    empty = "No calendars. `vigil calendar add` adds one."
    return tables.listing(TABLE, listed, COLUMNS, empty=empty)


COLUMNS: Final = (
    Column("NAME", "name"),
    Column("KIND", "kind"),
    Column("OWNER", "owner"),
    Column("STATE", "state"),
    Column("EVENTS", "events"),
    Column("PROBLEM", lambda one: tables.short(one["problem"] or "; ".join(one["remarks"]))),
)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the calendar is called.")],
    url: Annotated[str, typer.Option(help="Of the collection, or of the document.")] = "",
    file: Annotated[str, typer.Option(help="Instead: an iCalendar file on this machine.")] = "",
    kind: Annotated[str, typer.Option(help="caldav, ics or file. Default: by url and file.")] = "",
    user: Annotated[str, typer.Option(help="Whose it is. Default: the token's.")] = "",
    login: Annotated[str, typer.Option(help="The user name on its server.")] = "",
    password_file: Annotated[
        Path | None, typer.Option(help="A file with the password; read at each log-in.")
    ] = None,
    writable: Annotated[
        bool, typer.Option("--writable", help="Events may be made, changed and cancelled.")
    ] = False,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificates to trust instead of the system's.")
    ] = None,
    zone: Annotated[str, typer.Option(help="Of events without one. Default: the person's.")] = "",
) -> Result:
    """Add a calendar to vigil.toml, after it was read once."""
    settings = config.load()
    check_part("name", name)
    wanted: dict[str, Any] = {
        "kind": kind or kind_of(url, file),
        "url": url,
        "file": str(Path(file).expanduser().absolute()) if file else "",
        "user": user or _user(),
        "login": login,
        "password_file": str(password_file.expanduser().absolute()) if password_file else "",
        "is_writable": writable,
        "ca_file": str(ca_file.expanduser().absolute()) if ca_file else "",
        "zone": zone,
    }
    values = {key: value for key, value in wanted.items() if value}
    try:
        section = msgspec.convert(values, CalendarSection)
        check_section(name, section)
    except (msgspec.ValidationError, ConfigError) as error:
        raise InvalidInput(name, str(error)) from error
    found = read_once(settings, section)
    from vigil.local.home import ensure_home

    ensure_home(settings)
    toml_sections.add(settings.file, TABLE, name, values)
    text = f"[{TABLE}.{name}] is in {settings.file}: {described(found)}. {AT_ONCE}"
    facts = {"name": name, "file": str(settings.file), "events": count_of(found)}
    return Result(facts, partial(output.data, output.printable(text)))


def kind_of(url: str, file: str) -> CalendarKind:
    """Return what kind a calendar is by where it is.

    >>> kind_of("https://dav.example/ann/work/", ""), kind_of("webcal://a.example/x.ics", "")
    ('caldav', 'ics')
    """
    if file:
        return "file"
    return "caldav" if url.endswith("/") else "ics"


def _user() -> str:
    with contextlib.suppress(VigilError, KeyError):
        return str(options.client().me()["user"])
    return ""


@app.command()
def test(name: Name) -> Result:
    """Read a calendar now, from this machine, and show what is due in the next days."""
    settings = configured.settings()
    section = _section(settings, name)
    found = read_once(settings, section)
    lines = [f"{name}: {described(found)}", *upcoming(settings, section, found)]
    facts = {"name": name, "events": count_of(found)}
    return Result(facts, partial(output.data, output.printable("\n".join(lines))))


@app.command()
def remove(name: Name) -> Result:
    """Take a calendar out of vigil.toml, and forget what was seen of it."""
    from vigil.calendars import mirror

    settings = config.load()
    section = _section(settings, name)
    toml_sections.remove(settings.file, TABLE, name)
    mirror.path_of(settings.home, name, section).unlink(missing_ok=True)
    text = f"[{TABLE}.{name}] is no longer in {settings.file}. {AT_ONCE}"
    return Result({"name": name, "file": str(settings.file)}, partial(output.data, text))


# ---------------------------------------------------------------- a look


def read_once(settings: Settings, section: CalendarSection) -> Mirror:
    """Return a calendar as it is now; nothing is kept of it. Raises: NotReady, it can't be read."""
    from vigil.calendars.reader import CalendarReader

    try:
        return asyncio.run(CalendarReader(section, settings.home).read(None, datetime.now(UTC)))
    except Unavailable as error:
        raise exits.NotReady(str(error)) from error


def count_of(found: Mirror) -> int:
    return sum(bool(one.uid and one.instances) for one in found.objects)


def described(found: Mirror) -> str:
    """Say what a look found."""
    from vigil.calendars.mirror import remarks_of

    remarks = remarks_of(found)
    events = amounts.count_of(count_of(found), "event")
    return f"{events}; {'; '.join(remarks[:3])}" if remarks else events


def upcoming(settings: Settings, section: CalendarSection, found: Mirror) -> list[str]:
    """Return what is due in the next days, a line each."""
    from vigil.calendars.agenda import CalendarAgenda

    zone = zone_named(section.zone or settings.config.person_of(section.user).timezone)
    now = datetime.now(UTC)
    there = CalendarAgenda(found.objects).between(now, now + SHOWN, zone)
    lines = [
        f"  {one.begins_at.astimezone(zone):%a %Y-%m-%d}"
        f" {'all day' if one.is_all_day else f'{one.begins_at.astimezone(zone):%H:%M}'}"
        f"  {one.text.title}"
        for one in there[:SHOWN_MAX]
    ]
    more = len(there) - SHOWN_MAX
    return [*lines, f"  … and {more} more"] if more > 0 else lines


def _section(settings: Settings, name: str) -> CalendarSection:
    there = settings.config.calendars
    if name not in there:
        raise exits.NotReady(f"there is no calendar {name!r}{meant(name, sorted(there))}")
    return there[name]
