"""Mail: the agents' accounts, how each is, and which addresses are one's own there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from ....events.mail_accounts import MailAccountList
from ....http.problem import Problem
from ....work.deliveries import DeliveryList
from ...second_thoughts import Confirmation
from ...visit import Visit, segment_of


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
        "tried": {name: visit.query.get(name, "") for name in ("tried", "outcome", "reason")},
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before an address is given up: to have it again takes a mail from it."""
    if visit.wanted("do") != "unpair":
        return None
    return Confirmation(
        title="Give this address up?",
        text=f"The agent no longer hears {visit.wanted('address')}, nor writes there. To have it "
        "again you send a code from it.",
        yes="Give it up",
    )


async def act(visit: Visit) -> str | dict[str, Any]:
    """Make a code, which is shown once; give an address up; send a test. Raises: Problem."""
    name = segment_of(visit.wanted("name"))
    match visit.wanted("do"):
        case "pair":
            wanted = {"address": visit.wanted("address").strip()}
            made = await visit.api.send("POST", f"/api/mail/{name}/codes", wanted)
            return {"made": made}
        case "unpair":
            query = {"address": visit.wanted("address")}
            await visit.api.send("DELETE", f"/api/mail/{name}/addresses", query=query)
        case "try":
            went = await visit.api.send("POST", f"/api/channels/{name}/trials")
            told = {"tried": name, "outcome": went["outcome"], "reason": went["reason"]}
            return f"/mail?{urlencode(told)}"
        case _:
            raise Problem(422, "there is no such button", field="do")
    return "/mail"
