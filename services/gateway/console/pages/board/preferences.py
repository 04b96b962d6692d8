"""Preferences: how the reader likes things, since when and from what; right, otherwise, never,
forgotten."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from vigil.board.kinds.preference import PreferenceListing, PreferenceView
from vigil.contracts.board.preference import PreferenceCategory

from ....http.problem import Problem
from ...second_thoughts import Confirmation
from ...shapes.lists.leaf import leaf_of
from ...visit import Visit, segment_of

PATH: Final = "/api/preferences"
CATEGORIES: Final[tuple[str, ...]] = get_args(PreferenceCategory)
SHOWN_MAX: Final = 50
READ_MAX: Final = 500
"""How many can be asked for at once."""


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(PreferenceListing, PATH, limit=READ_MAX)
    by_kind = sorted(found.preferences, key=lambda one: CATEGORIES.index(one.category))
    there, about = visit.own_first(by_kind), visit.query.get("about", "")
    leaf = leaf_of(visit.query, "after", SHOWN_MAX)
    place = next((at for at, one in enumerate(there) if one.id == about), leaf.start)
    listed = replace(leaf, start=place - place % SHOWN_MAX).part(there, READ_MAX)
    groups = {one: [it for it in listed.shown if it.category == one] for one in CATEGORIES}
    return {
        "groups": {name: held for name, held in groups.items() if held},
        "listed": listed,
        "categories": CATEGORIES,
        "about": about,
        "written": written,
    }


def written(value: Any) -> str:
    """Return a value as it's shown, and written anew."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before one is forgotten."""
    if visit.wanted("do") != "forget":
        return None
    found = await _found(visit)
    return Confirmation(
        title="Forget this preference?",
        text=f"{found.key}: {written(found.value)}. The agent keeps to it no more, and may learn "
        "it anew.",
        yes="Forget it",
    )


async def act(visit: Visit) -> str:
    """Say that one is right, otherwise, never to be, or to be forgotten; or say a new one.

    Raises:
        Problem: 412, it was changed since it was shown.
    """
    match visit.wanted("do"):
        case "right":
            path = f"{PATH}/{segment_of(visit.wanted('id'))}"
            body = {"is_confirmed": True}
            await visit.api.send("PATCH", path, body, revision=visit.number("revision"))
        case "forget":
            path = f"{PATH}/{segment_of(visit.wanted('id'))}"
            await visit.api.send("DELETE", path, revision=visit.number("revision"))
        case "say" | "never" as wanted:
            await _say(visit, is_negative=wanted == "never")
        case _:
            raise Problem(422, "nothing here does that", field="do")
    return "/preferences"


async def _found(visit: Visit) -> PreferenceView:
    return await visit.api.get(PreferenceView, f"{PATH}/{segment_of(visit.wanted('id'))}")


async def _say(visit: Visit, *, is_negative: bool) -> None:
    """Say how something is to be; of one that is there, in the form that it has."""
    text = visit.wanted("value").strip()
    body: dict[str, Any] = {"value": text, "is_negative": is_negative}
    if "id" in visit.form:
        known = await _found(visit)
        body |= {"category": known.category, "key": known.key, "agentId": known.agent_id}
        if not isinstance(known.value, str):
            body["value"] = _data_in(text)
    else:
        body |= {"category": visit.wanted("category"), "key": visit.wanted("key").strip()}
    await visit.api.send("POST", PATH, body)


def _data_in(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Problem(422, f"this value is JSON: {error}", field="value") from error
