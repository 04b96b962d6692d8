"""Ids by their beginning: as much of one as nothing else begins with stands for the whole."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from vigil.errors import InvalidInput

from . import exits

LOOKED_AT_MAX: Final = 20_000
"""Ids that are compared, the newest first."""
SHOWN_MAX: Final = 5
_HEX: Final = frozenset("0123456789abcdef")


def whole(what: str, beginning: str, ids: Iterable[str], *, length: int | None = 32) -> str:
    """Return the id that begins so; one of full length is taken as it is.

    Args:
        what: what it's the id of, for messages.
        ids: those there are, the newest first; not asked for if the id is whole.
        length: of an id in hex digits; None: they are of any form, and one that is whole wins over
            those that it begins.

    Raises:
        InvalidInput: several begin so, or none can.
        NotReady: none does.

    >>> whole("job", "ab", ["abc", "bcd"], length=3), whole("job", "fff", [], length=3)
    ('abc', 'fff')
    """
    if not beginning:
        raise InvalidInput("ID", "must not be empty")
    if length is not None and len(beginning) >= length:
        return beginning
    wanted = beginning.lower()
    if length is not None and not _HEX.issuperset(wanted):
        raise InvalidInput("ID", f"{beginning!r} is no beginning of an id: those have hex digits")
    found = {one for one in islice(ids, LOOKED_AT_MAX) if one.lower().startswith(wanted)}
    if beginning in found:
        return beginning
    if len(found) > 1:
        names = ", ".join(sorted(found)[:SHOWN_MAX])
        raise InvalidInput("ID", f"{beginning!r} is the beginning of several: {names}")
    if not found:
        raise exits.NotReady(f"no {what} begins with {beginning!r}")
    return found.pop()
