"""A log in memory that answers what a chain asks, so that stories can be told without a broker."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from services.gateway.why import story as asks
from services.gateway.why.answer import WhyAnswer, answer_of
from services.gateway.why.deeds import is_asked_by
from services.gateway.why.facts import Fact, LetterFact, fact_of
from services.gateway.why.story import Found, Story
from services.gateway.why.text import Voice
from vigil.contracts import (
    Attempt,
    CallClaim,
    Cause,
    Control,
    ControlOp,
    ControlPayload,
    Dispatch,
    External,
    ExternalPayload,
    Receipt,
    ReceiptOutcome,
    Said,
    State,
    TimerFired,
    TimerPayload,
    ToolResultEvent,
    ToolResultPayload,
    Turn,
    UserMessage,
    UserMessagePayload,
    decode_turn,
    encode,
)
from vigil.subjects import SessionKey

KEY: Final = SessionKey("ann", "vigil", "t1")
Single = asks.At | asks.Newest | asks.Next | asks.FirstTurn | asks.TurnWith | asks.ResultOf
START: Final = datetime(2031, 3, 3, 9, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Log:
    """Records of one session, stored one a second; methods return the sequence."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes]] = []
        self.letters: list[Fact] = []
        self._turns = 0

    @property
    def next(self) -> int:
        return len(self.records) + 1

    def store(self, subject: str, record: Any) -> int:
        data = record if isinstance(record, bytes) else encode(record)
        self.records.append((subject, data))
        return len(self.records)

    def said_by_person(self, text: str = "hi", event_id: str | None = None) -> Cause:
        id_ = event_id or f"m{self.next}"
        event = UserMessage(
            id=id_, session_key=str(KEY), created_at=at(self.next),
            payload=UserMessagePayload(text=text),
        )  # fmt: skip
        return Cause(id=id_, seq=self.store(KEY.in_user, event), type="user_message")

    def due(self, timer_id: str, generation: int, *, late_s: float = 0.0, **options: Any) -> Cause:
        id_ = f"timer-{self.next}"
        now = at(self.next)
        event = TimerFired(
            id=id_, session_key=str(KEY), created_at=now,
            payload=TimerPayload(
                timer_id=timer_id, generation=generation,
                fire_at=now - timedelta(seconds=late_s), **options,
            ),
        )  # fmt: skip
        return Cause(id=id_, seq=self.store(KEY.in_event("timer"), event), type="timer")

    def external(self, **payload: Any) -> Cause:
        id_ = f"x{self.next}"
        event = External(
            id=id_, session_key=str(KEY), created_at=at(self.next),
            payload=ExternalPayload(**payload),
        )  # fmt: skip
        return Cause(id=id_, seq=self.store(KEY.in_event("external"), event), type="external")

    def control(self, op: ControlOp, **payload: Any) -> Cause:
        id_ = f"c{self.next}"
        event = Control(
            id=id_, session_key=str(KEY), created_at=at(self.next),
            payload=ControlPayload(op=op, **payload),
        )  # fmt: skip
        return Cause(id=id_, seq=self.store(KEY.in_event("control"), event), type="control")

    def turn(
        self, event: Cause | None, outcome: Any, *, state: State | None = None, **parts: Any
    ) -> int:
        self._turns += 1
        turn = Turn(
            id=f"turn-{self._turns}", session_key=str(KEY), ordinal=self._turns, event=event,
            outcome=outcome, state=state or State(turns=self._turns), created_at=at(self.next),
            **parts,
        )  # fmt: skip
        return self.store(KEY.turn, turn)

    def said(self, effect_id: str, turn_seq: int, text: str = "…", **options: Any) -> int:
        record = Said(
            id=effect_id, session_key=str(KEY), text=text, at=at(self.next),
            caused_by=options.pop("caused_by", "e"), turn_seq=turn_seq, **options,
        )  # fmt: skip
        return self.store(KEY.out_said(effect_id), record)

    def receipt(self, effect_id: str, outcome: ReceiptOutcome, reason: str = "") -> int:
        record = Receipt(
            effect_id=effect_id, session_key=str(KEY), outcome=outcome, at=at(self.next),
            reason=reason,
        )  # fmt: skip
        return self.store(KEY.receipt(effect_id), record)

    def dispatch(self, effect_id: str, said_seq: int, requeued_by: str | None = None) -> int:
        record = Dispatch(
            effect_id=effect_id, session_key=str(KEY), channel="ops", said_seq=said_seq,
            at=at(self.next), requeued_by=requeued_by,
        )  # fmt: skip
        return self.store(KEY.send(effect_id), record)

    def attempt(self, effect_id: str, number: int, state: Any, **options: Any) -> int:
        record = Attempt(
            effect_id=effect_id, session_key=str(KEY), channel="ops", number=number, state=state,
            at=at(self.next), **options,
        )  # fmt: skip
        return self.store(KEY.attempt(effect_id), record)

    def claim(self, effect_id: str, tool: str) -> int:
        record = CallClaim(
            effect_id=effect_id, session_key=str(KEY), tool=tool, by="m-1", at=at(self.next)
        )
        return self.store(KEY.call(effect_id), record)

    def result(self, effect_id: str, content: str, **options: Any) -> Cause:
        id_ = f"r{self.next}"
        event = ToolResultEvent(
            id=id_, session_key=str(KEY), created_at=at(self.next),
            payload=ToolResultPayload(call_id=effect_id, content=content, **options),
        )  # fmt: skip
        seq = self.store(KEY.in_event("tool_result"), event)
        return Cause(id=id_, seq=seq, type="tool_result")

    # ------------------------------------------------------------ answers

    def fact(self, seq: int) -> Fact | None:
        if not 1 <= seq <= len(self.records):
            return None
        subject, data = self.records[seq - 1]
        return fact_of("SESSIONS", seq, subject, data) if data else None

    def tell(self, asking: asks.Asking[Story]) -> Story:
        """Answer what a chain asks until it is told."""
        answer: Any = None
        while True:
            try:
                ask = asking.send(answer)
            except StopIteration as end:
                story: Story = end.value
                return story
            answer = self._answer(ask)

    def why(self, asking: asks.Asking[Story], *, is_asking: bool = True) -> WhyAnswer:
        """Tell a story to Ann, or to an admin who asks about her."""
        story = self.tell(asking)
        voice = Voice("ann", is_asking)
        return answer_of(story, voice, id_=story.id, kind=story.kind, session_key=str(KEY))

    def _answer(self, ask: asks.Ask) -> Any:
        if isinstance(ask, asks.In):  # there is one session in here
            several = isinstance(ask.ask, asks.All | asks.Turns | asks.Letters)
            return Found() if several else None
        if isinstance(ask, asks.All | asks.Turns | asks.Letters):
            return Found(tuple(sorted(self._several(ask), key=lambda fact: fact.seq)))
        return next(iter(self._single(ask)), None)

    def _several(self, ask: asks.All | asks.Turns | asks.Letters) -> Iterable[Fact]:
        match ask:
            case asks.All():
                return [fact for subject in ask.subjects for fact in self._on(subject)]
            case asks.Turns():
                return self._about(ask)
            case asks.Letters():
                return [fact for fact in self.letters if _is_about(fact, ask)]

    def _single(self, ask: Single) -> Iterable[Fact | None]:
        match ask:
            case asks.At():
                return [self.fact(ask.seq)]
            case asks.Newest():
                return reversed(self._on(ask.subject))
            case asks.Next():
                return [fact for fact in self._on(ask.subject) if fact.seq > ask.after]
            case asks.FirstTurn():
                turns = self._turns_between(ask.after, ask.before)
                return [self.fact(seq) for seq, turn in turns if ask.test(turn)]
            case asks.TurnWith():
                turns = self._turns_between(0, ask.before)
                named = [seq for seq, turn in turns if is_asked_by(turn, ask.effect_id)]
                return [self.fact(seq) for seq in reversed(named)]
            case asks.ResultOf():
                results = self._on(KEY.in_event("tool_result"))
                return [f for f in results if f.seq > ask.after and _answers(f, ask.call_id)]

    def _about(self, ask: asks.Turns) -> list[Fact]:
        facts = []
        for seq, turn in self._turns_between(ask.after, ask.before):
            if ask.is_about(turn):
                facts.append(self.fact(seq))
            if ask.is_last(turn):
                break
        return [fact for fact in facts if fact is not None]

    def _on(self, subject: str) -> list[Fact]:
        found = [self.fact(n) for n, (s, _) in enumerate(self.records, 1) if s == subject]
        return [fact for fact in found if fact is not None]

    def _turns_between(self, after: int, before: int | None) -> list[tuple[int, Turn]]:
        return [
            (seq, decode_turn(data))
            for seq, (subject, data) in enumerate(self.records, 1)
            if subject == KEY.turn and data and after < seq < (before or 2**62)
        ]


def _answers(fact: Fact, call_id: str) -> bool:
    return isinstance(fact.body, ToolResultEvent) and fact.body.payload.call_id == call_id


def _is_about(fact: Fact, ask: asks.Letters) -> bool:
    body = fact.body
    if not isinstance(body, LetterFact):
        return True
    if ask.letter_id is not None:
        return body.id == ask.letter_id
    if ask.effect_id is not None:
        return body.effect_id == ask.effect_id
    return body.seq == ask.seq
