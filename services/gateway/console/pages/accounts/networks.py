"""Chat networks: the agents' accounts, how each is, and who is paired there; and the ways out. An
admin adds and removes them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ....events.added_channels import ChannelKindList, ChannelKindView
from ....events.networks import NetworkAccountList
from ....http.problem import Problem
from ....work.deliveries import ChannelList
from ...second_thoughts import Confirmation
from ...visit import Visit, segment_of
from . import paired

SETTLED: Final = ("listening", "away", "refused")
"""States of an account of which it is known whether it is let in."""


async def show(visit: Visit) -> dict[str, Any]:
    found, channels, kinds = await asyncio.gather(
        visit.api.get(NetworkAccountList, "/api/networks"),
        visit.api.get(ChannelList, "/api/channels"),
        _kinds(visit),
    )
    known = {one.name: one.state for one in found.accounts}
    ways = [one for one in channels.channels if one.name not in known and not one.is_hearing]
    added = visit.query.get("added", "")
    # A way out only is there at once; the gateway begins anew for one that is heard.
    is_there = known.get(added) in SETTLED or added in {one.name for one in ways}
    return {
        "accounts": found.accounts,
        "ways": ways,
        "kinds": kinds,
        "adding": next((one for one in kinds if one.kind == visit.query.get("add", "")), None),
        "added": added,
        "is_settling": bool(added) and not is_there,
        "made": None,
        "tried": paired.tried(visit),
    }


async def _kinds(visit: Visit) -> tuple[ChannelKindView, ...]:
    if not visit.reader.is_admin:
        return ()
    return (await visit.api.get(ChannelKindList, "/api/channels/kinds")).kinds


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before an address is given up, or a channel is removed."""
    if visit.wanted("do") != "remove":
        return paired.second_thought(visit)
    name = visit.wanted("name")
    return Confirmation(
        title=f"Remove {name}?",
        text="It is taken out of vigil.toml, with the secrets that were kept for it, and who was "
        "paired there is forgotten. Nobody is heard there any more, nor written to.",
        yes="Remove it",
    )


async def act(visit: Visit) -> str | dict[str, Any]:
    """Add a channel or remove it; make a code, give an address up, or send a test. Raises:
    Problem."""
    match visit.wanted("do"):
        case "add":
            return await _added(visit)
        case "remove":
            name = segment_of(visit.wanted("name"))
            await visit.api.send("DELETE", f"/api/channels/{name}")
            return "/networks"
        case _:
            return await paired.done(visit, "/networks")


async def _added(visit: Visit) -> str:
    kind = visit.wanted("kind")
    asked = next((one for one in await _kinds(visit) if one.kind == kind), None)
    if asked is None:
        raise Problem(422, "no such kind is offered", field="kind")
    given = {one.name: visit.form.get(f"f-{one.name}", "").strip() for one in asked.fields}
    wanted = {"kind": kind, "given": {name: text for name, text in given.items() if text}}
    made = await visit.api.send("POST", "/api/channels", wanted)
    return f"/networks?added={made['name']}"
