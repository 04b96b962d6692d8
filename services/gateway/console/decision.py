"""What a notification's button does: a verdict, sent by the service worker as a form of ours.

It holds for the arguments that the notification showed, whose digest it names, and counts as that
of who is signed in with the browser; nobody is asked again, as the notification was the question.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import Response

from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer
from .visit import Visit, segment_of

VERDICTS: Final = ("accept", "reject")


class ButtonPressed(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What came of it."""

    is_done: bool
    text: str = ""
    """Why not, for the person."""


def nobody() -> Response:
    """Answer a browser in which nobody is signed in any more."""
    text = "You are no longer signed in here. Sign in to decide."
    return Json(ButtonPressed(is_done=False, text=text), 401)


async def decide(visit: Visit) -> Response:
    """Accept or reject one request, once."""
    try:
        verdict, digest = visit.wanted("verdict"), visit.wanted("digest")
        if verdict not in VERDICTS:
            raise Problem(422, "a notification can be accepted or rejected", field="verdict")
        path = f"/api/approvals/{segment_of(visit.wanted('id'))}"
        await visit.api.send("PATCH", path, {"verdict": verdict, "digest": digest})
    except Problem as problem:
        return refused(problem)
    return Json(ButtonPressed(is_done=True))


def refused(problem: Problem) -> Response:
    """Say why not; where a service was away, nobody knows whether the verdict is stored."""
    is_known = problem.status < HTTPStatus.INTERNAL_SERVER_ERROR
    begins = "Not decided" if is_known else "It isn't known whether this was decided"
    pressed = ButtonPressed(is_done=False, text=f"{begins}: {problem.detail}")
    answer = Json(pressed, problem.status)
    answer.headers.update(problem.headers)
    return answer
