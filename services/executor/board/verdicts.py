"""What follows from a person's verdict on a request, once it's on the board (SPEC G-3, L-8).

What was edited teaches, and what was rejected for good; the third equal call that was let run has a
grant proposed at the person's home. Both may be repeated: a lesson is found by its cause, a
proposal by its name.
"""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from typing import Final

import structlog

from vigil.actions import log as actions
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.preference import preferences_of
from vigil.board.mirror import Board
from vigil.contracts import Approval, Change, ToldPayload, encode
from vigil.contracts.board import BoardAction
from vigil.contracts.board.action import ActionFeedback
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.minds import is_mind
from vigil.observe import trace
from vigil.preferences.verdicts import (
    EQUAL,
    REJECTIONS,
    is_alike,
    is_equal,
    lessons_of,
    proposal_id,
    proposes,
    run_input,
)
from vigil.runtime import Context
from vigil.settings.homes import homes_of
from vigil.subjects import SessionKey
from vigil.teams import TEAM
from vigil.texts.glyphs import visible

from .. import work

log = structlog.get_logger("vigil.executor")

ARGUMENTS_MAX: Final = 300
"""Characters of a call that a proposal shows."""


class VerdictLessons:
    """Learns from verdicts."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config

    async def take(self, key: SessionKey, approval: Approval, effect_id: str) -> None:
        """Do what follows from a request that was decided; may be repeated.

        Raises:
            Unavailable: try again later.
        """
        now = self._clock.now()
        known = KeptBoard(self._bus, preferences_of(self._config.preferences.period))
        for lesson in lessons_of(approval, key.scope, await self._alike(key, approval)):
            change = Change(by=key.agent, why=lesson.learned_from[0].text, cause=effect_id)
            try:
                await known.add(lesson, change, now)
            except InvalidInput as error:  # there are as many as there may be
                log.info("not learned", action="executor.verdict", error=str(error))
        if is_mind(key):
            await self._judge(key, approval, effect_id)
        if run_input(approval) is None:
            return
        equal = await Board(self._bus, Approval).newest(
            [key.scope], limit=EQUAL, is_wanted=lambda one: is_equal(approval, one)
        )
        if proposes(approval, [approval, *equal], now):
            await self._propose(key, approval, effect_id)

    async def _alike(self, key: SessionKey, approval: Approval) -> list[Approval]:
        """Return what was decided last of the same call, if what it teaches depends on that."""
        if approval.state != "rejected":
            return []
        return await Board(self._bus, Approval).newest(
            [key.scope], limit=REJECTIONS, is_wanted=lambda one: is_alike(approval, one)
        )

    async def _judge(self, key: SessionKey, approval: Approval, effect_id: str) -> None:
        """Note on the mind's action what the person said of it; what isn't run has failed."""
        if approval.state == "open":
            return
        now = self._clock.now()
        await KeptBoard(self._bus, ACTIONS).revise(
            [key.scope],
            approval.id,
            lambda action: judged_by(action, approval, now),
            Change(by=approval.decided_by or key.agent, cause=effect_id),
            now,
        )

    async def _propose(self, key: SessionKey, approval: Approval, effect_id: str) -> None:
        payload = proposal_of(key, approval)
        name = proposal_id(approval, key.scope)
        for home in homes_of(self._config, key):
            event = work.notification_of(home, effect_id, payload, now=self._clock.now())
            with contextlib.suppress(WrongLastSequence):  # told before
                await self._bus.publish(
                    home.in_event(f"told.{name}"),
                    encode(event),
                    {trace.HEADER: trace.passed_on(trace.current.get())},
                    expect=0,
                )


def judged_by(action: BoardAction, approval: Approval, now: datetime) -> BoardAction:
    """Return an action of the mind's after a verdict on the request for it.

    What content from outside had a part in isn't quoted: looks at what may be trusted are shown it.
    """
    if approval.state not in ("accepted", "edited"):
        action = actions.ended(action, "failed", now)
    if not approval.decided_by:
        return action
    text = approval.text
    if approval.edited is not None:
        given = json.dumps(approval.edited, ensure_ascii=False)
        text = "changed it" if approval.is_tainted else f"changed to {given}"
    said = ActionFeedback(
        is_good=approval.state == "accepted",
        text=text[: actions.FEEDBACK_LENGTH_MAX],
        by=approval.decided_by,
        at=now,
    )
    return actions.judged(action, said)


def proposal_of(key: SessionKey, approval: Approval) -> ToldPayload:
    """Return what the person is told: exactly which call, and how to let it run unasked.

    Of a team's the arguments aren't in it: what members wrote for their team orders nothing in
    another's own conversation.
    """
    given = visible(json.dumps(run_input(approval), ensure_ascii=False))
    shown = given if len(given) <= ARGUMENTS_MAX else given[: ARGUMENTS_MAX - 1] + "…"
    ran = f"You let `{approval.tool}` run {EQUAL} times with {shown}."
    if key.user == TEAM:
        ran = f"{key.agent}: `{approval.tool}` was let run {EQUAL} times with equal arguments."
    return ToldPayload(
        origin=str(key),
        text=(
            f"{ran} `vigil approvals always {approval.id[:8]}` lets such calls run without asking; "
            "it shows first what that allows. I don't ask about this again."
        ),
        what="grant",
        title=approval.tool,
        urgency="low",
    )
