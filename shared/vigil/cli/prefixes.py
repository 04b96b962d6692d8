"""Ids by their beginning: as much of one as nothing else begins with stands for the whole.

And things by a name, which is one person's: an admin sees those of all, and means their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from vigil.errors import InvalidInput
from vigil.teams import TEAM
from vigil.words.nearest import did_you_mean

from . import exits

COMPARED_MAX: Final = 20_000
"""Ids that are compared, the newest first."""
SHOWN_MAX: Final = 5
_HEX: Final = frozenset("0123456789abcdef")


def whole(
    what: str,
    beginning: str,
    ids: Iterable[str],
    *,
    length: int | None = 32,
    names: Collection[str] | None = None,
) -> str:
    """Return the id that begins so; one of full length is taken as it is.

    Args:
        what: what it's the id of, for messages.
        ids: those there are, the newest first; not asked for if the id is whole.
        length: of an id in hex digits; None: they are of any form, and one that is whole wins over
            those that it begins.
        names: that they have, too, and it is none of; None: they have none.

    Raises:
        InvalidInput: several begin so, or none can.
        NotReady: none does, or has that name.

    >>> whole("job", "ab", ["abc", "bcd"], length=3), whole("job", "fff", [], length=3)
    ('abc', 'fff')
    """
    if not beginning:
        raise InvalidInput("ID", "must not be empty")
    if length is not None and len(beginning) >= length:
        return beginning
    wanted = beginning.lower()
    if length is not None and not _HEX.issuperset(wanted):
        if names is not None:
            hint = did_you_mean(beginning, names)
            raise exits.NotReady(f"no {what} is named {beginning!r}{hint}")
        raise InvalidInput("ID", f"{beginning!r} is no beginning of an id: those have hex digits")
    found = {one for one in islice(ids, COMPARED_MAX) if one.lower().startswith(wanted)}
    if beginning in found:
        return beginning
    if len(found) > 1:
        names = ", ".join(sorted(found)[:SHOWN_MAX])
        raise InvalidInput("ID", f"{beginning!r} is the beginning of several: {names}")
    if not found:
        raise exits.NotReady(f"no {what} begins with {beginning!r}")
    return found.pop()


def is_own(one: Mapping[str, Any], me: Mapping[str, Any]) -> bool:
    """Whether a thing is one's own, or of a team that one is in.

    Args:
        me: as `Client.me` tells.

    >>> me = {"user": "ann", "teams": ["desk"]}
    >>> [is_own({"owner": owner, "agent_id": "desk"}, me) for owner in ("ann", "team", "ben")]
    [True, True, False]
    """
    return one["owner"] == me["user"] or (one["owner"] == TEAM and one["agent_id"] in me["teams"])


def named(
    what: str,
    name: str,
    there: Iterable[Mapping[str, Any]],
    me: Callable[[], Mapping[str, Any]],
    field: str = "name",
) -> str | None:
    """Return the id of what has that name; of several one's own. None: nothing has it.

    Raises:
        InvalidInput: several have it, and no single one of them is one's own.

    >>> bens = {"id": "1f", "name": "a", "owner": "ben"}
    >>> named("row", "a", [bens, {**bens, "id": "2e", "owner": "ann"}],
    ...       lambda: {"user": "ann", "teams": []})
    '2e'
    """
    found = [one for one in there if one[field] == name]
    if len(found) > 1:
        mine = me()
        own = [one for one in found if is_own(one, mine)]
        if len(own) != 1:
            shown = ", ".join(f"{one['id'][:8]} of {one['owner']}" for one in found[:SHOWN_MAX])
            raise InvalidInput("ID", f"there is more than one {what} {name!r}: {shown}")
        found = own
    return str(found[0]["id"]) if found else None
