"""The numbered scripts of `schema/`, each applied once, in one transaction with its number.

``PRAGMA user_version`` of a file is the number of the last script that it has seen. There is no way
back: a file from a newer program is made anew from the log, as is one that can't be read.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Final

import msgspec

from vigil.contracts import MemoryType

from ..rules import sameness
from . import places

_FOLDER: Final = Path(__file__).parent / "schema"
_NAME: Final = re.compile(r"(\d{4})_\w+\.sql")


class NewerSchema(Exception):
    """The file was written by a newer program than this one."""


def scripts(folder: Path = _FOLDER) -> list[tuple[int, str]]:
    """Return number and text of every script, in order; they count from 1 without a gap."""
    found = sorted(
        (int(match[1]), path.read_text("utf-8"))
        for path in folder.iterdir()
        if (match := _NAME.fullmatch(path.name))
    )
    if [number for number, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the scripts in {folder} don't count from 1 without a gap")
    return found


def migrate(db: sqlite3.Connection, folder: Path = _FOLDER) -> None:
    """Bring a file up to date. `db` is in autocommit mode. Scripts may use `said_keys`.

    Raises:
        NewerSchema: nothing was changed.
        sqlite3.DatabaseError: the file can't be read, or a script failed; that one left no trace.
    """
    known = scripts(folder)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(known):
        raise NewerSchema(f"schema {version} is not known here (up to {len(known)})")
    db.create_function("said_keys", 3, _said_keys, deterministic=True)
    for number, script in known[version:]:
        _apply(db, number, script)
    places.renew_texts(db)


def _said_keys(content: str, type_: MemoryType, owner: str) -> str:
    """Return as JSON by what a memory is found that may say the same."""
    return msgspec.json.encode(sameness.keys(content, type_, owner)).decode()


def _apply(db: sqlite3.Connection, number: int, script: str) -> None:
    """`executescript` stops at the first error, and leaves its transaction open then."""
    try:
        db.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
