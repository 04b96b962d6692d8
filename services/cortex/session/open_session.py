"""An open session: what its profile may ask for, carried out (`profile.OpenSession`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from vigil import crash
from vigil.board.asked import read_goals
from vigil.board.kept import BULLETINS, FACTS, ROWS, KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.preference import PREFERENCES
from vigil.contracts import Loop, Row, State, TextBlock
from vigil.contracts.board import BoardBulletin
from vigil.facts.shown import goals_for, lines
from vigil.settings.sections import Person
from vigil.subjects import SessionKey
from vigil.zones.database import zone_named

from .. import core
from ..core import Draft, Policy
from ..core.context.letters import OPENED_MAX, ClosedLetter, opening_of
from ..core.draft.chunk import Offer
from ..core.draft.kinds import profile_of
from ..core.draft.policy import limited
from ..core.draft.profile import Inquiry, ModelQuestion, OwnersBoard
from ..core.tools.calls import bounded
from ..model import CROWDED, TOO_LONG, KnownAtStart, ModelAnswer, ModelError, OpenedLetter, ToolSpec
from ..notice import Notice
from ..thought.compactor import Compactor
from ..thought.recollector import LoopMemory
from ..thought.shown import ShownBefore
from ..thought.tools import reflection_specs, spec_of, specs
from . import log as session_log
from .past.inheritance import inherited
from .past.old_letters import OldLetters
from .resources import SessionResources

OFFER_SHARE_MAX: Final = 0.4
"""Of the context window: so much of a conversation is looked back on in one call."""
LOOK_BACK: Final = "look_back"
"""The profile that says how, whatever it is for."""


class LiveSession:
    """What one open session does for its profile."""

    def __init__(
        self,
        key: SessionKey,
        resources: SessionResources,
        *,
        memory: LoopMemory,
        policy: Policy,
        person: Callable[[], Person],
        context_tokens: int,
        loaded: Callable[[], session_log.Loaded],
        parent: Callable[[], str],
    ) -> None:
        """`loaded`, `parent`: give the session's log, and the context of its turn, as they are."""
        self._key = key
        self._bus, self._clock = resources.bus, resources.clock
        self._thinker, self._toolbox = resources.thinker, resources.toolbox
        self._memory = memory
        self._board = resources.board
        self._actions = KeptBoard(resources.bus, ACTIONS)
        self._policy = policy
        self._person = person
        self._context_tokens = context_tokens
        self._loaded = loaded
        self._parent = parent
        self._old = OldLetters(resources.bus, key)
        self._shown = ShownBefore()
        self._lacks_bulletin = False
        self._compactor = Compactor(
            key, clock=resources.clock, thinker=resources.thinker, policy=policy, person=person
        )

    async def converse(self, draft: Draft) -> ModelQuestion | None:
        """Ask with the history, after room was made in the window. See `OpenSession.converse`."""
        await self._inherit(draft)
        history = self._loaded().history
        history.show_to(opening_of(draft.loop, draft.state.vouched))
        window = self._compactor.window(draft, history)
        plan = self._compactor.plan(draft, history, window)
        if plan is None:
            rows = history.rows(draft.rows, window)
            asking = partial(self._think, draft.loop, draft.state, rows, self._parent())
            return ModelQuestion(asking, self._conclude, self._fail_to_converse)
        if draft.is_dirty:
            return None  # what is owed then begins with a look at the history as it is then
        return self._compactor.compact(
            draft, lambda: self._loaded().history, plan, window, self.reflect
        )

    async def _inherit(self, draft: Draft) -> None:
        """Read what a session that was just started knows from the one that started it."""
        history, given = self._loaded().history, draft.state.start
        if given is None:
            return
        task = TextBlock(text=given.prompt)
        history.task = Row(role="user", source="task", blocks=(task,), at=draft.loop.begun_at)
        if history.inherited is not None:
            return
        history.inherited = await inherited(self._bus, self._key, given)
        if draft.policy.profile.is_heir and not history.inherited.chunks:
            draft.note("nothing_inherited", "nothing of its parent's history is left", given.parent)

    async def _think(
        self, loop: Loop, state: State, rows: tuple[Row, ...], parent: str
    ) -> ModelAnswer:
        """Ask the model, with what memory has on what began the loop. Raises: ModelError."""
        return await self._thinker.think(
            self._key,
            state,
            rows,
            person=self._person(),
            policy=limited(self._policy, state.start),
            known=await self._known(loop, rows),
            shown=self._shown,
            parent=parent,
        )

    async def _known(self, loop: Loop, rows: tuple[Row, ...]) -> KnownAtStart:
        """Return what memory has on what began the loop, and how the person likes things."""
        if not self._policy.profile.knows_person:
            return KnownAtStart()
        return KnownAtStart(
            memories=await self._memory.recall(loop, rows),
            preferences=await self._board.all(PREFERENCES, self._key.scope),
            bulletin=await self._bulletin(),
            letters=await self._letters(loop),
            facts=await self._facts(),
        )

    async def _facts(self) -> tuple[str, ...]:
        """Return what rows of the timetable told in a closed form, a line each."""
        whose = self._key.scope
        known = await self._board.all(FACTS, whose)
        if not known:
            return ()
        rows, zone = await self._board.all(ROWS, whose), zone_named(self._person().timezone)
        others = (*self._policy.fact_sources, *goals_for(await self._board.all(GOALS, whose)))
        return lines(rows, others, known, zone, self._clock.now())

    async def _letters(self, loop: Loop) -> tuple[OpenedLetter, ...]:
        """Return the letters that are open: those that the loop opened, and those that the person
        replied to, which nobody named."""
        opened = [await self._letter(loop, handle) for handle in loop.opened]
        for seq in loop.replies:
            found = self._loaded().history.letters_of(seq)
            if found is None:
                found = await self._old.at(loop, seq)
            for letter in found[-OPENED_MAX:]:
                if letter.handle not in loop.opened:
                    opened.append(self._opened(letter.handle, letter))
        return tuple(opened)

    async def _letter(self, loop: Loop, handle: str) -> OpenedLetter:
        """Return a letter of the history, or of what was summed up before it."""
        found = self._loaded().history.letter(handle)
        if found is None:
            found = await self._old.named(loop, handle)
        return self._opened(handle, found)

    def _opened(self, handle: str, letter: ClosedLetter | None) -> OpenedLetter:
        text = "" if letter is None else bounded(letter.text, self._policy.result_length_max)
        return OpenedLetter(handle=handle, text=text)

    async def _bulletin(self) -> BoardBulletin | None:
        """Return what the session is shown of, if its kind is; nothing says nothing."""
        if not self._policy.profile.bulletin:
            return None
        there = await self._board.all(BULLETINS, self._key.scope)
        self._lacks_bulletin = not there
        return next((one for one in there if not one.is_empty), None)

    def _conclude(self, draft: Draft, answer: ModelAnswer) -> None:
        conclude = draft.profile.conclude
        if conclude is None:
            raise AssertionError(f"{draft.profile.name} concludes nothing that it asks so")
        self._memory.note_recall(draft, lacks_bulletin=self._lacks_bulletin)
        core.answered(draft, is_fallback=answer.is_fallback)
        conclude(draft, answer)

    def _fail_to_converse(self, draft: Draft, error: ModelError) -> None:
        """Likewise; of the history, and of nothing else that is asked about, room can be made."""
        if error.kind == TOO_LONG:
            error = self._compactor.refused(draft, self._loaded().history, error)
            draft.inputs.failure = error
        self.fail(draft, error)

    def fail(self, draft: Draft, error: ModelError) -> None:
        """Take in that the model gave no answer to a step of a loop."""
        self._memory.note_recall(draft, lacks_bulletin=self._lacks_bulletin)
        core.fail(
            draft,
            error.reason,
            is_retryable=error.is_retryable,
            retry_after_s=error.retry_after_s,
            budget_at=error.budget_at,
            is_of_model=error.is_of_model,
            is_unasked=error.is_unasked,
            is_crowded=error.kind == CROWDED,
        )

    # ------------------------------------------------------------ other questions

    def ask(self, draft: Draft, asked: Inquiry) -> Coroutine[Any, Any, ModelAnswer]:
        """Ask just that. See `OpenSession.ask`."""
        return self._thinker.ask(
            self._key,
            draft.state,
            asked,
            person=self._person(),
            policy=self._policy,
            parent=self._parent(),
        )

    async def reflect(self, draft: Draft, text: str, *, purpose: str, prompt: str) -> ModelAnswer:
        """Ask about a part of the conversation. See `OpenSession.reflect`."""
        crash.point("cortex.reflect.before_call")
        row = Row(
            role="user", source="system", blocks=(TextBlock(text=text),), at=self._clock.now()
        )
        asked = Inquiry(
            purpose=purpose,
            profile=profile_of(LOOK_BACK),
            prompt=prompt,
            rows=(row,),
            tools=reflection_specs(),
        )
        answer = await self.ask(draft, asked)
        crash.point("cortex.reflect.after_call")
        return answer

    async def unsaved(self, start: int) -> Offer:
        """Read what was said from the turn `start` on. See `OpenSession.unsaved`."""
        tokens_max = int(self._context_tokens * OFFER_SHARE_MAX)
        taken_back = self._loaded().state.taken_back
        return await session_log.unsaved(self._bus, self._key, start, tokens_max, taken_back)

    def newest(self) -> tuple[Row, ...]:
        """Return the rows that are known. See `OpenSession.newest`."""
        return self._loaded().history.newest

    async def board(self) -> OwnersBoard:
        """Read what stands on the owner's board. See `OpenSession.board`."""
        whose = self._key.scope
        goals, preferences, actions, facts = await asyncio.gather(
            read_goals(self._bus, whose),
            self._board.all(PREFERENCES, whose),
            self._actions.all(whose),
            self._facts(),
        )
        return OwnersBoard(
            goals=tuple(one.goal for one in goals),
            preferences=preferences,
            actions=tuple(sorted((one.entity for one in actions), key=lambda one: one.number)),
            facts=facts,
        )

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return all tools that there are. See `OpenSession.specs`."""
        offered = self._toolbox.tools
        others = map(spec_of, offered.values())
        return (*(spec for spec in specs() if spec.name not in offered), *others)


def notices_of(call: asyncio.Future[Any]) -> tuple[Notice, ...]:
    """Return what a call that is over tells of the budget."""
    found = call.exception() or call.result()
    return found.notices if isinstance(found, ModelAnswer | ModelError) else ()
