"""/api/mail: the agents' e-mail accounts, how each is, and which addresses are one's own there.

A code makes an address a person's once a mail from it brings the code; so nobody takes another's
address by asking for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Response

from vigil.channels import pairs
from vigil.channels.mail.section import MailAccount
from vigil.channels.pairs import ChannelPerson
from vigil.contracts import Instant
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody
from ..state.edge import Edge
from .networks import (
    CODE_ERRORS,
    Address,
    PairCodeView,
    PairedAddressView,
    coded,
    given_up,
    seen_by,
    view_of,
)
from .states import states_in


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
    people: tuple[PairedAddressView, ...]
    """Your addresses; for an admin everybody's."""
    waiting: tuple[str, ...]
    """Addresses of yours from which a code is awaited."""


class MailAccountList(Answer, frozen=True, kw_only=True):
    """By name."""

    accounts: tuple[MailAccountView, ...]


class MailCodeRequest(RequestBody, frozen=True, kw_only=True):
    """Which address is to become yours."""

    address: str


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
    return MailAccountView(
        name=name,
        address=account.address,
        agent_id=account.agent,
        is_hearing=account.is_answering,
        has_proof=account.has_proof,
        unproven=(state or {}).get("unproven", 0),
        **view_of(state, "not_running" if account.imap_host else "only_writes"),
        **seen_by(people, caller, edge.clock.now()),
    )


Name = Annotated[str, Path(description="Of a channel of the kind `mail`")]
Wanted = Annotated[MailCodeRequest, Depends(body_of(MailCodeRequest))]


async def make_code(edge: Shared, caller: Caller, name: Name, wanted: Wanted) -> Response:
    """Make a code: a mail with it from that address, within an hour, makes the address yours."""
    return Json(await coded(edge, caller, name, _account(edge, name), wanted.address), 201)


async def take_back(edge: Shared, caller: Caller, name: Name, address: Address) -> Response:
    """Take an address of yours back: it's no longer heard, nor written to."""
    _account(edge, name)
    return await given_up(edge, caller, name, address)


def _account(edge: Edge, name: str) -> MailAccount:
    found = edge.context.settings.config.channels.get(name)
    if not isinstance(found, MailAccount):
        raise Problem(404, "there is no such e-mail account")
    return found


_M: Final = "/api/mail"
ENDPOINTS: Final = (
    Endpoint("GET", _M, list_accounts, {200: MailAccountList}, (503,)),
    Endpoint(
        "POST", f"{_M}/{{name}}/codes", make_code, {201: PairCodeView}, CODE_ERRORS, MailCodeRequest
    ),
    Endpoint("DELETE", f"{_M}/{{name}}/addresses", take_back, {204: None}, (404, 422, 503)),
)
