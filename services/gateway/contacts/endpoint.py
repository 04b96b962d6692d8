"""/api/contacts: the lists of people whom somebody knows, and how each is by who refreshes it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from fastapi import Query, Response

from vigil.contacts import kept
from vigil.contacts.record import Contact, ContactList, found_in
from vigil.contacts.state import FACT, UNKEPT, ListState, ListStatus
from vigil.contracts import Instant

from ..access import listed
from ..callers import Caller, Shared, User
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.wire import Answer
from ..state.edge import Edge

SHOWN_MAX: Final = 100


class ContactSourceView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A list, and how it is. Its address isn't told whole: it may be a secret."""

    name: str
    owner: str
    kind: Literal["list", "file", "carddav"]
    place: str
    """Where it is: a file, or the server."""
    counts: bool
    """Whether whom it has counts as known to its owner; else it's only looked up."""
    state: ListStatus
    read_at: Instant | None
    problem: str
    people: int
    left_out: int


class ContactView(Answer, frozen=True, kw_only=True):
    """Somebody whom the person knows."""

    name: str
    addresses: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    source: str
    counts: bool


class Contacts(Answer, frozen=True, kw_only=True):
    """Lists by name; and of whom was asked for, at most 100."""

    sources: tuple[ContactSourceView, ...]
    contacts: tuple[ContactView, ...]
    more: int = 0
    """How many were found beyond those."""


async def list_contacts(
    edge: Shared,
    caller: Caller,
    user: User = None,
    q: Annotated[str, Query(max_length=120)] = "",
) -> Response:
    """List where one's contacts come from, and who is meant by a name; `q` empty: all."""
    listed(caller, user)
    whose = user or caller.user
    states = await _states(edge)
    lists = {one.source: one for one in await kept.lists_of(edge.bus, whose)}
    named = edge.context.settings.config.contacts
    sources = tuple(
        ContactSourceView(
            name=name,
            owner=whose,
            kind="carddav" if one.url else "file" if one.file else "list",
            place=one.place,
            counts=one.is_theirs and not (name in lists and lists[name].is_open),
            **msgspec.structs.asdict(states.get(name, UNKEPT)),
        )
        for name, one in sorted(named.items())
        if one.user == whose
    )
    found = [
        _shown(contact, one, counts=kept.is_theirs(one, named))
        for one in lists.values()
        if one.source in named
        for contact in (found_in(one.contacts, q) if q else one.contacts)
    ]
    found.sort(key=lambda one: one.name.lower())
    more = max(len(found) - SHOWN_MAX, 0)
    return Json(Contacts(sources=sources, contacts=tuple(found[:SHOWN_MAX]), more=more))


def _shown(contact: Contact, of: ContactList, *, counts: bool) -> ContactView:
    return ContactView(
        name=contact.name,
        addresses=contact.addresses,
        phones=contact.phones,
        source=of.source,
        counts=counts,
    )


async def _states(edge: Edge) -> dict[str, ListState]:
    found: dict[str, ListState] = {}
    for replica in await edge.readiness.replicas():
        for name, told in replica.facts.get(FACT, {}).items():
            found[name] = msgspec.convert(told, ListState)
    return found


ENDPOINTS: Final = (
    Endpoint("GET", "/api/contacts", list_contacts, {200: Contacts}, (403, 422, 503)),
)
