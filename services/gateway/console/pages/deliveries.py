"""Channels and deliveries: the ways out, what waits or is unclear, and what was given up."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args
from urllib.parse import urlencode

from ...work.deliveries import ChannelList, DeliveryList
from ...work.letters import DeadLetterDetail, DeadLetterPage
from ...work.outbox import DeliveryState
from ..second_thoughts import Confirmation
from ..shapes.journal import GIVEN_UP
from ..shapes.lists.leaf import ListPart, leaf_of
from ..visit import Visit, segment_of

LETTERS_MAX: Final = 25
SHOWN_MAX: Final = 50
READ_MAX: Final = 200
"""Deliveries that can be asked for at once."""


async def show(visit: Visit) -> dict[str, Any]:
    state = visit.query.get("state") or None
    leaf = leaf_of(visit.query, "after", SHOWN_MAX, ("state", "letters"))
    of_letters = leaf_of(visit.query, "letters", LETTERS_MAX, ("state", "after"))
    channels, found, letters = await asyncio.gather(
        visit.api.get(ChannelList, "/api/channels"),
        visit.api.get(DeliveryList, "/api/deliveries", state=state, limit=leaf.asked(READ_MAX)),
        visit.api.get(
            DeadLetterPage,
            "/api/dead",
            open=True,
            after=of_letters.start,
            limit=LETTERS_MAX,
        ),
    )
    return {
        "given_up": GIVEN_UP,
        "names": await visit.titles(one.session_key for one in letters.letters),
        "channels": channels.channels,
        "deliveries": leaf.part(found.deliveries, READ_MAX),
        "letters": ListPart(
            shown=letters.letters,
            further=of_letters.query(letters.next_after) if letters.next_after else "",
            first=of_letters.query(0) if of_letters.start else None,
        ),
        "state": state or "",
        "states": ("", *get_args(DeliveryState)),
        "tried": {name: visit.query.get(name, "") for name in ("tried", "outcome", "reason")},
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before something is laid aside that was to be sent, or done."""
    if visit.wanted("do") != "discard":
        return None
    await visit.api.get(DeadLetterDetail, f"/api/dead/{segment_of(visit.wanted('id'))}")
    return Confirmation(
        title="Lay this aside?",
        text="It isn't tried again: what it was to do or to tell comes to nothing.",
        yes="Lay it aside",
    )


async def act(visit: Visit) -> str:
    """Try a channel, or end a dead letter. Raises: Problem."""
    match visit.wanted("do"):
        case "try":
            path = f"/api/channels/{segment_of(visit.wanted('name'))}/trials"
            went = await visit.api.send("POST", path)
            told = {"tried": went["channel"], "outcome": went["outcome"], "reason": went["reason"]}
            return f"/deliveries?{urlencode(told)}"
        case "requeue" | "discard" as what:
            id_ = segment_of(visit.wanted("id"))
            await visit.api.send("POST", f"/api/dead/{id_}/{what}")
    return "/deliveries"
