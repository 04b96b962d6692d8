"""/api/channels, /api/deliveries: the ways out, and what is carried over them (SPEC S-10)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Path, Query, Response

from vigil import circuits
from vigil.bus.bus import Bus, Message
from vigil.channels import trial
from vigil.channels.trial import ChannelTrial, ChannelTried
from vigil.contracts import (
    Attempt,
    Dispatch,
    Receipt,
    decode_attempt,
    decode_dispatch,
    decode_receipt,
    decode_said,
)
from vigil.contracts.board import CircuitState
from vigil.errors import InvalidInput, Unavailable
from vigil.layout import LOG
from vigil.subjects import Scope, SessionKey

from ..access import listed
from ..backlog.counts import start_of_newest
from ..callers import Caller, Shared, User
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, unavailable
from ..http.wire import Answer
from ..sessions.history import read_page
from .outbox import DeliveryState, DeliveryView, OrderFold, with_text

log = structlog.get_logger("vigil.gateway")

NEWEST: Final = 200
"""Orders that are looked at, of each owner and part of the log: the newest."""
TEXT_MAX: Final = 500
"""Characters of a message."""
_Decode = Callable[[bytes], Dispatch | Attempt | Receipt]
_RECORDS: Final[dict[str, _Decode]] = {
    "send": decode_dispatch,
    "attempt": decode_attempt,
    "receipt": decode_receipt,
}


class ChannelView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A way out beside the transcript itself, and whether it is used at present."""

    name: str
    kind: str
    is_hearing: bool
    """Whether people can write through it, too."""
    is_idempotent: bool
    """Whether the receiver drops repeats; if not, what may have arrived isn't sent again."""
    attempts_max: int
    state: CircuitState
    """`open`: it failed again and again, and isn't asked for a while."""
    reason: str


class ChannelList(Answer, frozen=True, kw_only=True):
    """By name, as the configuration has them."""

    channels: tuple[ChannelView, ...]


class DeliveryList(Answer, frozen=True, kw_only=True):
    """The newest orders first, of the newest 200 of each owner."""

    deliveries: tuple[DeliveryView, ...]


class ChannelTriedView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """How a test went: `taken`: the receiver has it; `unclear`: it may have it."""

    channel: str
    outcome: str
    reason: str


async def list_channels(edge: Shared, _: Caller) -> Response:
    """List the channels, and whether each is used at present."""
    found = {one.component: one async for one in circuits.each(edge.bus, (circuits.SHARED,))}
    shown = []
    for name, channel in sorted(edge.context.settings.config.channels.items()):
        circuit = found.get(f"channel:{name}")
        shown.append(
            ChannelView(
                name=name,
                kind=str(channel.__struct_config__.tag),
                is_hearing=name in edge.receivers or name in edge.listeners,
                is_idempotent=channel.is_idempotent,
                attempts_max=channel.attempts_max,
                state="closed" if circuit is None else circuit.state,
                reason="" if circuit is None or circuit.state == "closed" else circuit.reason,
            )
        )
    return Json(ChannelList(channels=tuple(shown)))


async def try_channel(
    edge: Shared, caller: Caller, name: Annotated[str, Path(description="Of a channel")]
) -> Response:
    """Send a test to a channel, once. It is in no transcript."""
    if name not in edge.context.settings.config.channels:
        raise Problem(404, "there is no such channel")
    home = edge.context.settings.config.person_of(caller.user).home_thread
    key = str(SessionKey(caller.user, "vigil", home))
    asked = msgspec.json.encode(ChannelTrial(channel=name, session_key=key, by=caller.user))
    try:
        answer = await edge.bus.ask(trial.SUBJECT, asked, timeout=trial.ANSWER_TIMEOUT_S)
    except Unavailable as error:
        raise unavailable(f"delivery can't be asked: {error}") from error
    tried: ChannelTried = trial.decode_answer(answer.data)
    if tried.outcome == "unknown_channel":
        raise Problem(409, "delivery doesn't have this channel yet: see `vigil status`")
    log.info("tried", action="gateway.channel_tried", channel=name, by=caller.user)
    return Json(ChannelTriedView(channel=name, outcome=tried.outcome, reason=tried.reason))


async def list_deliveries(
    edge: Shared,
    caller: Caller,
    state: Annotated[DeliveryState | None, Query(description="Only those")] = None,
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """List what goes over channels: one's own and one's teams', or for an admin everybody's."""
    outbox = OrderFold()
    for scope in listed(caller, user):
        await _read(edge.bus, scope, outbox)
    found = outbox.newest(state, limit)
    texts = await asyncio.gather(*(_text_of(edge.bus, order) for order, _ in found))
    shown = (with_text(view, text) for (_, view), text in zip(found, texts, strict=True))
    return Json(DeliveryList(deliveries=tuple(shown)))


async def _read(bus: Bus, scope: Scope, outbox: OrderFold) -> None:
    of_owner = f"session.{scope.agent}.{scope.owner}.*"
    for stream in (await bus.layout()).streams(LOG):
        start = await start_of_newest(bus, stream, f"{of_owner}.send.*", NEWEST)
        filters = [f"{of_owner}.{kind}.*" for kind in _RECORDS]
        located = (await bus.locate(stream, filters))[1]
        found, _ = await read_page(bus, stream, located, start, 0)
        for message in found:
            with contextlib.suppress(InvalidInput):
                outbox.take(message.seq, _record(message))


def _record(message: Message) -> Dispatch | Attempt | Receipt:
    kind = message.subject.split(".")[4]
    return _RECORDS[kind](message.data)


async def _text_of(bus: Bus, order: Dispatch) -> str:
    found = await bus.get_of(SessionKey.parse(order.session_key), order.said_seq)
    with contextlib.suppress(InvalidInput):
        return "" if found is None else decode_said(found.data).text[:TEXT_MAX]
    return ""


_C: Final = "/api/channels"
_TRIAL: Final = (404, 409, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", _C, list_channels, {200: ChannelList}, (503,)),
    Endpoint("POST", f"{_C}/{{name}}/trials", try_channel, {200: ChannelTriedView}, _TRIAL),
    Endpoint("GET", "/api/deliveries", list_deliveries, {200: DeliveryList}, (403, 422, 503)),
)
