"""`pause`, `resume`, `stop`: what a person does when an agent should not go on."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from vigil.settings.hours import PAUSED

from .. import options, tables
from ..tables import Result

Agent = Annotated[str | None, typer.Option("--agent", help="This one alone. Default: all.")]
Mine = Annotated[bool, typer.Option("--mine", help="For you alone. Default: for everybody.")]
WHAT: Final = "nothing is said or begun unasked"


def pause(agent: Agent = None, mine: Mine = False) -> Result:
    """Pause what agents do unasked. Answers go on. Needs an admin token, or --mine."""
    facts = _switched(agent, is_mine=mine, is_on=True)
    parts = ("vigil resume", f"--agent {agent}" if agent else "", "--mine" if mine else "")
    command = " ".join(part for part in parts if part)
    return tables.done(f"Paused: {WHAT} until `{command}`.", facts)


def resume(agent: Agent = None, mine: Mine = False) -> Result:
    """End a pause, named as for `pause`."""
    return tables.done("Resumed.", _switched(agent, is_mine=mine, is_on=False))


def _switched(agent: str | None, *, is_mine: bool, is_on: bool) -> dict[str, Any]:
    client = options.client()
    if is_mine and agent is None:
        client.set_person({"pause": PAUSED if is_on else ""})
    else:
        (client.pause if is_on else client.resume)(agent=agent, mine=is_mine)
    return {"paused": is_on, "agent": agent, "is_mine": is_mine}


def stop(key: options.Key) -> Result:
    """Stop the turn that is running in a session."""
    key = options.checked(key)
    options.client().stop(key)
    return tables.done(f"Asked {key} to stop.", {"session_key": key, "stopped": True})
