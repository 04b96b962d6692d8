"""Taking a file in: its pieces as memories of one source, anew when it was changed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from vigil.errors import InvalidInput
from vigil.sdk.client import Client
from vigil.texts.trouble import reason_of

from .files import text_of
from .pieces import pieces
from .sources import FILES, MissingFiles, SeenFolder, gone, shown, source_of

PAGE: Final = 200
"""Memories that are asked for at once."""
STANDING: Final = frozenset({None, "replaced", "merged"})
"""What is known: itself, or by another that says the same, of another file, say."""

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
    source = source_of(str(path.resolve()))
    try:
        data = path.read_bytes()
        said = text_of(path, data)
    except (InvalidInput, OSError) as error:
        why = error.reason if isinstance(error, InvalidInput) else reason_of(error)
        return TakenIn(file=shown(str(path)), outcome="left out", why=why)
    state = hashlib.sha256(data + bytes([is_trusted])).hexdigest()[:24]
    thread = f"file-{state}"
    listed = client.memories(source=source, with_ended=True, page_size=PAGE, **whose)
    before = [one for one in listed if one.get("ended") in STANDING]
    same = {one["id"]: one["content"] for one in before if one.get("threadId") == thread}
    is_other = len(same) < len(before)
    if is_other:
        client.undo_memories(source, **whose)
    known = set() if is_other else set(same.values())
    parts = dict.fromkeys(pieces(said.text, shown(path.name)))
    missing = [part for part in parts if part not in known]
    for part in missing:
        client.save_memory(part, source=source, thread=thread, is_tainted=not is_trusted, **whose)
    outcome: Outcome = "changed" if is_other else "new" if missing else "same"
    return TakenIn(
        file=shown(str(path)), source=source, outcome=outcome, saved=len(missing), why=said.note
    )


class ForgottenFile(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the memories of a file that isn't there any more."""

    source: str
    undone: int


def forget_gone(
    client: Client, seen: SeenFolder, *, is_sure: bool, **whose: Any
) -> tuple[list[ForgottenFile], MissingFiles]:
    """Forget what files said that were removed from a folder, and tell which may only be away.

    Args:
        is_sure: what is out of reach is gone, too.
    """
    listed = client.memories(source=FILES, with_ended=True, page_size=PAGE, **whose)
    known = {one["source"] for one in listed if one.get("ended") in STANDING}
    found = gone(known, seen, is_sure=is_sure)
    done = []
    for source in found.forgotten:
        undone = client.undo_memories(source, **whose)
        count = len(undone["undone"]) + undone.get("undone_left_out", 0)
        done.append(ForgottenFile(source=source, undone=count))
    return done, found
