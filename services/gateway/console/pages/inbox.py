"""Inbox: calls and questions that wait for a person, with the exact arguments, to be decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, get_args

import msgspec
from markupsafe import escape

from vigil.board.kinds.approval import ApprovalList, ApprovalView
from vigil.contracts.vocabulary import ApprovalState
from vigil.fields.forms import read
from vigil.grants.proposal import constraints_of
from vigil.subjects import SessionKey

from ...http.problem import Problem
from ..second_thoughts import Confirmation, with_decided
from ..shapes.lists.leaf import ListPart, leaf_of
from ..shapes.talk.requests import request_card
from ..text import as_json, clip, visible
from ..visit import Visit, segment_of

STATES: Final = ("open", *(one for one in get_args(ApprovalState) if one != "open"), "all")
CHOSEN: Final = "chosen-"
"""How the fields of what is decided together begin; an id follows, and the digest is the value."""
FIELD: Final = "field-"
"""How the fields of a server's form begin."""
SHOWN_MAX: Final = 20
READ_MAX: Final = 500
"""How many can be asked for at once."""
HOURS_MAX: Final = 24 * 366


async def show(visit: Visit) -> dict[str, Any]:
    if visit.is_named("id"):
        path = f"/api/approvals/{visit.named('id')}"
        asked = ListPart(shown=(await visit.api.get(ApprovalView, path),))
        state = "all"
    else:
        state = visit.query.get("state", "open")
        leaf = leaf_of(visit.query, "after", SHOWN_MAX, ("state",))
        limit = leaf.asked(READ_MAX)
        found = await visit.api.get(ApprovalList, "/api/approvals", state=state, limit=limit)
        asked = leaf.part(found.approvals, READ_MAX)
    return {
        "asked": [
            request_card(
                one, may_decide=visit.may_decide(one.session_key), is_alone=visit.is_named("id")
            )
            for one in asked.shown
        ],
        "part": asked,
        "names": await visit.titles(one.session_key for one in asked.shown),
        "state": state,
        "states": STATES,
        "is_one": visit.is_named("id"),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a call runs: it can't be called back."""
    verdict = visit.wanted("verdict")
    if verdict not in ("accept", "edit", "always"):
        return None
    chosen = [name.removeprefix(CHOSEN) for name in visit.form if name.startswith(CHOSEN)]
    ids = [visit.form["id"]] if "id" in visit.form else chosen
    path = "/api/approvals"
    found = [await visit.api.get(ApprovalView, f"{path}/{segment_of(one)}") for one in ids]
    if not found or any(
        one.state != "open" or not visit.may_decide(one.session_key) for one in found
    ):
        return None  # the page says why not
    given = [visible(clip(visit.form.get("input", "")))] if verdict == "edit" else None
    count = f"these {len(found)} calls" if len(found) > 1 else f"this call of {found[0].tool}"
    more = " Such calls run without asking from now on." if verdict == "always" else ""
    return Confirmation(
        title=f"Run {count}?",
        text=f"What it does can't be called back.{more}",
        yes="Run it" if len(found) == 1 else "Run them",
        exact=tuple(escape(one) for one in given)
        if given
        else tuple(as_json(one.input) for one in found),
    )


async def act(visit: Visit) -> str:
    """Decide one, or those that were chosen. Raises: Problem."""
    chosen = [name.removeprefix(CHOSEN) for name in visit.form if name.startswith(CHOSEN)]
    verdict = visit.wanted("verdict")
    if "id" in visit.form:
        await _decide(visit, visit.form["id"], verdict, visit.wanted("digest"))
        if visit.back.startswith("/conversations/"):
            return visit.back  # the request stands there, with what became of it
        return with_decided(visit.back or "/inbox", visit.form["id"])
    if verdict not in ("accept", "reject"):
        raise Problem(422, "together they can be accepted or rejected", field="verdict")
    refused = []
    for id_ in chosen:
        try:
            await _decide(visit, id_, verdict, visit.form[CHOSEN + id_])
        except Problem as problem:
            refused.append(f"{id_[:8]}: {problem.detail}")
    if refused:
        done = len(chosen) - len(refused)
        raise Problem(409, f"{done} of {len(chosen)} were decided. Not: {'; '.join(refused)}")
    return "/inbox"


async def _decide(visit: Visit, id_: str, verdict: str, digest: str) -> None:
    path = f"/api/approvals/{segment_of(id_)}"
    if verdict == "always":
        await _accept_always(visit, path, digest)
        return
    if verdict == "fill":
        fields = (await visit.api.get(ApprovalView, path)).fields or {}
        given = filled(fields, visit.form)
        body = {"verdict": "edit", "digest": digest, "input": given}
        await visit.api.send("PATCH", path, body)
        return
    body = {"verdict": verdict, "digest": digest} | _more(verdict, visit.form)
    await visit.api.send("PATCH", path, body)


def filled(fields: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """Return what was filled in for a server; what was left empty is left out.

    >>> filled({"n": {"type": "integer"}, "m": {}}, {"field-n": "4", "field-m": ""})
    {'n': 4}
    """
    return {
        name: read(of, text)
        for name, of in fields.items()
        if (text := form.get(FIELD + name, "").strip())
    }


def _more(verdict: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Return what a verdict says besides. Raises: Problem, 422."""
    if verdict == "edit":
        try:
            return {"input": msgspec.json.decode(form.get("input", ""))}
        except msgspec.DecodeError as error:
            raise Problem(422, f"the arguments must be JSON: {error}", field="input") from error
    text = form.get("text", "").strip()
    return {"text": text} if verdict == "answer" or (verdict == "reject" and text) else {}


async def _accept_always(visit: Visit, path: str, digest: str) -> None:
    """Accept it, and allow such calls from now on: what was shown, and no more."""
    one = await visit.api.get(ApprovalView, path)
    hours = visit.form.get("hours", "").strip()
    if hours and not (hours.isdecimal() and 0 < int(hours) <= HOURS_MAX):
        raise Problem(422, f"hours: must be 1 to {HOURS_MAX}, or empty", field="hours")
    await visit.api.send("PATCH", path, {"verdict": "accept", "digest": digest})
    ends_at = visit.now + timedelta(hours=int(hours)) if hours else None
    grant = {
        "tool": one.tool,
        "constraints": msgspec.to_builtins(constraints_of(one.tool, one.risk, one.input)),
        "agentId": SessionKey.parse(one.session_key).agent,
        "expires_at": ends_at,
        "holds_for_outside": visit.form.get("outside") == "on",
        "approval_id": one.id,
    }
    body = {name: value for name, value in grant.items() if value is not None}
    await visit.api.send("POST", "/api/grants", body)
