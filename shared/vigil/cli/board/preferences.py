"""`preferences`: how you like things, as far as an agent knows."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

import msgspec
import typer

from vigil.contracts.board.preference import PreferenceCategory
from vigil.sdk.client import Client

from .. import completion, options, prefixes, tables
from ..exact import exact
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

VALUE_LENGTH_MAX: Final = 60
LOOKED_AT_MAX: Final = 500

app = CommandLine(
    cls=ListedGroup,
    help="How you like things, as far as an agent knows: list, show, set, correct, confirm, remove."
    " Default: list.",
)

Id = Annotated[str, options.id_of("a preference", "vigil preferences", completion.preference_ids)]
Category = Annotated[PreferenceCategory, typer.Argument(help="What it belongs to.")]
Key = Annotated[str, typer.Argument(help="What it is about: answers.length")]
Value = Annotated[str, typer.Argument(help="JSON, or a text.")]
Why = Annotated[str, typer.Option("--why", help="For its history.")]


def _value(one: Any) -> str:
    """Write a value on one line.

    >>> _value({"value": "short", "is_negative": True}), _value({"value": 3, "is_negative": False})
    ('not "short"', '3')
    """
    return ("not " if one["is_negative"] else "") + exact(one["value"])


COLUMNS: Final = (
    Column("ID", lambda one: one["id"][:8]),
    Column("CATEGORY", "category"),
    Column("KEY", "key"),
    Column("VALUE", lambda one: tables.short(_value(one), VALUE_LENGTH_MAX)),
    Column("CONFIDENCE", lambda one: f"{one['confidence']:.2f} {one['level']}"),
    Column("CONFIRMED", "last_confirmed_at", is_instant=True, rank=1),
)
FIELDS: Final = (
    Column("key", "key"),
    Column("value", _value),
    Column("category", "category"),
    Column("confidence", lambda one: f"{one['confidence']:.2f} ({one['level']})"),
    Column("id", "id"),
    Column("owner", "owner"),
    Column("agent", "agent_id"),
    Column("confirmed", "last_confirmed_at", is_instant=True),
    Column("made", "created_at", is_instant=True),
    Column("revision", "revision"),
)
LESSONS: Final = (
    Column("LEARNED", "at", is_instant=True),
    Column("HOW", "how"),
    Column("FROM", lambda one: exact(one.get("text", ""))),
    Column("SESSION", lambda one: one.get("session_key", "")),
)
HISTORY: Final = tables.history(
    Column("VALUE", lambda one: tables.short(_value(one), VALUE_LENGTH_MAX)),
    Column("CONFIDENCE", "confidence"),
)


@app.command("list")
def list_(
    category: Annotated[
        PreferenceCategory | None, typer.Option("--category", help="Only those.")
    ] = None,
) -> Result:
    """List preferences, the surer first: your own, or with an admin token everybody's."""
    found = options.client().preferences(category=category)
    return tables.listing("preferences", found, COLUMNS, empty="No preferences.")


@app.command()
def show(id_: Id) -> Result:
    """Show one: what taught it to the agent, and who changed it."""
    found = _find(options.client(), id_)
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    tables.fields(FIELDS, found)
    tables.table(LESSONS, found["learned_from"])
    tables.table(HISTORY, found["history"])


@app.command("set")
def set_(
    category: Category,
    key: Key,
    value: Value,
    agent: options.Agent = "vigil",
    why: Why = "",
) -> Result:
    """Say how you like something; what the agent believed of it is replaced."""
    return _said(category, key, value, agent, why, is_negative=False)


@app.command()
def correct(
    category: Category,
    key: Key,
    value: Value,
    agent: options.Agent = "vigil",
    why: Why = "",
) -> Result:
    """Say how you don't want something; that stands until you say otherwise."""
    return _said(category, key, value, agent, why, is_negative=True)


def _said(
    category: PreferenceCategory, key: str, value: str, agent: str, why: str, *, is_negative: bool
) -> Result:
    made = options.client().make_preference(
        category, key, _read(value), is_negative=is_negative, agent=agent, why=why
    )
    return tables.done(f"{made['key']}: {_value(made)} ({made['level']}).", made)


def _read(text: str) -> Any:
    """Return a value as JSON has it; as a text, if it's none.

    >>> _read("true"), _read("short"), _read('{"a": 1}')
    (True, 'short', {'a': 1})
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@app.command()
def confirm(id_: Id) -> Result:
    """Say that a preference holds."""
    client = options.client()
    found = _find(client, id_)
    done = client.confirm_preference(found["id"], revision=found["revision"])
    return tables.done(f"{done['key']}: {done['confidence']:.2f} ({done['level']}).", done)


@app.command()
def remove(id_: Id) -> Result:
    """Remove a preference; the agent may learn it anew."""
    client = options.client()
    found = _find(client, id_)
    done = client.remove_preference(found["id"], revision=found["revision"])
    return tables.done(f"Removed {done['key']}.", done)


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the preference whose id, or whose key, it is. Raises: NotReady, InvalidInput."""
    there = client.preferences(limit=LOOKED_AT_MAX)
    by_key = prefixes.named("preference", id_, there, client.me, field="key")
    ids = (one["id"] for one in there)
    return client.preference(by_key or prefixes.whole("preference", id_, ids))
