"""Contacts: where they come from, how each list is, and whom a name means."""

from __future__ import annotations

from typing import Any

from ....contacts.endpoint import Contacts
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    wanted = visit.query.get("q", "").strip()
    found = await visit.api.get(Contacts, "/api/contacts", q=wanted or None)
    return {
        "sources": found.sources,
        "contacts": found.contacts,
        "more": found.more,
        "wanted": wanted,
    }
