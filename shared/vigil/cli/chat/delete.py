"""`vigil delete`: a conversation is deleted, with or without what was learnt in it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from vigil.words.amounts import count_of

from .. import options, tables
from ..tables import Result


def delete(
    key: options.Key,
    memories: Annotated[
        bool, typer.Option("--memories", help="Forget what was learnt in it, too.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> Result:
    """Delete a conversation: what was said, its reminders, its workers. Rows and tasks go on."""
    key = options.checked(key)
    if not yes:
        typer.confirm(f"Delete the conversation {key}, for good?", abort=True, err=True)
    done = options.client().delete_session(key, memories=memories)
    return tables.done(described(key, done), done)


def described(key: object, done: dict[str, Any]) -> str:
    """Return what became of it, and of what came out of it."""
    parts = [f"{key} is deleted."]
    if kept := done.get("memories_kept", 0):
        count = count_of(kept, "memory", "memories")
        parts.append(f"{count} came from it: kept; --memories forgets them, too.")
    if forgotten := done.get("memories_forgotten", 0):
        parts.append(f"{count_of(forgotten, 'memory', 'memories')} forgotten.")
    if timers := done.get("timers_ended", 0):
        parts.append(f"{count_of(timers, 'reminder')} ended with it.")
    if grants := done.get("grants_ended", 0):
        parts.append(f"{count_of(grants, 'grant')} that held in it alone ended, too.")
    return " ".join(parts)
