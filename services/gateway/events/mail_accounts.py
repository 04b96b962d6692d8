"""/api/mail: the agents' e-mail accounts, how each is, and which addresses are one's own there.

A code makes an address a person's once a mail from it brings the code; so nobody takes another's
address by asking for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import structlog
from fastapi import Depends, Path, Query, Response

from vigil.channels import pairs
from vigil.channels.mail.section import MailAccount
from vigil.channels.pairs import ChannelPerson
from vigil.contracts import Instant
from vigil.errors import InvalidInput
from vigil.observe.health import Health
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")


class MailAddressView(Answer, frozen=True, kw_only=True):
    """An address that is heard, and written to."""

    user: str
    address: str
    since: Instant


class MailAccountView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """An account of an agent's own, and how it is."""

    name: str
    address: str
    agent_id: str
    is_hearing: bool
    has_proof: bool
    """Whether anything tells a forged mail from another; else nobody is heard."""
    state: str
    """`listening`, `polling`: it's read; `away`, `refused`: its server can't be reached, or lets it
    not in; `waiting`: what was heard can't be stored now; `not_running`: no gateway reads it;
    `only_writes`."""
    problem: str
    outside: int
    """Mails of others, who got nothing of them."""
    unproven: int
    """Of those the ones that come as if from a paired address."""
    refused: int
    """Mails of people that could not be taken in."""
    heard_at: Instant | None
    """When the last mail of a person came."""
    people: tuple[MailAddressView, ...]
    """Your addresses; for an admin everybody's."""
    waiting: tuple[str, ...]
    """Addresses of yours from which a code is awaited."""


class MailAccountList(Answer, frozen=True, kw_only=True):
    """By name."""

    accounts: tuple[MailAccountView, ...]


class MailCodeRequest(RequestBody, frozen=True, kw_only=True):
    """Which address is to become yours."""

    address: str


class MailCodeView(Answer, frozen=True, kw_only=True):
    """A code, which is shown once: send it from that address."""

    code: str
    address: str
    to: str
    until: Instant


def states_in(replicas: Iterable[Health]) -> Mapping[str, Mapping[str, Any]]:
    """Return how each channel is that a replica listens to."""
    found: dict[str, Mapping[str, Any]] = {}
    for replica in replicas:
        found |= replica.facts.get("hears", {})
    return found


async def list_accounts(edge: Shared, caller: Caller) -> Response:
    """List the agents' e-mail accounts, how each is, and your addresses there."""
    states = states_in(await edge.readiness.replicas())
    shown = [
        _view(name, one, states.get(name), await pairs.people_of(edge.bus, name), caller, edge)
        for name, one in sorted(edge.context.settings.config.channels.items())
        if isinstance(one, MailAccount)
    ]
    return Json(MailAccountList(accounts=tuple(shown)))


def _view(
    name: str,
    account: MailAccount,
    state: Mapping[str, Any] | None,
    people: list[ChannelPerson],
    caller: Principal,
    edge: Edge,
) -> MailAccountView:
    told: Mapping[str, Any] = state or {}
    shown = [one for one in people if caller.is_admin or one.user == caller.user]
    own = [one.code for one in people if one.user == caller.user and one.code is not None]
    heard_at = told.get("heard_at", 0)
    return MailAccountView(
        name=name,
        address=account.address,
        agent_id=account.agent,
        is_hearing=account.is_answering,
        has_proof=account.has_proof,
        state=told.get("state", "not_running" if account.imap_host else "only_writes"),
        problem=told.get("problem", ""),
        outside=told.get("outside", 0),
        unproven=told.get("unproven", 0),
        refused=told.get("refused", 0),
        heard_at=datetime.fromtimestamp(heard_at, UTC) if heard_at else None,
        people=tuple(
            MailAddressView(user=one.user, address=each.address, since=each.at)
            for one in shown
            for each in one.addresses
        ),
        waiting=tuple(one.address for one in own if edge.clock.now() < one.until),
    )


Name = Annotated[str, Path(description="Of a channel of the kind `mail`")]
Wanted = Annotated[MailCodeRequest, Depends(body_of(MailCodeRequest))]
Address = Annotated[
    str, Query(description="One that is paired, or waits for its code", max_length=320)
]


async def make_code(edge: Shared, caller: Caller, name: Name, wanted: Wanted) -> Response:
    """Make a code: a mail with it from that address, within an hour, makes the address yours."""
    account = _account(edge, name)
    try:
        account.check_may_pair(wanted.address)
    except InvalidInput as error:
        if error.field == "address":
            raise
        raise Problem(409, f"{error.field} {error.reason}") from error
    code, now = pairs.new_code(), edge.clock.now()
    await pairs.ask_for(edge.bus, name, caller.user, wanted.address, code, now)
    log.info("code made", action="gateway.mail_code", channel=name, by=caller.user)
    until = now + pairs.CODE_HOLDS
    view = MailCodeView(code=code, address=wanted.address, to=account.address, until=until)
    return Json(view, 201)


async def take_back(edge: Shared, caller: Caller, name: Name, address: Address) -> Response:
    """Take an address of yours back: it's no longer heard, nor written to."""
    _account(edge, name)
    if not await pairs.take_back(edge.bus, name, caller.user, address):
        raise Problem(404, "that address isn't paired with you")
    log.info("taken back", action="gateway.mail_unpaired", channel=name, by=caller.user)
    return Response(status_code=204)


def _account(edge: Edge, name: str) -> MailAccount:
    found = edge.context.settings.config.channels.get(name)
    if not isinstance(found, MailAccount):
        raise Problem(404, "there is no such e-mail account")
    return found


_M: Final = "/api/mail"
_CODE: Final = (404, 409, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", _M, list_accounts, {200: MailAccountList}, (503,)),
    Endpoint(
        "POST", f"{_M}/{{name}}/codes", make_code, {201: MailCodeView}, _CODE, MailCodeRequest
    ),
    Endpoint("DELETE", f"{_M}/{{name}}/addresses", take_back, {204: None}, (404, 422, 503)),
)
