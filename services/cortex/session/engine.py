"""Who works on which session: wakes, leases, and the sessions open in this replica.

A wake tells that a session has an event. Whoever takes the lease opens the session; the
compare-and-set at the commit makes it correct whatever the leases say.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from vigil import crash
from vigil.bus.bus import Bus, BusError, Message
from vigil.bus.lease import RENEW_S, Lease, Leases
from vigil.clock import until_next
from vigil.errors import InvalidInput, LeaseLost, Unavailable, VigilError
from vigil.subjects import SessionKey
from vigil.topology import WAKE, WAKE_SYSTEM
from vigil.worker.consumer_loop import consuming

from . import log as session_log
from .burst import WarningBurst
from .session import Session
from .shares import Shares

log = structlog.get_logger("vigil.cortex")

NAK_DELAY_S: Final = 2.0
"""How long a wake waits while another replica has the lease. With 5 s, as long as a lease lives, a
wake that comes just before a dead replica's lease expires would wait twice."""
RETRY_DELAY_S: Final = 1.0
PARTS: Final = 10
"""In so many parts leases are renewed, one after the other: thousands at one moment would hold up
whatever else is asked of the broker, and be late themselves."""
pause = asyncio.sleep
"""Between two parts."""


class _Open:
    """A session of this replica, its lease and its task."""

    def __init__(self, session: Session, lease: Lease, part: int) -> None:
        self.session = session
        self.lease = lease
        self.part = part
        """Which of the parts its lease is renewed with: 0 to `PARTS` - 1."""
        self.is_renewing = False
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        """Whether its task came to run, and so gives back what it has."""

    def cancel(self) -> None:
        """End it, unless it's ending: it gives its lease and its wake back then."""
        if not self.session.is_closing and self.task is not None:
            self.session.is_closing = True
            self.task.cancel()


