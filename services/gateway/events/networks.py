"""/api/networks: the agents' accounts with chat networks, how each is, and who is paired there.

A code makes an id a person's once a message of it brings the code; so nobody takes another's id by
asking for one. The same holds for addresses of mail, which have a page of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import structlog
from fastapi import Depends, Path, Query, Response

from vigil.channels import pairs
from vigil.channels.contract import Channel
from vigil.channels.pairs import ChannelPerson
from vigil.contracts import Instant
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..state.edge import Edge
from .states import states_in

log = structlog.get_logger("vigil.gateway")


class PairedAddressView(Answer, frozen=True, kw_only=True):
    """An address that is heard, and written to."""

    user: str
    address: str
    since: Instant


class NetworkAccountView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """An account of an agent's own with a chat network, and how it is."""

    name: str
    kind: str
    address: str
    """Where a code is sent."""
    agent_id: str
    is_code_for_anybody: bool
    """Whether a code may be made without naming an address."""
    state: str
    """`listening`: it's read; `away`, `refused`: its server can't be reached, or lets it not in;
    `waiting`: what was heard can't be stored now; `not_running`: no gateway reads it."""
    problem: str
    outside: int
    """Messages and invitations of others, who got nothing of them."""
    refused: int
    """Messages of people that could not be taken in."""
    heard_at: Instant | None
    """When the last message of a person came."""
    people: tuple[PairedAddressView, ...]
    """Your addresses; for an admin everybody's."""
    waiting: tuple[str, ...]
    """Addresses of yours from which a code is awaited; empty: whichever brings it."""


class NetworkAccountList(Answer, frozen=True, kw_only=True):
    """By name."""

    accounts: tuple[NetworkAccountView, ...]


class PairCodeRequest(RequestBody, frozen=True, kw_only=True):
    """Which address is to become yours."""

    address: str = ""
    """Empty: whichever brings the code, where the network's people don't know their ids."""


class PairCodeView(Answer, frozen=True, kw_only=True):
    """A code, which is shown once: send it from that address."""

    code: str
    address: str
    to: str
    until: Instant


def view_of(state: Mapping[str, Any] | None, unread: str) -> dict[str, Any]:
    """Return the fields of a view that its listener tells.

    Args:
        unread: the state of an account that nobody listens to.
    """
    known: Mapping[str, Any] = state or {}
    heard_at = known.get("heard_at", 0)
    return {
        "state": known.get("state", unread),
        "problem": known.get("problem", ""),
        "outside": known.get("outside", 0),
        "refused": known.get("refused", 0),
        "heard_at": datetime.fromtimestamp(heard_at, UTC) if heard_at else None,
    }


def seen_by(people: list[ChannelPerson], caller: Principal, now: datetime) -> dict[str, Any]:
    """Return the fields of a view that depend on who looks: the addresses that they see, their own,
    an admin everybody's, and from which of theirs a code is awaited."""
    shown = [one for one in people if caller.is_admin or one.user == caller.user]
    codes = [one.code for one in people if one.user == caller.user]
    return {
        "people": tuple(
            PairedAddressView(user=one.user, address=each.address, since=each.at)
            for one in shown
            for each in one.addresses
        ),
        "waiting": tuple(one.address for one in codes if one is not None and now < one.until),
    }


async def list_networks(edge: Shared, caller: Caller) -> Response:
    """List the agents' accounts with chat networks, how each is, and your addresses there."""
    states = states_in(await edge.readiness.replicas())
    shown = [
        _view(name, one, states.get(name), await pairs.people_of(edge.bus, name), caller, edge)
        for name, one in sorted(edge.context.settings.config.channels.items())
        if _is_network(one)
    ]
    return Json(NetworkAccountList(accounts=tuple(shown)))


def _is_network(channel: Channel) -> bool:
    return bool(channel.paired_at) and _kind_of(channel) != "mail"


def _kind_of(channel: Channel) -> str:
    return str(type(channel).__struct_config__.tag)


def _view(
    name: str,
    account: Channel,
    state: Mapping[str, Any] | None,
    people: list[ChannelPerson],
    caller: Principal,
    edge: Edge,
) -> NetworkAccountView:
    return NetworkAccountView(
        name=name,
        kind=_kind_of(account),
        address=account.paired_at,
        agent_id=account.agent_id,
        is_code_for_anybody=account.is_code_for_anybody,
        **view_of(state, "not_running"),
        **seen_by(people, caller, edge.clock.now()),
    )


Name = Annotated[str, Path(description="Of a channel of a chat network")]
Wanted = Annotated[PairCodeRequest, Depends(body_of(PairCodeRequest))]
Address = Annotated[
    str, Query(description="One that is paired, or waits for its code", max_length=320)
]


async def make_network_code(edge: Shared, caller: Caller, name: Name, wanted: Wanted) -> Response:
    """Make a code: a message with it from that address, within an hour, makes the address yours."""
    return Json(await coded(edge, caller, name, _account(edge, name), wanted.address), 201)


async def take_network_back(
    edge: Shared, caller: Caller, name: Name, address: Address = ""
) -> Response:
    """Take an address of yours back: it's no longer heard, nor written to."""
    _account(edge, name)
    return await given_up(edge, caller, name, address)


async def coded(
    edge: Edge, caller: Principal, name: str, channel: Channel, address: str
) -> PairCodeView:
    """Make a code. Raises: Problem; InvalidInput: the address can't be paired."""
    try:
        if address or not channel.is_code_for_anybody:
            channel.check_may_pair(address)
    except InvalidInput as error:
        if error.field == "address":
            raise
        raise Problem(409, f"{error.field} {error.reason}") from error
    code, now = pairs.new_code(), edge.clock.now()
    await pairs.ask_for(edge.bus, name, caller.user, address, code, now)
    log.info("code made", action="gateway.pair_code", channel=name, by=caller.user)
    until = now + pairs.CODE_HOLDS
    return PairCodeView(code=code, address=address, to=channel.paired_at, until=until)


async def given_up(edge: Edge, caller: Principal, name: str, address: str) -> Response:
    """Take an address back. Raises: Problem."""
    if not await pairs.take_back(edge.bus, name, caller.user, address):
        raise Problem(404, "that address isn't paired with you")
    log.info("taken back", action="gateway.unpaired", channel=name, by=caller.user)
    return Response(status_code=204)


def _account(edge: Edge, name: str) -> Channel:
    found = edge.context.settings.config.channels.get(name)
    if found is None or not _is_network(found):
        raise Problem(404, "there is no such account with a chat network")
    return found


_N: Final = "/api/networks"
CODE_ERRORS: Final = (404, 409, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", _N, list_networks, {200: NetworkAccountList}, (503,)),
    Endpoint(
        "POST",
        f"{_N}/{{name}}/codes",
        make_network_code,
        {201: PairCodeView},
        CODE_ERRORS,
        PairCodeRequest,
    ),
    Endpoint("DELETE", f"{_N}/{{name}}/addresses", take_network_back, {204: None}, (404, 422, 503)),
)
