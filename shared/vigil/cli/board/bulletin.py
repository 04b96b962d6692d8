"""`bulletin`: what an agent's conversations are told of you, on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from .. import options, output, tables
from ..tables import Result


def bulletin(
    agent: Annotated[str | None, typer.Option("--agent", help="Only of that agent.")] = None,
) -> Result:
    """Show what agents know of you and have to do for you, as their conversations are told it."""
    found = [
        one for one in options.client().bulletins() if agent is None or one["agent_id"] == agent
    ]
    return Result({"bulletins": found}, lambda: _show(found))


def _show(found: list[dict[str, Any]]) -> None:
    if not found:
        output.message("There is none yet: it's written soon after the first conversation.")
    for one in found:
        output.data(_heading(one))
        for line in one["text"].splitlines():
            output.data(output.printable(line))


def _heading(one: Mapping[str, Any]) -> str:
    return f"{one['agent_id']} for {one['owner']}, as of {tables.instant(one['made_at'])}"