class Engine:
    """Opens, renews and closes the sessions of this replica."""

    def __init__(
        self,
        *,
        bus: Bus,
        leases: Leases,
        open_session: Callable[[SessionKey, Callable[[], None]], Session],
        sessions_max: int,
        busy_per_user_max: int,
        is_gone: Callable[[SessionKey], bool] = lambda key: False,
    ) -> None:
        """`open_session`: gets what to call when the session holds no wake any more."""
        self._bus = bus
        self._leases = leases
        self._shares = Shares(busy_per_user_max)
        self._given_back = WarningBurst("wakes given back", action="cortex.wake")
        self._leases_lost = WarningBurst("leases lost", action="cortex.lease")
        self._cut_off = WarningBurst("sessions without a broker", action="cortex.cut_off")
        self._first: dict[SessionKey, int] = {}
        """How often the wake of a session had been delivered when it was put aside: that it comes
        again while it waits here is no sign of a replica that died."""
        self._open_session = open_session
        self._sessions_max = sessions_max
        self._is_gone = is_gone
        """Whether a session is being deleted, or its person erased: it's closed and stays so."""
        self._open: dict[SessionKey, _Open] = {}
        self._parts = itertools.cycle(range(PARTS))
        self._pending: dict[SessionKey, Message] = {}
        """The newest wake of sessions that are being opened or closed, or wait for their turn."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def sessions(self) -> dict[SessionKey, Session]:
        """Those that are open here."""
        return {key: one.session for key, one in self._open.items() if not one.session.is_closing}

    def reopen(self, key: SessionKey) -> None:
        """Have a session that hangs opened anew, here or elsewhere: its wake comes again."""
        if (entry := self._open.get(key)) is not None:
            entry.cancel()

    @property
    def busy_count(self) -> int:
        """How many sessions hold a wake: something came, and isn't dealt with."""
        return self._shares.busy

    @property
    def waiting_count(self) -> int:
        """How many sessions wait, since others of the same person are busy."""
        return self._shares.waiting

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Serve wakes until cancelled, then give the leases back."""
        # People's sessions and those of the cortex itself are in streams of their own.
        # Without renewals replicas would take sessions from each other: all end together.
        async with (
            consuming(self._bus, "cortex", WAKE, WAKE_SYSTEM) as loops,
            asyncio.TaskGroup() as group,
        ):
            renewing = group.create_task(self._renew_all(), name="cortex-renew")
            try:
                on_ready()
                async with asyncio.TaskGroup() as wakes:
                    for loop in loops:
                        wakes.create_task(loop.run(self._on_wake), name="cortex-wakes")
            finally:
                renewing.cancel()
                await self._close_all()

    async def _on_wake(self, wake: Message) -> None:
        crash.point("cortex.wake.received")
        try:
            key = self._key_of(wake)
        except InvalidInput as error:
            # Only somebody with a credential for the bus can store that; no session is meant.
            log.error("no session", action="cortex.wake", subject=wake.subject, error=str(error))
            await self._bus.ack(wake)
            return
        if self._is_gone(key):
            await self._bus.ack(wake)
            return
        entry = self._open.get(key)
        if entry is not None and not entry.session.is_closing:
            self._shares.go_on(key)
            await entry.session.hold(wake)
        elif key in self._pending:
            other = self._pending[key]
            if other.seq <= wake.seq:
                self._pending[key] = wake
            if other.seq != wake.seq:  # a newer event's wake stands for the older one
                await self._bus.ack(min(other, wake, key=lambda message: message.seq))
        else:
            self._pending[key] = wake
            if self._shares.begin(key):
                self._spawn(self._consider(key), f"open-{key}")
            else:
                self._first[key] = wake.delivered

    def _rest(self, key: SessionKey) -> None:
        """Let another session of the same person begin: this one is busy no more."""
        following = self._shares.end(key)
        if following is not None and following in self._pending:
            self._spawn(self._consider(following), f"open-{following}")
        elif following is not None:
            self._rest(following)

    @staticmethod
    def _key_of(wake: Message) -> SessionKey:
        """Return the session that the wake is for. Raises: InvalidInput."""
        key = SessionKey.of_subject(wake.subject)
        SessionKey.of(key.user, key.agent, key.thread)
        if not wake.subject.startswith(f"{key.root}."):
            text = "starts with '_' in the stream of the cortex's own sessions, and nowhere else"
            raise InvalidInput("threadId", text)
        return key

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_report)

    async def _consider(self, key: SessionKey) -> None:
        """Take the lease and open the session, or give the wake back, or ack it.

        The key stays in `_pending` until all is decided, so that a wake which comes meanwhile
        joins this one instead of being considered a second time.
        """
        try:
            closing = self._open.get(key)
            if closing is not None and closing.task is not None:
                await asyncio.wait({closing.task})
            delay_s = await self._take(key)
        except VigilError as error:
            self._given_back.add(key, error)
            delay_s = RETRY_DELAY_S
        except Exception:  # cancelled, the service stops, and gives back what is pending
            self._pending.pop(key, None)
            raise
        finally:
            self._first.pop(key, None)
            if key not in self._open:
                self._rest(key)
        if delay_s is not None:
            await self._give_back(self._pending.pop(key), delay_s)

    async def _take(self, key: SessionKey) -> float | None:
        """Open the session if its lease is free.

        Returns after how many seconds the pending wake is to come again; None: it's dealt with.
        """
        wake = self._pending[key]
        if self._is_gone(key):
            await self._drop(key)
            return None
        if len(self._open) >= self._sessions_max:
            return RETRY_DELAY_S
        lease = await self._leases.acquire(key.kv_key)
        if lease is None:
            is_settled = await session_log.is_settled(self._bus, key, wake.seq)
            if not is_settled or self._pending[key].seq != wake.seq:
                return NAK_DELAY_S
            wake = self._pending.pop(key)
            with contextlib.suppress(Unavailable):  # then it comes again, and is settled
                await self._bus.ack(wake)
            return None
        if self._is_gone(key):  # since it was looked at
            await lease.release()
            await self._drop(key)
            return None
        crash.point("cortex.lease.acquired")
        entry = _Open(self._open_session(key, lambda: self._rest(key)), lease, next(self._parts))
        self._open[key] = entry
        wake = self._pending.pop(key)
        await entry.session.hold(wake)
        is_takeover = min(wake.delivered, self._first.get(key, wake.delivered)) > 1
        entry.task = asyncio.create_task(self._run(key, entry, is_takeover), name=f"session-{key}")
        entry.task.add_done_callback(lambda _: self._on_end(key, entry))
        entry.task.add_done_callback(_report)
        return None

    async def _drop(self, key: SessionKey) -> None:
        """Acknowledge the wake of a session that is being deleted: nobody thinks in it any more."""
        with contextlib.suppress(Unavailable):  # then it comes again, and is acknowledged
            await self._bus.ack(self._pending.pop(key))

    async def _give_back(self, wake: Message | None, delay_s: float) -> None:
        if wake is not None:
            with contextlib.suppress(Unavailable):
                await self._bus.nak(wake, delay_s)

    async def _run(self, key: SessionKey, entry: _Open, is_takeover: bool) -> None:
        """Run a session to its end, then give the lease back."""
        entry.has_begun = True
        failed = False
        try:
            await entry.session.run(is_takeover=is_takeover)
            crash.point("cortex.release.before")
        except asyncio.CancelledError:
            # The lease was lost, or the service stops: whoever gets the wake goes on.
            raise
        except (Unavailable, BusError) as error:
            failed = True
            self._cut_off.add(key, error)
        except Exception as error:
            failed = True
            log.error(
                "session failed", action="cortex.session", session=str(key), error=repr(error)
            )
        finally:
            await self._end(key, entry, RETRY_DELAY_S if failed else 0.0)

    async def _end(self, key: SessionKey, entry: _Open, delay_s: float) -> None:
        """Give the lease and the wake back. What comes meanwhile waits for the end of this, as the
        lease isn't free before."""
        entry.session.is_closing = True
        await entry.lease.give_back()
        self._close(key, entry)
        await self._give_back(entry.session.wake, delay_s)

    def _on_end(self, key: SessionKey, entry: _Open) -> None:
        """Also of one that is cancelled before its first step."""
        self._close(key, entry)
        if not entry.has_begun:
            self._spawn(self._end(key, entry, 0.0), f"end-{key}")

    def _close(self, key: SessionKey, entry: _Open) -> None:
        """Count a session as open no more; harmless if it isn't."""
        entry.session.is_closing = True
        if self._open.get(key) is not entry:
            return
        del self._open[key]
        if key not in self._pending:  # or it's opened anew at once, in the same place
            self._rest(key)

    async def _renew_all(self) -> None:
        """Renew every lease each `RENEW_S`; a session whose renewal fails is closed at once."""
        loop = asyncio.get_running_loop()
        due_at_s = loop.time()
        async with asyncio.TaskGroup() as renewals:
            for part in itertools.cycle(range(PARTS)):
                if not self._open:  # at rest it wakes seldom
                    await pause(until_next(RENEW_S, loop.time()))
                    due_at_s = loop.time()
                    continue
                # What was late is made up for, but for what a process missed that stood still.
                due_at_s = max(due_at_s + RENEW_S / PARTS, loop.time() - RENEW_S)
                await pause(due_at_s - loop.time())
                for key, entry in self._open.items():
                    if entry.part == part and not (entry.session.is_closing or entry.is_renewing):
                        entry.is_renewing = True
                        renewals.create_task(self._renew(key, entry), name=f"renew-{key}")

    async def _renew(self, key: SessionKey, entry: _Open) -> None:
        try:
            await entry.lease.renew()
        except (LeaseLost, VigilError) as error:
            if entry.session.is_closing:
                return
            self._leases_lost.add(key, error)
            entry.cancel()
        finally:
            entry.is_renewing = False

    def close_gone(self) -> None:
        """Close the sessions that are being deleted, in the middle of what they do."""
        for key, entry in self._open.items():
            if self._is_gone(key):
                entry.cancel()

    async def _close_all(self) -> None:
        tasks = [e.task for e in self._open.values() if e.task is not None]
        for entry in self._open.values():
            entry.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._tasks, return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for summed in (self._given_back, self._leases_lost, self._cut_off):
            summed.write()
        for wake in self._pending.values():  # those that wait for their turn: others may go on
            await self._give_back(wake, 0.0)


def _report(task: asyncio.Task[None]) -> None:
    """Let no task die silently."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("task failed", action="cortex.task", task=task.get_name(), error=repr(error))
