"""/api/dice: a route, in one file beside its name in `services.gateway.app.endpoints`."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Query, Response

from services.gateway.callers import Caller, body_of
from services.gateway.endpoint import Endpoint
from services.gateway.http.json import Json
from services.gateway.http.wire import Answer, RequestBody
from vigil.errors import InvalidInput

SIDES_MAX: Final = 20


class Dice(Answer, frozen=True, kw_only=True):
    """How many sides it has, and whose it is."""

    owner: str
    sides: int


class DiceBody(RequestBody, frozen=True, kw_only=True):
    """Another die."""

    sides: int


async def get_dice(
    caller: Caller, sides: Annotated[int, Query(description="How many it has", ge=2)] = 6
) -> Response:
    """Show a die."""
    return Json(Dice(owner=caller.user, sides=sides))


async def take_dice(
    caller: Caller, wanted: Annotated[DiceBody, Depends(body_of(DiceBody))]
) -> Response:
    """Take another die; 422 beyond 20 sides."""
    if wanted.sides > SIDES_MAX:
        raise InvalidInput("sides", f"must be at most {SIDES_MAX}")
    return Json(Dice(owner=caller.user, sides=wanted.sides), 201)


ENDPOINTS: Final = (
    Endpoint("GET", "/api/dice", get_dice, {200: Dice}, (422,)),
    Endpoint("POST", "/api/dice", take_dice, {201: Dice}, (413, 422), DiceBody),
)
