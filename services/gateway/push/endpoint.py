"""/api/push: the browsers that show what agents say unasked, and how one becomes such a browser."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
import structlog
from fastapi import Depends, Query, Response

from vigil.channels.push import subscriptions
from vigil.channels.push.section import PushChannel, push_of
from vigil.channels.push.subscriptions import NAME_LENGTH_MAX, Subscription
from vigil.contracts import Instant

from ..callers import Caller, Shared, body_of, id_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Answer, RequestBody
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

Text = Annotated[str, msgspec.Meta(max_length=200)]


class PushKeys(RequestBody, frozen=True, kw_only=True):
    """As the browser's `PushSubscription.toJSON()` has them."""

    p256dh: Text
    """Its public key, as base64url."""
    auth: Text
    """Its secret, likewise."""


class PushSubscribe(RequestBody, frozen=True, kw_only=True):
    """What a browser gave for the key of `GET /api/push`."""

    endpoint: Annotated[str, msgspec.Meta(max_length=2048)]
    """The address of its push service: https, on the public internet."""
    keys: PushKeys
    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)] = "a program"
    """What to call it."""
    is_silent: bool = True
    """Whether notifications make no sound."""
    replaces: Annotated[str, msgspec.Meta(max_length=2048)] = ""
    """The address that the browser exchanged for this one by itself: it goes, and what was chosen
    for it stays."""
    browser: Annotated[str, msgspec.Meta(max_length=32)] = ""
    """Its id among `GET /api/console/browsers`: it's notified no more once it is signed out."""


class PushBrowserView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A browser that is notified."""

    id: str
    name: str
    since: Instant
    service: str
    """The host of its push service."""
    is_silent: bool


class PushView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """How browsers are notified."""

    channel: str
    """NAME of `[channels.NAME]` with `kind = "push"`; empty: there is none."""
    public_key: str
    """What a browser subscribes for (`applicationServerKey`)."""
    browsers: tuple[PushBrowserView, ...]
    """Yours, the oldest first."""


async def get_push(edge: Shared, caller: Caller) -> Response:
    """Tell what a browser subscribes for, and which of yours did."""
    own = await subscriptions.of_person(edge.bus, caller.user)
    found = push_of(edge.context.settings.config.channels)
    return Json(
        PushView(
            channel="" if found is None else found[0],
            public_key="" if found is None else _public_key(edge),
            browsers=tuple(_view(one.subscription) for one in own),
        )
    )


async def subscribe(
    edge: Shared, caller: Caller, wanted: Annotated[PushSubscribe, Depends(body_of(PushSubscribe))]
) -> Response:
    """Have a browser notified of what agents say unasked to you; harmless to repeat."""
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    from vigil.channels.push import seal

    _channel(edge).check_endpoint(wanted.endpoint, edge.bus.broker_ports)
    seal.check_keys(wanted.keys.p256dh, wanted.keys.auth)
    own = await subscriptions.of_person(edge.bus, caller.user)
    # Told again, it's there by its new address already.
    its = (wanted.replaces, wanted.endpoint) if wanted.replaces else ()
    old = next((one for one in own if one.subscription.endpoint in its), None)
    made = Subscription(
        user=caller.user,
        endpoint=wanted.endpoint,
        p256dh=wanted.keys.p256dh,
        auth=wanted.keys.auth,
        name=wanted.name,
        at=edge.clock.now(),
        is_silent=wanted.is_silent if old is None else old.subscription.is_silent,
        browser_id=wanted.browser,
        token_id=caller.token_id,
    )
    if old is not None and old.subscription.endpoint != wanted.endpoint:
        await subscriptions.remove(edge.bus, old)
    await subscriptions.store(edge.bus, made)
    log.info("browser subscribed", action="gateway.push", by=caller.user, browser=made.id)
    return Json(_view(made), 201)


Id = Annotated[str, Depends(id_of("a browser that is notified"))]


async def unsubscribe(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Have a browser of yours notified no more."""
    for one in await subscriptions.of_person(edge.bus, caller.user):
        if one.subscription.id == id_:
            await subscriptions.remove(edge.bus, one)
            log.info("browser removed", action="gateway.push_removed", by=caller.user, browser=id_)
            return Json(_view(one.subscription))
    raise Problem(404, "there is no such browser")


async def take_over(
    edge: Shared,
    caller: Caller,
    endpoint: Annotated[
        str, Query(description="The address that a browser of yours has", max_length=2048)
    ],
    browser: Annotated[
        str, Query(description="Its id among `GET /api/console/browsers`", max_length=32)
    ] = "",
) -> Response:
    """Have nobody else notified in a browser that is yours now, if somebody is; and if you are,
    notify it no more once `browser` is signed out."""
    if count := await subscriptions.take_over(edge.bus, endpoint, caller.user):
        log.info("taken over", action="gateway.push_taken_over", by=caller.user, count=count)
    if browser:
        await subscriptions.keep_with(
            edge.bus, endpoint, caller.user, browser_id=browser, token_id=caller.token_id
        )
    return Response(status_code=204)


def _channel(edge: Edge) -> PushChannel:
    found = push_of(edge.context.settings.config.channels)
    if found is None:
        raise Problem(404, 'no channel has kind = "push": see docs/console.md#notifications')
    return found[1]


def _public_key(edge: Edge) -> str:
    from vigil.channels.push import vapid

    return vapid.public_text(vapid.key_of(edge.context.settings.home))


def _view(one: Subscription) -> PushBrowserView:
    return PushBrowserView(
        id=one.id,
        name=one.name,
        since=one.at,
        service=urlsplit(one.endpoint).hostname or "",
        is_silent=one.is_silent,
    )


_P: Final = "/api/push"
_ERRORS: Final = (403, 404, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", _P, get_push, {200: PushView}, (422, 503)),
    Endpoint("POST", f"{_P}/browsers", subscribe, {201: PushBrowserView}, _ERRORS, PushSubscribe),
    Endpoint("DELETE", f"{_P}/others", take_over, {204: None}, (422, 503)),
    Endpoint(
        "DELETE", f"{_P}/browsers/{{id}}", unsubscribe, {200: PushBrowserView}, (404, 422, 503)
    ),
)
