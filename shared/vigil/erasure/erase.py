"""Erasing a person from the streams: message by message, until nothing is left (SPEC X-8).

The broker overwrites the bytes of a message that is deleted by its sequence, and of no other: a
replaced entry of a bucket and a schedule that was purged or fired stay in their block until all of
it is given up (measured; docs/adr/0012). So there are three steps.

    sweep   delete what lies under the person's subjects, and what is theirs of memories that a
            team shares, again and again, until a while has passed in which nothing came. The
            services refuse the person meanwhile (`erasure`).
    ask     have the memory services that run remove what they made of it (`projections`).
    scrub   TIMERS, BOARD and the buckets that name people (:mod:`.scrub`).

Everything may be repeated: killed anywhere, the next call begins at the sweep, which is short when
there is little left. Only the admin may do this.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from .. import crash
from ..backup import projections
from ..bus.bus import Bus, Message
from ..channels import known_people
from ..clock import Clock
from ..contacts import kept as contacts
from ..contracts import (
    MemoryRecord,
    encode,
)
from ..errors import WrongLastSequence
from ..marks import agent_pause, conversation_label, erasure, first_page, thread_mark
from ..marks.erasure import Erasure
from ..settings import own, tokens
from ..settings.switches import PAUSED, Paused, forget_raise
from ..subjects import Scope
from ..teams import TEAM
from ..trust import kept as trusted
from .deletion import patience
from .scrub import SCRUBBED, Report, scrub
from .shared_memory import Sifting
from .sweep import QUIET_S, Sweeper
from .theirs import filters_of


class Eraser(Sweeper):
    """Erases one person from the streams.

    Raises, from each method:
        Unavailable: the broker fell silent; call again.
        BusError: it refused.
    """

    def __init__(self, bus: Bus, user: str, clock: Clock, report: Report) -> None:
        super().__init__(bus, filters_of(user), report)
        self._user = user
        self._clock = clock

    async def run(self, *, quiet_s: float = QUIET_S) -> Erasure:
        """Do all of it, but for the tombstone; return the mark."""
        mark = await erasure.begin(self._bus, self._user, self._clock.now())
        crash.point("erase.marked")
        await self._end_tokens()
        crash.point("erase.tokens")
        await self.sweep(quiet_s=quiet_s)
        crash.point("erase.swept")
        self.swept.replicas = await projections.ask(self._bus, self._user, self._report)
        crash.point("erase.asked")
        await self._forget_pause()
        await own.forget(self._bus, self._user)
        await agent_pause.forget(self._bus, self._user)
        await thread_mark.forget(self._bus, self._user)
        await conversation_label.forget(self._bus, self._user)
        await forget_raise(self._bus, self._user)
        await trusted.forget(self._bus, self._user)
        await known_people.forget(self._bus, self._user)
        await first_page.forget(self._bus, self._user)
        await contacts.forget(self._bus, self._user)
        for stream in SCRUBBED:
            await scrub(self._bus, stream, self._report)
        # What a service had in hand when the scrub began is found here.
        await self.sweep(quiet_s=0)
        crash.point("erase.before_done")
        return mark

    # ------------------------------------------------------------ who may come in

    async def _end_tokens(self) -> None:
        """Revoke every token of the person; every gateway ends what it had let in."""
        ended: list[str] = []
        for message in await self._bus.read("KV_TOKENS", ["$KV.TOKENS.>"]):
            with contextlib.suppress(msgspec.MsgspecError, ValueError):
                token = msgspec.json.decode(message.data, type=tokens.Token)
                if token.user == self._user:
                    token_id = message.subject.removeprefix("$KV.TOKENS.")
                    await tokens.revoke(self._bus, token_id)
                    ended.append(token_id)
        self.swept.tokens = tuple(ended)

    async def _forget_pause(self) -> None:
        """A pause that the person ordered goes on, and doesn't name them any more."""
        found = await self._bus.get_last("KV_CONFIG", f"$KV.CONFIG.{PAUSED}")
        with contextlib.suppress(msgspec.MsgspecError, ValueError, WrongLastSequence):
            if found is not None and found.data:
                paused = msgspec.json.decode(found.data, type=Paused)
                if paused.by == self._user:
                    unnamed = msgspec.json.encode(Paused(at=paused.at, by="somebody erased"))
                    await self._bus.publish(found.subject, unnamed, expect=found.seq)

    # ------------------------------------------------------------ sweep

    async def sweep(self, *, quiet_s: float = QUIET_S) -> None:
        """Delete until nothing has come for `quiet_s` seconds."""
        while True:
            found = await self.pass_once() + await self._sweep_shared()
            if not found:
                if quiet_s <= 0:
                    return
                await asyncio.sleep(quiet_s)
                if await self.left() == {}:
                    return

    async def left(self) -> dict[str, int]:
        """Return how many records there are still, by stream."""
        found: dict[str, int] = {}
        for stream, filters in self._filters.items():
            for subject in filters:
                if count := sum((await self._bus.subjects(stream, subject)).values()):
                    found[stream] = found.get(stream, 0) + count
        return found

    async def _sweep_shared(self) -> int:
        """Delete what is theirs of memories that a team shares."""
        sifting = Sifting(self._user)
        found: list[tuple[Message, MemoryRecord | None]] = []
        follower = await self._bus.follow("MEMORIES", [Scope("*", TEAM).everything], 1)
        try:
            for _ in range(follower.waiting):
                message = await follower.next_within(QUIET_S)
                if message is None:
                    break
                what = sifting.fate_of(message.subject, message.data)
                if what.goes:
                    found.append((message, what.instead))
        finally:
            await follower.close()
        # What was made of it first: killed in between, it is still known as that.
        for message, instead in reversed(found):
            if instead is not None:
                await self._unnamed(instead)
            await self._erase("MEMORIES", message)
        return len(found)

    async def _unnamed(self, record: MemoryRecord) -> None:
        """Store what somebody decided once more, without their name."""
        op = str(record.__struct_config__.tag)
        subject = Scope(record.agent, record.owner).record(op)
        await patience().run(lambda: self._bus.publish(subject, encode(record), msg_id=record.id))
