"""Browsers: where one is signed in, each to be signed out."""

from __future__ import annotations

from typing import Any

from ..endpoint import BrowserList
from ..second_thoughts import Confirmation
from ..visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(BrowserList, "/api/console/browsers")
    return {"browsers": found.browsers, "own": visit.browser}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a browser is signed out: it needs a new link to come in again."""
    browsers = (await visit.api.get(BrowserList, "/api/console/browsers")).browsers
    found = next((one for one in browsers if one.id == visit.wanted("id")), None)
    if found is None:
        return None  # the API says so
    here = " It is the one that you look at now." if found.id == visit.browser else ""
    return Confirmation(
        title=f"Sign {found.name} out?",
        text=f"Pages that are open there end at once, and its notifications.{here} "
        "It comes in again by a new link alone.",
        yes="Sign it out",
    )


async def act(visit: Visit) -> str:
    """Sign one out."""
    id_ = segment_of(visit.wanted("id"))
    await visit.api.send("DELETE", f"/api/console/browsers/{id_}")
    return "/browsers"
