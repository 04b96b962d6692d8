"""`grants`: what an agent may do without asking; list, add, show, revoke.

What is allowed is shown exactly, as JSON in which nothing can hide, before it is made.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final, get_args

import msgspec
import typer

from vigil.contracts import Address, Argv, Equal, Folder
from vigil.contracts.board.grant import AnyConstraint, Empty, More
from vigil.errors import InvalidInput
from vigil.grants import address
from vigil.sdk.client import Client
from vigil.texts.exact import exact

from .. import completion, options, output, prefixes, tables
from ..board import kinds
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from ..times import until

GIST_LENGTH_MAX: Final = 80
ID_LENGTH: Final = 32

app = CommandLine(
    cls=ListedGroup,
    help="What an agent may do without asking: list, add, show, revoke. Default: list.",
)

Id = Annotated[str, options.id_of("a grant", "vigil grants", completion.grant_names)]
Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]
Session = Annotated[
    str | None, typer.Option("--session", metavar="KEY", help="In this conversation only.")
]
RowId = Annotated[
    str | None,
    typer.Option("--row", metavar="NAME", help="In runs of this row of the timetable only."),
]
GoalId = Annotated[
    str | None, typer.Option("--goal", metavar="ID", help="In what is done for this goal only.")
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="WHEN", help="2027-01-01, or 30d for in 30 days.")
]
Uses = Annotated[int, typer.Option("--uses", min=0, help="How often, at most. 0: no limit.")]
Outside = Annotated[
    bool,
    typer.Option("--outside", help="Also once content from outside had a part in the decision."),
]
Why = Annotated[str, typer.Option("--why", help="For yourself.")]


def _uses(one: Mapping[str, Any]) -> str:
    return f"{one['uses']} of {one['uses_max']}" if one["uses_max"] else str(one["uses"])


def _remark(one: Mapping[str, Any]) -> str:
    """Return what there is to say of it; what isn't used is proposed for removal (LOOPS L-8).

    >>> _remark({"name": "g1", "made_by": "person", "is_unused": True, "ended": ""})
    'unused for 30 days: vigil grants revoke g1'
    """
    is_configured = one["made_by"] == "configuration"
    end = "remove it there" if is_configured else f"vigil grants revoke {one['name']}"
    unused = f"unused for 30 days: {end}" if one["is_unused"] else ""
    made = "of vigil.toml" if is_configured else ""
    return str(one["ended"]) or ", ".join(filter(None, (made, unused)))


COLUMNS: Final = (
    Column("NAME", "name"),
    Column("ID", lambda one: one["id"][:8]),
    Column("TOOL", "tool"),
    Column("ALLOWS", lambda one: tables.short(exact(one["constraints"]), GIST_LENGTH_MAX)),
    Column("USES", _uses, rank=1),
    Column("LAST USED", "last_used_at", is_instant=True, rank=2),
    Column("REMARK", _remark),
)
FIELDS: Final = (
    Column("name", "name"),
    Column("id", "id"),
    Column("owner", "owner"),
    Column("agent", "agent_id"),
    Column("tool", "tool"),
    Column("session", "session_key"),
    Column("row", "row"),
    Column("goal", "goal"),
    Column("outside", lambda one: "holds for outside content" if one["holds_for_outside"] else ""),
    Column("expires", "expires_at", is_instant=True),
    Column("uses", _uses),
    Column("last used", "last_used_at", is_instant=True),
    Column("made by", "made_by"),
    Column("made", "made_at", is_instant=True),
    Column("why", "why"),
    Column("remark", _remark),
    Column("revision", "revision"),
)


@app.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Also what ended.")] = False,
) -> Result:
    """List what was allowed beforehand, the newest first; REMARK names what isn't used."""
    found = options.client().grants(state="all" if everything else "standing")
    return tables.listing("grants", found, COLUMNS, empty="Nothing is allowed beforehand.")


@app.command()
def show(id_: Id) -> Result:
    """Show one: exactly what it allows, and how it was used."""
    found = _find(options.client(), id_)
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    tables.fields(FIELDS, found)
    output.data("allows")
    output.data(exact(found["constraints"], indent=2))


@app.command()
def add(
    tool: Annotated[str, typer.Argument(help="shell, http_get, SERVER__TOOL, or SERVER__*.")],
    command: Annotated[
        str | None,
        typer.Option("--command", help="shell: the program and its first arguments."),
    ] = None,
    more: Annotated[
        str,
        typer.Option("--more", help="What may follow: nothing, operands (no options), anything."),
    ] = "nothing",
    url: Annotated[
        str | None, typer.Option("--url", help="This host, and paths below that of the URL.")
    ] = None,
    folder: Annotated[str | None, typer.Option("--folder", help="Paths in this folder.")] = None,
    equal: Annotated[
        list[str] | None,
        typer.Option("--equal", metavar="FIELD=JSON", help="An argument has this value."),
    ] = None,
    empty: Annotated[
        list[str] | None,
        typer.Option("--empty", metavar="FIELD", help="An argument names nobody, or nothing."),
    ] = None,
    agent: options.Agent = "vigil",
    name: Annotated[str | None, typer.Option("--name", help="Instead of g1, g2, …")] = None,
    session: Session = None,
    row: RowId = None,
    goal: GoalId = None,
    expires: Expires = None,
    uses: Uses = 0,
    outside: Outside = False,
    why: Why = "",
    yes: Yes = False,
) -> Result:
    """Allow calls beforehand. It's shown first, and made when you agree."""
    found = constraints(command, more, url, folder, equal or (), empty or ())
    client = options.client()
    wanted = {
        "agent": agent,
        "name": name,
        "session_key": session,
        "row": row_of(client, row),
        "goal": kinds.id_of(client, "goals", goal),
        "expires_at": expiry(client, expires),
        "uses_max": uses,
        "holds_for_outside": outside,
        "why": why,
    }
    agreed(tool, found, wanted, yes=yes)
    return made(client, tool, found, wanted)


