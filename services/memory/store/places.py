"""Where a scope's rows are. Nothing else turns a scope into a number or a table (SPEC M-2).

Every query about memories is made with a :class:`Place`, and the only ways to one are the two
functions here. A place of one scope can't be made from anything that a person or a model wrote: a
scope's parts were checked, the number is SQLite's, and the table's name is that number.
"""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

from vigil.subjects import Scope

from . import rows

_TEXT: Final = """CREATE VIRTUAL TABLE {text}
    USING fts5(terms, facets, content='', columnsize=0, tokenize='porter unicode61')"""
"""It doesn't know how long texts are: looking that up is three quarters of BM25 (ADR 78)."""
INTO_TEXT: Final = "INSERT INTO {text} (rowid, terms, facets) VALUES (?, ?, ?)"
_OF_OLD_FORM: Final = """SELECT name FROM sqlite_master
    WHERE name GLOB 'text_*' AND sql LIKE '%fts5%' AND sql NOT LIKE '%columnsize=0%'"""
_OF_SCOPE: Final = "SELECT num FROM memories WHERE scope = ?"


class Place(NamedTuple):
    """A scope as SQLite knows it."""

    number: int
    """``memories.scope``, ``edges.scope``, ``provenance.scope``."""
    text: str
    """The full-text table: ``terms``, ``facets``; rowid = ``memories.num``."""


def find(db: sqlite3.Connection, scope: Scope) -> Place | None:
    """Return where that scope is; None: nothing was ever remembered in it."""
    found = db.execute(
        "SELECT scope FROM scopes WHERE agent = ? AND owner = ?", (scope.agent, scope.owner)
    ).fetchone()
    return None if found is None else _place(found[0])


def make(db: sqlite3.Connection, scope: Scope) -> Place:
    """Return where that scope is, having made it if need be; inside a transaction."""
    place = find(db, scope)
    if place is not None:
        return place
    added = db.execute(
        "INSERT INTO scopes (agent, owner) VALUES (?, ?)", (scope.agent, scope.owner)
    )
    assert added.lastrowid is not None  # noqa: S101 - of an insert
    place = _place(added.lastrowid)
    db.execute(_TEXT.format(text=place.text))
    return place


def renew_texts(db: sqlite3.Connection) -> None:
    """Make full text again where an older version made it in another form; in autocommit mode."""
    for (text,) in db.execute(_OF_OLD_FORM).fetchall():
        nums = db.execute(_OF_SCOPE, (int(text.removeprefix("text_")),)).fetchall()
        found = ((num, rows.found_by(db, num)) for (num,) in nums)
        with db:
            db.execute("BEGIN IMMEDIATE")
            db.execute(f"DROP TABLE {text}")
            db.execute(_TEXT.format(text=text))
            db.executemany(
                INTO_TEXT.format(text=text),
                ((num, one.terms, one.facets) for num, one in found if one.terms),
            )


def remove(db: sqlite3.Connection, place: Place) -> None:
    """Remove every row of a scope, and its full text; inside a transaction."""
    for delete in (
        f"DELETE FROM features WHERE num IN ({_OF_SCOPE})",  # noqa: S608 - no input
        "DELETE FROM counts WHERE scope = ?",
        "DELETE FROM edges WHERE scope = ?",
        "DELETE FROM merges WHERE scope = ?",
        "DELETE FROM replaced WHERE scope = ?",
        "DELETE FROM said WHERE scope = ?",
        "DELETE FROM provenance WHERE scope = ?",
        "DELETE FROM memories WHERE scope = ?",
        "DELETE FROM scopes WHERE scope = ?",
    ):
        db.execute(delete, (place.number,))
    db.execute(f"DROP TABLE {place.text}")


def everywhere(db: sqlite3.Connection) -> list[Scope]:
    """Return every scope in which something was remembered, in the order of their first memory."""
    rows = db.execute("SELECT agent, owner FROM scopes ORDER BY scope")
    return [Scope(agent, owner) for agent, owner in rows]


def agents(db: sqlite3.Connection, owner: str) -> frozenset[str]:
    """Return the agents that ever had a memory of that owner."""
    rows = db.execute("SELECT agent FROM scopes WHERE owner = ?", (owner,))
    return frozenset(agent for (agent,) in rows)


def _place(number: int) -> Place:
    return Place(number, f"text_{number}")
