"""contact_find: whom the person knows, by name or address.

The person's own lists are theirs, whoever asks. Lists that others write, too, are only looked into
where nobody else is found, and what is found there is from outside: a stranger may have put it in,
under the name of a friend.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from vigil.contacts import kept
from vigil.contacts.record import FOUND_MAX, Contact, found_in, shown
from vigil.contacts.source import contact_of_entry
from vigil.contracts.arguments import Arguments
from vigil.settings.config import Config

from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput

QUERY_LENGTH_MAX: Final = 120
NOBODY: Final = "Nobody of that name is in the person's contacts."


class ContactFind(Arguments, frozen=True, kw_only=True):
    """Look somebody up in the person's contacts: mail addresses and phone numbers.

    Of several of one name none is the right one by itself: ask which is meant.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=QUERY_LENGTH_MAX)]
    """A name, the beginning of one, or an address."""


def has_contacts(config: Config) -> bool:
    """Whether anybody has contacts here."""
    people = (config.person, *config.people.values())
    return bool(config.contacts) or any(one.contacts for one in people)


@tool(
    risk="read",
    timeout_s=10.0,
    profiles=("channel", "branch", "worker", "cron", "autonomy", "planner"),
    is_idempotent=True,
    is_offered=has_contacts,
)
async def contact_find(given: ContactFind, call: Call, context: ToolContext) -> ToolOutput:
    """Find who is meant, in the person's own lists first."""
    user = call.key.user
    lists = await kept.lists_of(context.bus, user)
    own, others = kept.found_by(lists, context.config.contacts)
    own += map(contact_of_entry, context.config.person_of(user).contacts)
    if mine := found_in(own, given.name):
        return ToolOutput(content=_described(mine))
    rest = found_in([contact for _, contact in others], given.name)
    if not rest:
        return ToolOutput(content=NOBODY)
    return ToolOutput(content=f"In lists that others write:\n{_described(rest)}", is_tainted=True)


def _described(found: list[Contact]) -> str:
    lines = [shown(one) for one in found[:FOUND_MAX]]
    more = len(found) - len(lines)
    return "\n".join([*lines, *([f"and {more} more: ask for a longer name"] if more else [])])
