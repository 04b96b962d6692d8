"""Notifications: the browsers that show what agents say unasked, and the button that makes this one
such a browser."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from ....http.problem import Problem
from ....push.endpoint import PushView
from ...endpoint import BrowserList
from ...second_thoughts import Confirmation
from ...visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(PushView, "/api/push")
    return {
        "push": found,
        "is_route": visit.person.channel == found.channel,
        "tried": {name: visit.query.get(name, "") for name in ("outcome", "reason")},
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a browser is notified no more: only there can it be again."""
    if visit.wanted("do") != "remove":
        return None
    return Confirmation(
        title="Notify this browser no more?",
        text="What agents say and ask comes there no more. Only in that browser can it be switched "
        "on again.",
        yes="Notify it no more",
    )


async def act(visit: Visit) -> str:
    """Have this browser notified, or one no more; send a test. Raises: Problem."""
    match visit.wanted("do"):
        case "subscribe":
            await subscribe(visit)
        case "remove":
            id_ = segment_of(visit.wanted("id"))
            await visit.api.send("DELETE", f"/api/push/browsers/{id_}")
        case "here":
            query = {"endpoint": visit.wanted("endpoint"), "browser": visit.browser}
            await visit.api.send("DELETE", "/api/push/others", query=query)
        case "try":
            channel = segment_of(visit.wanted("channel"))
            went = await visit.api.send("POST", f"/api/channels/{channel}/trials")
            told = {"outcome": went["outcome"], "reason": went["reason"]}
            return f"/notifications?{urlencode(told)}"
        case _:
            raise Problem(422, "there is no such button", field="do")
    return "/notifications"


async def subscribe(visit: Visit) -> None:
    """Have the reader's browser notified, by what it gave for that; and, if they want, have what
    agents say unasked go there. Raises: Problem."""
    browsers = (await visit.api.get(BrowserList, "/api/console/browsers")).browsers
    name = next((one.name for one in browsers if one.id == visit.browser), "a browser")
    wanted = {
        "endpoint": visit.wanted("endpoint"),
        "keys": {key: visit.wanted(key) for key in ("p256dh", "auth")},
        "name": name,
        "is_silent": visit.form.get("sound") != "on",
        "replaces": visit.form.get("replaces", ""),
        "browser": visit.browser,
    }
    await visit.api.send("POST", "/api/push/browsers", wanted)
    if visit.form.get("route") == "on":
        channel = (await visit.api.get(PushView, "/api/push")).channel
        await visit.api.send("PATCH", "/api/person", {"channel": channel})
