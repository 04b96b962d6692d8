"""What is asked for on the pages of accounts with which addresses are paired."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from ....http.problem import Problem
from ...second_thoughts import Confirmation
from ...visit import Visit, segment_of

TRIED: Final = ("tried", "outcome", "reason")


def tried(visit: Visit) -> dict[str, str]:
    """Return how a test went, if one was just made."""
    return {name: visit.query.get(name, "") for name in TRIED}


def second_thought(visit: Visit) -> Confirmation | None:
    """Ask before an address is given up."""
    if visit.wanted("do") != "unpair":
        return None
    return Confirmation(
        title="Give this address up?",
        text=f"The agent no longer hears {visit.wanted('address') or 'whoever brings the code'}, "
        "nor writes there. To have it again you send a code from it.",
        yes="Give it up",
    )


async def done(visit: Visit, page: str) -> str | dict[str, Any]:
    """Make a code, which is shown once; give an address up; send a test. Raises: Problem.

    Args:
        page: of the console, and of the API.
    """
    name = segment_of(visit.wanted("name"))
    match visit.wanted("do"):
        case "pair":
            wanted = {"address": visit.wanted("address").strip()}
            made = await visit.api.send("POST", f"/api{page}/{name}/codes", wanted)
            return {"made": made}
        case "unpair":
            query = {"address": visit.wanted("address")}
            await visit.api.send("DELETE", f"/api{page}/{name}/addresses", query=query)
        case "try":
            went = await visit.api.send("POST", f"/api/channels/{name}/trials")
            told = {"tried": name, "outcome": went["outcome"], "reason": went["reason"]}
            return f"{page}?{urlencode(told)}"
        case _:
            raise Problem(422, "there is no such button", field="do")
    return page
