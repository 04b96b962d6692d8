"""What the handlers of one gateway process share."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from vigil.attachments.quota import Quota
from vigil.attachments.unkept import Unkept
from vigil.bus.shared import SharedFollower
from vigil.memory.client import MemoryClient
from vigil.observe import metrics
from vigil.past.ids import KnownIds
from vigil.runtime import Context
from vigil.settings.checks import read_public_url
from vigil.settings.switches import Switches
from vigil.settings.tokens import Tokens
from vigil.subjects import SessionKey
from vigil.timetable.known_slots import KnownSlots
from vigil.timetable.log import SlotLog

from .. import spoken
from ..http.browser import PATH
from ..http.decide import allowed_hosts
from ..http.limits import Limiter, Places
from ..http.problem import deleting, erasing
from ..http.readiness import ReplicaHealth
from ..http.throttle import Throttle
from ..shelf.known_talks import KnownTalks
from ..shelf.read_marks import ReadMarks
from ..shelf.recency import Recency
from . import hook_sources, receivers
from .browsers import Browsers
from .cursors import Cursors
from .feed import Feed
from .intake import Intake
from .live import Live, progress_frame, token_frame
from .mcp_lifetime import McpRunning
from .server_sign_ins import PendingSignIns
from .tickets import Tickets

FAILURES_PER_S: Final = 1.0
FAILURES_BURST: Final = 30
"""Requests with a bad token or signature that one address may make."""
OPEN_MAX: Final = 20_000
"""Sockets, streams and waiting chats of one process."""
OPEN_OF_USER_MAX: Final = 5_000
"""Of them, one user's: nobody can take all the places."""
STORIES_AT_ONCE: Final = 4
LAST_WRITE_S: Final = 3.0


class Edge:
    """The parts of the gateway, wired. Raises: ConfigError, a hook or a channel can't be used."""

    def __init__(self, context: Context, tokens: Tokens, switches: Switches) -> None:
        config = context.settings.config.gateway
        self.context = context
        self.config = config
        self.teams = context.settings.config.teams
        self.bus = context.bus
        self.clock = context.clock
        self.tokens = tokens
        self.switches = switches
        self.public = read_public_url(config.public_url)
        """Where a proxy has the gateway be reached."""
        self.console = f"{self.public.root}{PATH}"
        """The path of the console, as browsers have it."""
        known = (*config.allowed_hosts, *filter(None, (self.public.host,)))
        self.hosts = allowed_hosts(known, config.host)
        self.limiter = Limiter(rate_per_s=config.rate_per_s, burst=config.rate_burst)
        self.failures = Limiter(rate_per_s=FAILURES_PER_S, burst=FAILURES_BURST)
        self.intake = Intake(context)
        self.intake.check_open = self._check_open
        self.quota = Quota(context.bus, config.person_attachments_bytes_max)
        self.unkept = Unkept(context.bus, switches.is_erasing)
        self.cursors = Cursors(context.bus)
        self.read_marks = ReadMarks(context.bus)
        self.recency = Recency(context.bus)
        self.talks = KnownTalks()
        self.past_ids = KnownIds()
        self.slots = SlotLog(context.bus, KnownSlots(context.clock.monotonic))
        self.live = Live(context.bus, lambda key: key.live, token_frame)
        self.doing = Live(context.bus, lambda key: key.doing, progress_frame)
        self.said = SharedFollower(context.bus, lambda key: key.out_all)
        """What the agents say, for the open sockets."""
        self.hooks = hook_sources.load(context.settings)
        self.receivers, self.listeners = receivers.load(context)
        self.transcriber = spoken.transcriber_of(context)
        """Understands voice messages; None: nobody does."""
        self.throttle = Throttle(context.bus, context.clock)
        self.tickets = Tickets()
        self.browsers = Browsers(context.bus)
        self.readiness = ReplicaHealth(context)
        self.memory = MemoryClient(context.bus)
        self.mcp = McpRunning()
        self.sign_ins = PendingSignIns()
        self.stories = asyncio.Semaphore(STORIES_AT_ONCE)
        """Held while a story is read: an id that isn't found costs a long look."""
        self.places = Places(places_max=OPEN_MAX, per_user_max=OPEN_OF_USER_MAX)
        context.metrics.watch(metrics.CONNECTIONS, lambda: self.places.count)
        self.stopping = asyncio.Event()
        """Set when the process is about to end: nobody should wait any longer."""
        self.feed = Feed(context.bus, self.stopping)
        tokens.on_end(lambda _: self.feed.wake())
        context.metrics.watch(metrics.SSE_READERS, lambda: self.feed.users)

    def zone_of(self, user: str) -> str:
        """Return a person's time zone, as their clock is set."""
        configured = self.context.settings.config.person_of(user)
        return self.switches.person(user, configured).timezone

    def _check_open(self, session: SessionKey) -> None:
        """Raises: Problem, 403: its person is being erased; 410: it is being deleted."""
        if self.switches.is_erasing(session.user):
            raise erasing()
        if session in self.switches.threads:
            raise deleting(str(session))

    async def close(self) -> None:
        """Write what is noted, end what runs."""
        await self.mcp.close()
        await self.sign_ins.close()
        if self.transcriber is not None:
            await self.transcriber.close()
        await self.browsers.close()
        await self.said.close()
        await self.intake.close()
        with contextlib.suppress(TimeoutError):  # without a broker: clients get more than once
            async with asyncio.timeout(LAST_WRITE_S):
                await self.cursors.write()
