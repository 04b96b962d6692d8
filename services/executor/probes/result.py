"""What a look at something watched came to, and how it differs from the one before. Pure."""

from __future__ import annotations

import hashlib
from difflib import unified_diff
from typing import Final, NamedTuple

from vigil.contracts.board import LastSeen, Watched
from vigil.facts.observed import Observation
from vigil.timetable.probe import CHANGE_LENGTH_MAX, TEXT_LENGTH_MAX
from vigil.watching.watched import what_of

BEHIND: Final = f"(it differs behind the first {TEXT_LENGTH_MAX:,} characters)"


class ProbeResult(NamedTuple):
    """What a look came to."""

    seen: LastSeen
    change: str = ""
    """What differs from what was seen before; empty: nothing does, or nothing was."""
    is_tainted: bool = True
    """Whether it holds what somebody outside wrote, beside what is watched itself."""
    is_moved: bool = False
    """Whether another address answered than the one that is watched."""
    observation: Observation = Observation()
    """What of it facts may be made of."""


def seen_of(watch: Watched, text: str, etag: str = "", modified: str = "") -> LastSeen:
    """Return what is kept of a text."""
    return LastSeen(
        what=what_of(watch),
        etag=etag,
        modified=modified,
        digest=digest_of(text),
        text=text[:TEXT_LENGTH_MAX],
    )


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def difference(before: LastSeen | None, after: LastSeen) -> str:
    """Return what differs, a line each as in a patch; empty: nothing does, or nothing was before.

    >>> old = LastSeen(what="a", digest="1", text="one\\ntwo")
    >>> print(difference(old, LastSeen(what="a", digest="2", text="one\\nthree")))
     one
    -two
    +three
    >>> difference(old, old)
    ''
    """
    if before is None or before.digest == after.digest:
        return ""
    lines = unified_diff(before.text.splitlines(), after.text.splitlines(), n=1, lineterm="")
    found = "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
    return shortened(found) or BEHIND


def compared(change: str, document: str | None = None) -> Observation:
    """Return what a look came to that found that difference, a line each as in a patch.

    Args:
        document: what is there, if it may be JSON.

    >>> compared("-two\\n+three\\n+four").new
    2
    """
    new = sum(line.startswith("+") for line in change.splitlines())
    return Observation(changed=bool(change), new=new, document=document)


def shortened(change: str) -> str:
    """Return what of a difference is shown; a cut is seen."""
    if len(change) <= CHANGE_LENGTH_MAX:
        return change
    return f"{change[:CHANGE_LENGTH_MAX]}\n(and more)"
