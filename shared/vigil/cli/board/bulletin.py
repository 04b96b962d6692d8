"""`bulletin`: what an agent's conversations are told of you, on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from .. import options, output, wall
from ..tables import Result

HISTORY_MAX: Final = 64
WORDS: Final = {"rules": "listed without a model", "model": "in a model's words"}
FACTS: Final = "Facts, which they are shown beside it:"
OUTSIDE: Final = "From outside, in the last 24 hours; no agent is shown this unasked:"


def bulletin(
    agent: Annotated[str | None, typer.Option("--agent", help="Only of that agent.")] = None,
    history: Annotated[
        bool, typer.Option("--history", help="What changed, from one to the next.")
    ] = False,
) -> Result:
    """Show what agents know of you and have to do for you, as their conversations are told it."""
    asked = options.client().bulletins(history=HISTORY_MAX if history else 0)
    found = [one for one in asked if agent is None or one["agent_id"] == agent]
    return Result({"bulletins": found}, lambda: _show(found, has_history=history))


def _show(found: list[dict[str, Any]], *, has_history: bool) -> None:
    if not found:
        output.message("There is none yet: it's written soon after the first conversation.")
    for one in found:
        output.data(_heading(one))
        if has_history:
            _show_history(one["history"])
            continue
        _lines(one["text"])
        if one["facts"]:
            output.data(FACTS)
            _lines("\n".join(f"- {line}" for line in one["facts"]))
        if one["from_outside"]:
            output.data(OUTSIDE)
            _lines(one["from_outside"])


def _show_history(history: list[dict[str, Any]]) -> None:
    for one in reversed(history):
        output.data(f"{wall.zoned(one['at'])}, {WORDS[one['made_by']]}:")
        _lines(one["difference"] or "(the same words)")


def _lines(text: str) -> None:
    for line in text.splitlines():
        output.data(output.printable(line))


def _heading(one: Mapping[str, Any]) -> str:
    at, how = wall.zoned(one["made_at"]), WORDS[one["made_by"]]
    return f"{one['agent_id']} for {one['owner']}, as of {at}, {how}"
