"""find_tools: put tools that aren't shown yet among those that are (see `core.tools.search`).

It reads names and descriptions and nothing else; the descriptions of MCP servers are strangers'
words, so none of them is told: the tool itself is shown, as each of theirs is.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from vigil.contracts.arguments import Arguments, description_of

from ..core.draft import Draft
from ..core.draft.inputs import unnoted
from ..core.tools.declaration import OwnCall, Result, offers, tool
from ..core.tools.search import FIND_TOOLS, arguments, is_first, kept, search

FOUND = "Among your tools now: {names}. Call what you need."
NOTHING = "Nothing fits. Try other words, or a name as it is listed."


class FindTools(Arguments, frozen=True, kw_only=True):
    """Get tools that aren't shown yet: by name, several at once, or by what they are for.

    They stay. Do so before you say that you can't do something.
    """

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


@tool(risk="read", profiles=("channel", "branch", "worker", "cron", "autonomy"))
def find_tools(given: FindTools, call: OwnCall, draft: Draft) -> Result:
    """Look through all that the session is offered: what is found is shown from now on."""
    profile, everything = draft.policy.profile, unnoted(draft.moment.tools)
    own = {
        name: description_of(kind)
        for name, kind in arguments().items()
        if name != FIND_TOOLS and not is_first(profile, name) and offers(profile, name, None)
    }
    others = {
        name: one.description for name, one in everything.items() if offers(profile, name, one)
    }
    found = search(given.query, {**others, **own})
    if not found:
        return NOTHING, True
    draft.inputs.note_found({name: everything[name] for name in found if name in everything})
    draft.update(found=kept(draft.state.found, found))
    return FOUND.format(names=", ".join(found)), False
