"""Mail: the agents' accounts, how each is, and which addresses are one's own there."""

from __future__ import annotations

from typing import Any

from ....events.mail_accounts import MailAccountList
from ....work.deliveries import DeliveryList
from ...second_thoughts import Confirmation
from ...visit import Visit
from . import paired


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(MailAccountList, "/api/mail")
    sent = await visit.api.get(DeliveryList, "/api/deliveries", state="delivered", limit=200)
    newest: dict[str, Any] = {}
    for one in sent.deliveries:
        newest.setdefault(one.channel, one.ordered_at)
    return {
        "accounts": found.accounts,
        "sent": newest,
        "made": None,
        "tried": paired.tried(visit),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before an address is given up."""
    return paired.second_thought(visit)


async def act(visit: Visit) -> str | dict[str, Any]:
    """Make a code, give an address up, or send a test. Raises: Problem."""
    return await paired.done(visit, "/mail")
