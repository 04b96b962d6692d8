"""The first page: who you are, who thinks, how you are reached, and a first thing to say.

It comes by itself where nothing is set, until its person went on from it, and is there later, too.
Each part is a form of its own that needs no script; what one refuses, and why, stands beside it.
"""

from __future__ import annotations

from typing import Any, Final

from vigil.board.kinds.preference import PreferenceListing, PreferenceView
from vigil.marks import first_page
from vigil.settings.models import REHEARSAL

from ....http.problem import Problem
from ....http.wire import Status
from ....models.endpoint import ModelsView
from ....push.endpoint import PushView
from ....work.deliveries import ChannelList
from ...visit import Visit
from ..accounts.notifications import subscribe

PARTS: Final = ("you", "model", "reach")
NAME: Final = "name"
"""The key of the preference by which an agent knows what to call somebody."""
SERVER: Final = "server "
"""Begins who is to think, if it's a server of this machine; its URL and a model follow."""
ERRANDS: Final = (
    "Remind me in 2 minutes to stretch",
    "What can you do for me?",
    "Each weekday at 8:30, tell me what is due today",
)
"""What may be said first."""


def errand_of(number: str) -> str:
    """Return what may be said first, by its number there; nothing else becomes a message.

    >>> errand_of("1"), errand_of("9"), errand_of("<b>")
    ('Remind me in 2 minutes to stretch', '', '')
    """
    there = {str(place): text for place, text in enumerate(ERRANDS, 1)}
    return there.get(number, "")


async def is_due(visit: Visit) -> bool:
    """Whether it comes by itself: to an admin who set nothing, where nobody chose who thinks."""
    if not visit.reader.is_admin or visit.person.revision:
        return False
    if await first_page.is_done(visit.edge.bus, visit.reader.user):
        return False
    return (await visit.api.get(Status, "/api/status")).model == REHEARSAL


async def show(visit: Visit) -> dict[str, Any]:
    api, person, is_admin = visit.api, visit.person, visit.reader.is_admin
    called = await _called(visit)
    return {
        "called": called.value if called else "",
        "zone_is_own": "timezone" in person.own,
        "language": person.language if "language" in person.own else visit.language,
        "in_use": (await api.get(Status, "/api/status")).model,
        "rehearsal": REHEARSAL,
        "models": await api.get(ModelsView, "/api/models") if is_admin else None,
        "push": await api.get(PushView, "/api/push"),
        "channels": (await api.get(ChannelList, "/api/channels")).channels,
        "errands": ERRANDS,
        "home": str(visit.home),
        "done": visit.query.get("done", ""),
        "wrong": None,
        "wrong_in": "",
        "given": {},
        "chose": None,
    }


async def act(visit: Visit) -> str | dict[str, Any]:
    """Take one part; or go on. What is refused is told beside it, with what was written, but never
    a key. Raises: Problem: it's no part."""
    wanted = visit.wanted("do")
    if wanted in ("skip", "finish"):
        await first_page.note(visit.edge.bus, visit.reader.user, visit.now)
        return "" if wanted == "skip" else f"/conversations/{(await _begun(visit)).home}"
    part = "reach" if wanted == "subscribe" else wanted
    if part not in PARTS:
        raise Problem(422, "there is no such button", field="do")
    try:
        match wanted:
            case "you":
                await _take_you(visit)
            case "model":
                return {"chose": await _take_model(visit), "done": "model"}
            case "reach":
                await _take_reach(visit)
            case _:
                await subscribe(visit)
    except Problem as problem:
        given = {name: value for name, value in visit.form.items() if name != "key"}
        reason = problem.detail.removeprefix(f"{problem.field} ")
        wrong = {"field": problem.field, "reason": reason}
        return {"wrong": wrong, "wrong_in": part, "given": given}
    return f"/welcome?done={part}#{part}"


async def _begun(visit: Visit) -> Visit:
    await visit.begin()
    return visit


async def _take_you(visit: Visit) -> None:
    called, known = visit.wanted("called").strip(), await _called(visit)
    await _change(visit, timezone=visit.wanted("timezone"), language=visit.wanted("language"))
    if known and not called:  # they took it out
        path = f"/api/preferences/{known.id}"
        await visit.api.send("DELETE", path, revision=known.revision)
    elif called and (not known or known.value != called):
        body = {"category": "communication", "key": NAME, "value": called}
        await visit.api.send("POST", "/api/preferences", body)


async def _called(visit: Visit) -> PreferenceView | None:
    """Return what an agent keeps to of what to call the reader."""
    known = (await visit.api.get(PreferenceListing, "/api/preferences", limit=200)).preferences
    return next((one for one in known if one.key == NAME and not one.is_negative), None)


async def _take_model(visit: Visit) -> dict[str, Any]:
    """Have a model think, if it answers now; return who does."""
    who = visit.wanted("who")
    body: dict[str, Any] = {"provider": who}
    if who.startswith(SERVER):
        url, _, model = who.removeprefix(SERVER).partition(" ")
        body = {"provider": "local", "url": url, "model": model}
    else:
        body |= {"key": visit.wanted("key").strip(), "model": visit.wanted("model").strip()}
    made: dict[str, Any] = await visit.api.send("PUT", "/api/models/main", body)
    return made


async def _take_reach(visit: Visit) -> None:
    await _change(visit, quiet_hours=visit.wanted("quiet_hours"), channel=visit.wanted("channel"))


async def _change(visit: Visit, **given: str) -> None:
    """Set what differs from what holds."""
    await visit.begin()
    change = {
        name: value.strip()
        for name, value in given.items()
        if value.strip() != getattr(visit.person, name)
    }
    if change:
        await visit.api.send("PATCH", "/api/person", change)
