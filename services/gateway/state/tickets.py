"""Tickets for browsers, which can't send headers with a WebSocket (SPEC X-4).

A ticket is good for one socket of one session within 30 s. It lives in this process: with
several gateways, the one that gave it must see the socket (sticky routing). A leaked URL is
worth nothing, because the ticket in it was used.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Final

from vigil.settings.tokens import Principal

TICKET_LIFE_S: Final = 30
TICKETS_MAX: Final = 10_000


class Tickets:
    """The tickets that are out."""

    def __init__(self) -> None:
        self._tickets: OrderedDict[str, tuple[str, Principal, float]] = OrderedDict()

    def give(self, session_key: str, principal: Principal, now_s: float) -> str:
        """Make a ticket at monotonic `now_s`. Beyond `TICKETS_MAX` the oldest is forgotten."""
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = (session_key, principal, now_s + TICKET_LIFE_S)
        if len(self._tickets) > TICKETS_MAX:
            self._tickets.popitem(last=False)
        return ticket

    def take(self, ticket: str, session_key: str, now_s: float) -> Principal | None:
        """Use a ticket up; return whom it stands for, or None if it's no good here and now."""
        found = self._tickets.pop(ticket, None)
        if found is None:
            return None
        session, principal, expires_s = found
        return principal if session == session_key and now_s < expires_s else None
