"""Taking a file in: its pieces as memories of one source, anew when it was changed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from vigil.errors import InvalidInput
from vigil.sdk.client import Client

from .files import text_of
from .pieces import pieces

SOURCE_MAX: Final = 200
"""Characters of a memory's source."""

Outcome = Literal["new", "changed", "same", "left out"]


class TakenIn(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file."""

    file: str
    source: str = ""
    outcome: Outcome
    saved: int = 0
    why: str = ""
    """It was left out, or some of it; empty: it was taken in whole."""


def take_in(client: Client, path: Path, *, is_trusted: bool, **whose: Any) -> TakenIn:
    """Save what a file says, and forget what an earlier state of it said.

    Its memories belong to a thread that is named by the file's contents and by whether it is
    vouched for: so the same again saves what is missing, and another one takes the place of all.
    """
    source = f"file:{path.resolve()}"
    try:
        if len(source) > SOURCE_MAX:
            raise InvalidInput(path.name, f"has a path of more than {SOURCE_MAX} characters")
        data = path.read_bytes()
        said = text_of(path, data)
    except (InvalidInput, OSError) as error:
        return TakenIn(file=str(path), outcome="left out", why=str(error))
    state = hashlib.sha256(data + bytes([is_trusted])).hexdigest()[:24]
    thread = f"file-{state}"
    before = {one["id"] for one in client.memories(source=source, **whose)}
    same = {
        one["id"]: one["content"] for one in client.memories(source=source, thread=thread, **whose)
    }
    is_other = bool(before - same.keys())
    if is_other:
        client.undo_memories(source, **whose)
    known = set() if is_other else set(same.values())
    parts = dict.fromkeys(pieces(said.text, path.name))
    missing = [part for part in parts if part not in known]
    for part in missing:
        client.save_memory(part, source=source, thread=thread, is_tainted=not is_trusted, **whose)
    outcome: Outcome = "changed" if is_other else "new" if missing else "same"
    return TakenIn(
        file=str(path), source=source, outcome=outcome, saved=len(missing), why=said.note
    )
