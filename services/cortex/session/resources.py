"""What all sessions of a replica use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from vigil.board.followed import FollowedBoard
from vigil.bus.bus import Bus
from vigil.bus.shared import SharedFollower
from vigil.clock import Clock
from vigil.observe import trace
from vigil.observe.metrics import Metrics
from vigil.settings.switches import Switches

from ..thought.recollector import Recollector
from ..thought.thinker import Thinker
from ..thought.toolbox import Toolbox


class SessionResources(msgspec.Struct, frozen=True, kw_only=True):
    """Shared by the sessions that are open here; made once."""

    bus: Bus
    clock: Clock
    new_id: Callable[[], str]
    events: SharedFollower
    """Of all sessions."""
    board: FollowedBoard
    """Everybody's entities that each answer is shown."""
    thinker: Thinker
    recollector: Recollector
    toolbox: Toolbox
    switches: Switches
    tracer: trace.Tracer
    counts: Metrics
    careful: asyncio.Lock
    """Held by the one session that is taken over again and again."""
    history_rows: int
    """Of a conversation that are kept in memory."""
    idle_release_s: float
    """After so long without an event a session is given back."""
