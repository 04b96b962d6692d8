"""The moments of a session: the circumstances of each of its decisions.

A decision is pure and may know of the world what its moment has (`core.Moment`). So whatever of the
person's board, grants, clock and words a decision goes by is read here, before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from vigil.board.asked import read_asked
from vigil.board.grants import OwnersGrants
from vigil.contracts import Event, ToolUseBlock
from vigil.grants.rule import Standing
from vigil.settings.sections import Person
from vigil.subjects import SessionKey

from .. import core
from ..core import Moment, Policy
from ..core.tools.declaration import read_by
from ..model import ModelAnswer
from ..policy import hours_of
from . import log as session_log
from .resources import SessionResources
from .words import Whereabouts, knowing_asked, knowing_named


class Moments:
    """Makes the moments of one session."""

    def __init__(
        self,
        key: SessionKey,
        resources: SessionResources,
        *,
        policy: Callable[[], Policy],
        person: Callable[[], Person],
        loaded: Callable[[], session_log.Loaded],
    ) -> None:
        """`policy`, `person`, `loaded`: give what holds, and what the log says, as they are now."""
        self._key = key
        self._bus, self._clock, self._switches = resources.bus, resources.clock, resources.switches
        self._toolbox = resources.toolbox
        self._policy = policy
        self._person = person
        self._loaded = loaded
        self._grants = OwnersGrants(resources.bus, key.scope)
        self._whereabouts = Whereabouts(resources.bus, key.scope)

    def now(self, grants: tuple[Standing, ...] = ()) -> Moment:
        """Return the moment by what needs no reading."""
        return core.moment_at(
            self._clock.now(),
            hours_of(self._person()),
            hours_at=self._switches.changed_at(self._key.scope),
            is_paused=self._switches.paused is not None,
            tools=self._toolbox.tools,
            grants=grants,
            is_history_tainted=self._loaded().history.is_tainted,
            present=self._whereabouts.channel,
        )

    async def of(self, event: Event | None) -> Moment:
        """Return the moment in which an event is folded; of a message with what it came before.

        Raises:
            Unavailable: the broker is away.
        """
        if core.is_early(event, self._clock.now()):
            await self._switches.refresh(self._key.scope)
        await self._whereabouts.update(self._policy(), event)
        state = self._loaded().state
        # A job's steps are called without asking a model anew.
        grants = () if state.job is None else await self._grants.now()
        moment = await knowing_named(self._bus, self._key.scope, self.now(grants), event)
        unsaid = await session_log.voided(self._bus, self._key, state, event)
        return replace(moment, unsaid=unsaid)

    async def of_taken(self, event: Event) -> Moment:
        """Return the moment in which an event that waited is taken up. Raises: Unavailable."""
        await self._whereabouts.update(self._policy(), event)
        return await self._knowing(self.now())

    async def after(self, call: asyncio.Future[Any]) -> Moment:
        """Return the moment after a call of the model, with what its answer calls for of the
        person's board. Raises: Unavailable."""
        if call.exception() is not None or not isinstance(call.result(), ModelAnswer):
            return self.now()
        state, policy = self._loaded().state, self._policy()
        uses = [b for b in call.result().blocks if isinstance(b, ToolUseBlock)]
        if not (uses or state.job is not None or policy.profile.reads):
            return self.now()
        moment = await self._knowing(self.now(await self._grants.now()), *uses)
        return await knowing_asked(self._bus, self._key, moment, state, policy, uses)

    async def _knowing(self, moment: Moment, *uses: ToolUseBlock) -> Moment:
        policy = self._policy()
        wanted = read_by(use.name for use in uses) | frozenset(policy.profile.reads)
        found = await read_asked(self._bus, self._key.scope, wanted, moment.now)
        known = self._switches.contacts.named_in(self._key.user, policy.book, uses)
        return replace(moment, known=known, **found)