def expiry(client: Client, text: str | None) -> datetime | None:
    """Return when a grant is to end. Raises: InvalidInput."""
    return until("--expires", text, datetime.now(UTC), lambda: str(client.person()["timezone"]))


@app.command()
def revoke(id_: Id) -> Result:
    """End one, at once."""
    client = options.client()
    found = _find(client, id_)
    ended = client.revoke_grant(found["id"], revision=found["revision"])
    return tables.done(f"Revoked {ended['name']}.", ended)


# ---------------------------------------------------------------- making


def constraints(
    command: str | None,
    more: str,
    url: str | None,
    folder: str | None,
    equal: Sequence[str],
    empty: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return the constraints that the options stand for. Raises: InvalidInput, naming the option.

    >>> constraints("df -h", "operands", None, None, ())
    [{'kind': 'argv', 'argv': ('df', '-h'), 'more': 'operands'}]
    """
    found: list[AnyConstraint] = []
    if more not in get_args(More):
        raise InvalidInput("--more", f"must be one of {', '.join(get_args(More))}")
    if command is not None:
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise InvalidInput("--command", f"can't be read: {error}") from error
        found.append(Argv(argv=words, more=more))  # type: ignore[arg-type]
    if url is not None:
        target, path = address.parse(url)
        scheme: Any = target.scheme
        found.append(Address(scheme=scheme, host=target.host, port=target.port, path=path))
    if folder is not None:
        found.append(Folder(folder=folder))
    found += [_equal(one) for one in equal]
    found += [Empty(field=one) for one in empty]
    built: list[dict[str, Any]] = msgspec.to_builtins(found)
    return built


def _equal(text: str) -> Equal:
    field, mark, value = text.partition("=")
    try:
        return Equal(field=field, value=msgspec.json.decode(value.encode()))
    except msgspec.DecodeError as error:
        reason = f"{text[:80]!r} is no FIELD=JSON" + (f": {error}" if mark else "")
        raise InvalidInput("--equal", reason) from error


def agreed(tool: str, found: list[dict[str, Any]], wanted: dict[str, Any], *, yes: bool) -> None:
    """Show what is to be allowed, and ask unless `yes`. Raises: InvalidInput, nobody is there."""
    if yes:
        return
    output.message(f"{wanted['agent']} may run {tool} without asking, if")
    output.message(exact(found, indent=2))
    output.message(_terms(wanted))
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "is needed where nobody can be asked")
    typer.confirm("Allow this from now on?", abort=True, err=True)


def row_of(client: Client, named: str | None) -> str | None:
    """Return the id of the row of that name, or whose id begins so. Raises: InvalidInput."""
    if named is None:
        return None
    there = client.cron_rows()
    ids = [one["id"] for one in there if one["name"] == named]
    ids = ids or [one["id"] for one in there if named and one["id"].startswith(named)]
    if len(ids) != 1:
        begin = "no row of yours has" if not ids else f"{len(ids)} rows of yours have"
        raise InvalidInput("--row", f"{begin} the name, or an id that begins with, {named!r}")
    return str(ids[0])


def made(client: Client, tool: str, found: list[dict[str, Any]], wanted: dict[str, Any]) -> Result:
    """Allow what was agreed to."""
    grant = client.give_grant(tool, found, **wanted)
    name = grant["name"]
    return tables.done(f"Allowed as {name}. To end it: vigil grants revoke {name}", grant)


def _terms(wanted: dict[str, Any]) -> str:
    outside = "also" if wanted.get("holds_for_outside") else "not"
    row = wanted.get("row")
    where = wanted.get("session_key") or "in all conversations"
    where = f"in runs of row {row} of the timetable" if row else where
    where = f"in what is done for goal {goal}" if (goal := wanted.get("goal")) else where
    times = wanted.get("uses_max") or "any number of"
    until_ = wanted.get("expires_at") or "it is revoked"
    return f"{where}; {times} times; until {until_}; {outside} when outside content had a part."


# ---------------------------------------------------------------- finding and showing


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the grant of that name, or whose id begins so. Raises: NotReady, InvalidInput."""
    if len(id_) >= ID_LENGTH:
        return client.grant(id_)
    there = client.grants(state="all", limit=500)
    found = {one["id"]: one for one in there}
    standing = [one for one in there if one["state"] == "standing"]
    if named := prefixes.named("grant", id_, standing, client.me):
        return found[named]
    if ended := [one for one in there if one["name"] == id_]:
        me = client.me()
        return next((one for one in ended if prefixes.is_own(one, me)), ended[0])
    return found[prefixes.whole("grant", id_, found)]
