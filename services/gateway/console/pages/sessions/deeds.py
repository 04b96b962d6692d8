"""What the forms of a conversation's page do, by the name in their field `do`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from markupsafe import escape

from ....http.problem import Problem
from ....http.wire import TimerList, Transcript
from ...second_thoughts import Confirmation, with_undo
from ...text import clip, visible
from ...visit import Visit, segment_of
from . import orders

Led = str | dict[str, Any] | None
"""Where a deed leads on to, or what the page itself shows once; None: to the end of the page."""


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a reminder is cancelled or the conversation deleted. Raises: Problem, 404."""
    match visit.wanted("do"):
        case "cancel":
            held = (await visit.api.get(TimerList, f"{_path(visit)}/timers")).timers
            found = [one for one in held if one.timer_id == visit.wanted("timer")]
            if not found:
                return None  # the page says so
            return Confirmation(
                title="Cancel this?",
                text="It doesn't come, and can't be brought back but by being asked for anew.",
                yes="Cancel it",
                exact=tuple(escape(visible(clip(one.message or one.reason))) for one in found),
            )
        case "delete":
            await visit.api.get(Transcript, _path(visit), limit=1)
            also = " What was learnt in it is forgotten, too." if "memories" in visit.form else ""
            return Confirmation(
                title="Delete this conversation?",
                text="What was said in it is deleted for good, and its reminders end with it."
                f"{also} Putting it away can be undone.",
                yes="Delete it for good",
            )
    return None


async def act(visit: Visit) -> str | dict[str, Any]:
    """Do what the form says. Raises: Problem."""
    deed = DEEDS.get(visit.wanted("do"))
    if deed is None:
        raise Problem(422, "nothing here does that", field="do")
    return await deed(visit) or f"/conversations/{visit.named('key')}#end"


async def _say(visit: Visit) -> Led:
    return await orders.take(visit, visit.wanted("text"))


async def _replace(visit: Visit) -> Led:
    await orders.replace(visit, visit.number("message"), visit.form.get("instead"))
    return None


async def _vouch(visit: Visit) -> Led:
    digest = visit.wanted("digest")
    await visit.api.send("POST", _letter(visit), query={"digest": digest})
    undo = f"letter/{visit.named('key')}/{visit.wanted('letter')}"
    return with_undo(_letters(visit), undo)


async def _unvouch(visit: Visit) -> Led:
    await visit.api.send("DELETE", _letter(visit))
    return _letters(visit)


async def _trust(visit: Visit) -> Led:
    return with_undo(_letters(visit), await orders.trust(visit, visit.wanted("source")))


async def _stop(visit: Visit) -> Led:
    await visit.api.send("POST", f"{_path(visit)}/stop")
    return None


async def _cancel(visit: Visit) -> Led:
    await visit.api.send("DELETE", f"{_path(visit)}/timers/{visit.wanted('timer')}")
    return None


async def _name(visit: Visit) -> Led:
    await visit.api.send("PATCH", _path(visit), {"title": visit.wanted("title")})
    return None


async def _archive(visit: Visit) -> Led:
    await visit.api.send("PATCH", _path(visit), {"archived": True})
    return with_undo("/conversations", f"archive/{visit.named('key')}")


async def _unarchive(visit: Visit) -> Led:
    await visit.api.send("PATCH", _path(visit), {"archived": False})
    return None


async def _read(visit: Visit) -> Led:
    await visit.api.send("PATCH", _path(visit), {"read_to": visit.number("seq")})
    return None


async def _delete(visit: Visit) -> Led:
    query = {"memories": "true"} if visit.form.get("memories") else None
    await visit.api.send("DELETE", _path(visit), query=query)
    return "/conversations"


async def _fork(visit: Visit) -> Led:
    made = await visit.api.send("POST", f"{_path(visit)}/forks", {"turn": visit.number("turn")})
    return f"/conversations/{made['session_key']}#end"


def _path(visit: Visit) -> str:
    return f"/api/sessions/{visit.named('key')}"


def _letter(visit: Visit) -> str:
    return f"{_path(visit)}/letters/{segment_of(visit.wanted('letter'))}/vouch"


def _letters(visit: Visit) -> str:
    return f"/conversations/{visit.named('key')}#letters"


DEEDS: Final[Mapping[str, Callable[[Visit], Awaitable[Led]]]] = {
    "say": _say,
    "replace": _replace,
    "vouch": _vouch,
    "unvouch": _unvouch,
    "trust": _trust,
    "stop": _stop,
    "cancel": _cancel,
    "name": _name,
    "archive": _archive,
    "unarchive": _unarchive,
    "read": _read,
    "delete": _delete,
    "fork": _fork,
}
