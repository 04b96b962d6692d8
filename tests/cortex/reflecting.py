"""Drives the core like :mod:`tests.cortex.driver` does, with its history, and with time passing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from services.cortex import core
from services.cortex.core import CompactionPlan, Draft, Policy, Window, pauses
from services.cortex.core.context.history import chunk_of
from services.cortex.core.context.window import tokens_of_rows
from services.cortex.core.draft.chunk import Chunk, Offer
from services.cortex.history import History
from services.cortex.model import ModelAnswer
from services.cortex.session import log as session_log
from tests.cortex.driver import Brain, Driver, answer
from vigil.bus.bus import Message
from vigil.clock import SystemClock
from vigil.contracts import Row, TimerFired, TimerPayload, Turn, decode_turn, encode
from vigil.observe.metrics import Metrics
from vigil.subjects import SessionKey

ROWS_MAX: Final = 20
WINDOW: Final = Window(context_tokens=4000, fixed_tokens=300)
POLICY: Final = Policy(autonomy_enabled=True, retries_max=1, pause_s=60, tool_timeout_s=30)
OFFER_TOKENS: Final = 600

Reflect = Callable[[str], ModelAnswer | Exception]
"""Answers to a question with that purpose (`save`, `compact`)."""


class Log:
    """The turns of one session, as the bus gives them."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def store(self, seq: int, turn: Turn) -> None:
        data = encode(turn)
        assert decode_turn(data) == turn
        headers = {"Vigil-Position": str(turn.state.position)}
        self.messages.append(Message("session.vigil.ann.t1.turn", data, headers, seq))

    async def get_last(self, stream: str, subject: str) -> Message | None:
        return self.messages[-1] if self.messages else None

    async def get_of(self, key: SessionKey, seq: int) -> Message | None:
        return next((m for m in self.messages if m.seq == seq), None)

    async def read(self, stream: str, filters: list[str], start: int) -> list[Message]:
        return [m for m in self.messages if m.seq >= start]

    async def page(
        self, stream: str, filters: list[str], start: int, *, limit: int, bytes_max: int
    ) -> tuple[list[Message], bool]:
        found = await self.read(stream, filters, start)
        return found[:limit], len(found) > limit


