"""The big switch on every page: nothing unasked, for oneself or for everybody."""

from __future__ import annotations

from ..second_thoughts import Confirmation
from ..visit import Visit


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before everything is paused for everybody: what is due meanwhile isn't done then."""
    is_for_all = visit.wanted("whose") == "all" and visit.wanted("to") == "on"
    if not (is_for_all and visit.reader.is_admin):
        return None
    return Confirmation(
        title="Pause everything?",
        text="No agent says or begins anything unasked then, for nobody, until the pause is ended. "
        "Answers to people go on.",
        yes="Pause everything",
    )


async def act(visit: Visit) -> str:
    """Set a switch; return what undoes it. Raises: Problem, 403: that for all is an admin's."""
    is_on = visit.wanted("to") == "on"
    if visit.wanted("whose") == "all":
        await visit.api.send("PUT" if is_on else "DELETE", "/api/pause")
        return ""
    await visit.api.send("PATCH", "/api/person", {"pause": "on" if is_on else ""})
    return "pause/off" if is_on else ""
