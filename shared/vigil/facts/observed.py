"""Facts that an observation of something watched tells, without a model (FLOW F-9). Pure.

    changed     whether it is another than at the one before             yes_no
    new         how many entries, files or lines are new                 count
    works       whether it could be observed                             yes_no
    status      of a page or feed: what its server answered, as 503      count
    newest      of a feed its newest entry, of a page when it changed    instant, day
    /a/0        of JSON that is watched: what stands there               any

One that failed tells `works` and `status` alone; what it can't tell stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from ..contracts.board import (
    ADay,
    AnInstant,
    BoundedNumber,
    FactShape,
    SourceFacts,
    Watched,
    WatchedFeed,
    WatchedTool,
    WatchedUrl,
    YesNo,
)
from ..errors import InvalidInput
from ..texts.pointer import at_pointer, parts_of

SHAPES: Final[dict[str, tuple[type[FactShape], ...]]] = {
    "changed": (YesNo,),
    "new": (BoundedNumber,),
    "works": (YesNo,),
    "status": (BoundedNumber,),
    "newest": (AnInstant, ADay),
}
"""What each tells by itself, and in which shapes."""
ASKED: Final = ("status", "newest")
"""Of these those that only what is asked for over HTTP tells."""
OF_FAILURES: Final = ("works", "status")
"""And those that one tells that failed."""


class Observation(NamedTuple):
    """What a probe saw of what is watched, for its facts."""

    works: bool = True
    changed: bool = False
    new: int = 0
    status: int = 0
    """0: it isn't asked for over HTTP, or there was no answer."""
    newest: datetime | None = None
    document: str | None = None
    """JSON that is there, if it is; None: it can't be told from this one."""
    is_same: bool = False
    """Whether nothing was read, since nothing is another than before: then all facts are as they
    were, but for what the probe itself came to."""


def check_places(
    places: Mapping[str, str], shapes: Mapping[str, FactShape], watch: Watched | None
) -> None:
    """Check where facts are found. Raises: InvalidInput."""
    for name, where in places.items():
        field = f"facts.{name[:40]}"
        if watch is None:
            raise InvalidInput(field, "says where a look finds it, and nothing is watched")
        if where.startswith("/"):
            if not isinstance(watch, WatchedUrl | WatchedTool):
                raise InvalidInput(field, "is found by a pointer in a page's or tool's JSON alone")
            parts_of(where)
        elif where not in SHAPES:
            known = ", ".join(SHAPES)
            raise InvalidInput(field, f"{where[:40]!r} is nothing that a look tells: use {known}")
        elif not isinstance(shapes[name], SHAPES[where]):
            known = " or ".join(str(one.__struct_config__.tag) for one in SHAPES[where])
            raise InvalidInput(field, f"must be {known}: that is what `{where}` is")
        elif where in ASKED and not isinstance(watch, WatchedUrl | WatchedFeed):
            raise InvalidInput(field, f"`{where}` goes with a page or a feed")


def shows_failures(places: Mapping[str, str]) -> bool:
    """Whether a probe that failed tells a fact: what doesn't work is an answer there, and the next
    probe is due as ever, since it may work by then.

    >>> shows_failures({"up": "works"}), shows_failures({"n": "new"})
    (True, False)
    """
    return any(where in OF_FAILURES for where in places.values())


def facts_observed(
    places: Mapping[str, str], observation: Observation, before: SourceFacts | None
) -> dict[str, object]:
    """Return what it says of facts, by name.

    >>> facts_observed({"n": "new", "up": "works"}, Observation(new=3), None)
    {'n': 3, 'up': 'yes'}
    """
    known = {} if before is None else {one.name: one for one in before.facts}
    found: dict[str, object] = {}
    for name, where in places.items():
        value = _value(where, observation)
        was = known.get(name)
        if value is None and observation.is_same and was is not None and not was.is_left_out:
            value = was.value
        if value is not None:
            found[name] = value
    return found


def _value(where: str, observation: Observation) -> object:
    """Return what it says; None: nothing."""
    if where.startswith("/"):
        return _pointed(observation.document, where)
    always = {"works": _yes(observation.works), "status": observation.status or None}
    if where in always or not observation.works:
        return always.get(where)
    newest = None if observation.newest is None else observation.newest.isoformat()
    return {"changed": _yes(observation.changed), "new": observation.new, "newest": newest}.get(
        where
    )


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _pointed(document: str | None, pointer: str) -> object:
    if document is None:
        return None
    try:
        return at_pointer(document, pointer)
    except InvalidInput:
        return None