class ReflectingDriver(Driver):
    """Also compacts and looks back, as the session does."""

    def __init__(self, brain: Brain | None = None, reflect: Reflect | None = None) -> None:
        super().__init__(brain, POLICY)
        self.reflect: Reflect = reflect or (lambda _: answer("They talked."))
        self.log = Log()
        self.history = self.new_history()
        self.turn_seq = 0
        self.asked: list[str] = []
        """Purposes of the questions that were asked beside the conversation."""
        self.rooms: list[tuple[Turn, int, int, int]] = []
        """Of each compaction: the turn, the tokens before and after it, the rows that stay."""
        self.fired: set[tuple[str, int]] = set()

    def new_history(self) -> History:
        return History(ROWS_MAX, WINDOW.context_tokens)

    # ------------------------------------------------------------ the session's part

    def finish(self, draft: Draft) -> None:
        if not draft.wants_call:
            self.commit(draft)
        elif draft.loop.purpose == "save":
            self._look_back(draft)
        elif (plan := self.plan(draft)) is not None:
            self._compact(draft, plan)  # then the session goes on with what is owed
        else:
            self._answer(draft)

    def _answer(self, draft: Draft) -> None:
        draft.moment = self.moment()
        self._apply(draft, self.brain(draft), core.conclude)
        self.commit(draft)

    def _draft(self) -> Draft:
        return Draft(self.key, self.state, self.moment(), self.policy)

    def plan(self, draft: Draft) -> CompactionPlan | None:
        return self.history.plan(draft.rows, self.window)

    @property
    def window(self) -> Window:
        return self.history.window(WINDOW.fixed_tokens)

    def shown(self, more: list[Row] | None = None) -> tuple[Row, ...]:
        return self.history.rows(more or [], self.window)

    @staticmethod
    def _apply(
        draft: Draft, result: ModelAnswer | Exception, then: Callable[[Draft, ModelAnswer], object]
    ) -> None:
        if isinstance(result, Exception):
            core.fail(draft, str(result), is_retryable=isinstance(result, TimeoutError))
        else:
            then(draft, result)

    def _compact(self, draft: Draft, plan: CompactionPlan) -> None:
        """Make room; without a summary go on at once, as the session does for a while."""
        if draft.is_dirty:
            self.commit(draft)
            return
        window, cut = self.window, self.history.cut(plan)
        if plan.kind == "drop":
            core.drop_oldest(draft, cut, window)
            self._make_room(draft)
            return
        self.asked.append("compact")
        result = self.reflect("compact")
        if isinstance(result, Exception) or not core.summarise(draft, cut, result, window):
            draft = self._draft()
            core.fail_to_summarise(draft, "no summary")
            self._answer(draft)
        else:
            self._make_room(draft)

    def _make_room(self, draft: Draft) -> None:
        """Commit, and see that there is more room than before (SPEC I-4)."""
        before = tokens_of_rows(self.shown_whole())
        turn = self.commit(draft)
        after = tokens_of_rows(self.shown_whole())
        self.rooms.append((turn, before, after, len(self.shown_whole()) - 1))

    def shown_whole(self) -> tuple[Row, ...]:
        """All rows of the history, with the summary, if the window were large."""
        return self.history.rows([], Window(context_tokens=10**9))

    def _look_back(self, draft: Draft) -> None:
        offer = self.offer()
        if not offer.has_words:
            pauses.skip(draft, offer)
        else:
            self.asked.append("save")
            self._apply(draft, self.reflect("save"), lambda d, a: pauses.conclude(d, a, offer))
        self.commit(draft)

    def offer(self) -> Offer:
        """What `log.unsaved` reads back."""
        chunks: list[Chunk] = []
        left = OFFER_TOKENS
        for message in self.log.messages:
            turn = decode_turn(message.data)
            if message.seq < self.state.unsaved_from or not turn.rows:
                continue
            chunk = chunk_of(message.seq, turn)
            left -= chunk.tokens
            if left < 0 and chunks:
                return Offer(chunks=tuple(chunks), next_from=message.seq)
            chunks.append(chunk)
        return Offer(chunks=tuple(chunks))

    def commit(self, draft: Draft) -> Turn:
        self._making.pop(draft, None)
        history_from = draft.history_from or self.history.first_turn(self.turn_seq + 1)
        turn = draft.finish(f"turn-{len(self.turns) + 1}", history_from=history_from)
        self._seq += 2
        self.turn_seq = self._seq
        self.log.store(self.turn_seq, turn)
        self.turns.append(turn)
        self.state = session_log.state_after(turn, self.turn_seq)
        self.history.add(self.turn_seq, turn)
        return turn

    async def reloaded(self) -> session_log.Loaded:
        """Read state and history back from the log, as another replica does."""
        key = SessionKey.parse(self.key)
        counts, history = Metrics("cortex"), self.new_history()
        return await session_log.load(self.log, key, SystemClock(), counts, history)  # type: ignore[arg-type]

    # ------------------------------------------------------------ timers

    @property
    def open_timers(self) -> set[tuple[str, int]]:
        return self.open_in_log() - self.fired

    def pass_time(self, seconds: float) -> None:
        """Let time pass; timers that are due fire on their way, in order."""
        until = self.now + timedelta(seconds=seconds)
        while True:
            due = sorted((self.scheduled[timer], timer) for timer in self.open_timers)
            if not due or due[0][0] > until:
                break
            fire_at, timer = due[0]
            self.now = max(self.now, fire_at)
            self.fire(timer)
        self.now = until

    def fire(self, timer: tuple[str, int]) -> None:
        self.fired.add(timer)
        timer_id, generation = timer
        payload = TimerPayload(
            timer_id=timer_id,
            generation=generation,
            fire_at=self.scheduled[timer],
            kind="deadline" if timer_id.startswith("_") else "follow_up",
        )
        self.feed(TimerFired(payload=payload, **self._envelope()))
