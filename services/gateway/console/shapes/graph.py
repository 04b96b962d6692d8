"""Where the memories of a graph stand on a page, for an SVG without a script. Pure.

The best connected one is in the middle. From there, what is associated comes next on a spiral that
fills the plane evenly (Vogel, 1979), so neighbours stand near each other and none covers another.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from vigil.memory.wire import ShownEdge, ShownMemory

RADIUS: Final = 420
"""Of the circle that all stand in, in the picture's own units."""
STEP_MAX: Final = 90.0
"""Between a few that would stand far apart otherwise."""
SIZE_MIN: Final = 320
ANGLE: Final = math.pi * (3 - math.sqrt(5))
"""The golden angle."""
MARGIN: Final = 30
RADIUS_MIN: Final = 5.0
RADIUS_MAX: Final = 14.0


class PlacedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, and where it stands."""

    memory: ShownMemory
    x: float
    y: float
    radius: float
    """The larger the better it's connected."""


class PlacedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An association, as a line."""

    x1: float
    y1: float
    x2: float
    y2: float
    relation: str


def placed(
    nodes: Sequence[ShownMemory], edges: Iterable[ShownEdge]
) -> tuple[list[PlacedMemory], list[PlacedEdge], int]:
    """Return the memories with their places, the lines between them, and the square's side."""
    known = {node.id: node for node in nodes}
    lines = [one for one in edges if one.from_id in known and one.to_id in known]
    near: dict[str, list[str]] = defaultdict(list)
    for one in lines:
        near[one.from_id].append(one.to_id)
        near[one.to_id].append(one.from_id)
    step = min(RADIUS / math.sqrt(max(len(known), 1)), STEP_MAX)
    side = max(int(2 * (step * math.sqrt(len(known)) + MARGIN)), SIZE_MIN)
    most = max((len(found) for found in near.values()), default=1)
    found: dict[str, PlacedMemory] = {}
    for number, id_ in enumerate(_order(known, near)):
        distance, angle = step * math.sqrt(number), number * ANGLE
        share = len(near[id_]) / most
        found[id_] = PlacedMemory(
            memory=known[id_],
            x=round(side / 2 + distance * math.cos(angle), 1),
            y=round(side / 2 + distance * math.sin(angle), 1),
            radius=round(RADIUS_MIN + (RADIUS_MAX - RADIUS_MIN) * share, 1),
        )
    return list(found.values()), [_line(one, found) for one in lines], side


def _order(known: Iterable[str], near: dict[str, list[str]]) -> list[str]:
    """Return the ids, the best connected first, each followed by what is associated with it."""
    left = dict.fromkeys(sorted(known, key=lambda id_: (-len(near[id_]), id_)))
    order: list[str] = []
    while left:
        waiting = deque([next(iter(left))])
        while waiting:
            id_ = waiting.popleft()
            if id_ not in left:
                continue
            del left[id_]
            order.append(id_)
            waiting.extend(one for one in near[id_] if one in left)
    return order


def _line(one: ShownEdge, found: dict[str, PlacedMemory]) -> PlacedEdge:
    start, end = found[one.from_id], found[one.to_id]
    return PlacedEdge(x1=start.x, y1=start.y, x2=end.x, y2=end.y, relation=one.relation)
