"""A log in memory that answers what a chain asks, so that stories can be told without a broker."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from services.gateway.why import stories
from services.gateway.why import story as asks
from services.gateway.why.answer import WhyAnswer, answer_of
from services.gateway.why.deeds import is_asked_by
from services.gateway.why.facts import Fact, LetterFact, fact_of
from services.gateway.why.story import FoundFacts, Story
from services.gateway.why.text import Voice
from vigil.contracts import (
    Attempt,
    CallClaim,
    CallTool,
    CallToolPayload,
    CancelTimer,
    CancelTimerPayload,
    Cause,
    Control,
    ControlOp,
    ControlPayload,
    Dispatch,
    External,
    ExternalPayload,
    FollowUp,
    Note,
    Receipt,
    ReceiptOutcome,
    Row,
    Said,
    ScheduleTimer,
    ScheduleTimerPayload,
    SendMessage,
    SendPayload,
    State,
    TimerFired,
    TimerPayload,
    ToolResultBlock,
    ToolResultEvent,
    ToolResultPayload,
    Turn,
    UserMessage,
    UserMessagePayload,
    decode_turn,
    encode,
)
from vigil.contracts.events import Attachment
from vigil.subjects import SessionKey

E: Final = "e" * 32
"""The effect of a message."""
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

    def said_by_person(
        self, text: str = "hi", event_id: str | None = None, *, files: tuple[Attachment, ...] = ()
    ) -> Cause:
        id_ = event_id or f"m{self.next}"
        event = UserMessage(
            id=id_, session_key=str(KEY), created_at=at(self.next),
            payload=UserMessagePayload(text=text, attachments=files),
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
        return self.store(KEY.turn_for(""), turn)

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
        voice = Voice("ann", "ann" if is_asking else "admin")
        return answer_of(story, voice, id_=story.id, kind=story.kind, session_key=str(KEY))

    def _answer(self, ask: asks.Ask) -> Any:
        if isinstance(ask, asks.In):  # there is one session in here
            several = isinstance(ask.ask, asks.All | asks.Turns | asks.LettersAbout)
            return FoundFacts() if several else None
        if isinstance(ask, asks.All | asks.Turns | asks.LettersAbout):
            return FoundFacts(tuple(sorted(self._several(ask), key=lambda fact: fact.seq)))
        return next(iter(self._single(ask)), None)

    def _several(self, ask: asks.All | asks.Turns | asks.LettersAbout) -> Iterable[Fact]:
        match ask:
            case asks.All():
                return [fact for subject in ask.subjects for fact in self._on(subject)]
            case asks.Turns():
                return self._about(ask)
            case asks.LettersAbout():
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
        found = [
            self.fact(n)
            for n, (stored, _) in enumerate(self.records, 1)
            if stored == subject or (subject == KEY.turns and KEY.is_turn(stored))
        ]
        return [fact for fact in found if fact is not None]

    def _turns_between(self, after: int, before: int | None) -> list[tuple[int, Turn]]:
        return [
            (seq, decode_turn(data))
            for seq, (subject, data) in enumerate(self.records, 1)
            if KEY.is_turn(subject) and data and after < seq < (before or 2**62)
        ]


def _answers(fact: Fact, call_id: str) -> bool:
    return isinstance(fact.body, ToolResultEvent) and fact.body.payload.call_id == call_id


def _is_about(fact: Fact, ask: asks.LettersAbout) -> bool:
    body = fact.body
    if not isinstance(body, LetterFact):
        return True
    if ask.letter_id is not None:
        return body.id == ask.letter_id
    if ask.effect_id is not None:
        return body.effect_id == ask.effect_id
    return body.seq == ask.seq


# ---------------------------------------------------------------- what is written to it


def send(effect_id: str, caused_by: str, text: str = "hello", **options: Any) -> SendMessage:
    options = {"fence": 0} | options
    payload = SendPayload(text=text, caused_by=caused_by, **options)
    return SendMessage(id=effect_id, ordinal=1, payload=payload)


def autonomous(effect_id: str, caused_by: str, text: str = "tea?", **options: Any) -> SendMessage:
    options = {"is_autonomous": True, "is_voidable": True, "tag": "Agent follow-up"} | options
    return send(effect_id, caused_by, text, **options)


def schedule(timer_id: str, generation: int, seconds: float = 60) -> ScheduleTimer:
    payload = ScheduleTimerPayload(timer_id=timer_id, generation=generation, fire_at=at(seconds))
    return ScheduleTimer(id=f"s-{timer_id}-{generation}", ordinal=1, payload=payload)


def cancel(timer_id: str, generation: int) -> CancelTimer:
    payload = CancelTimerPayload(timer_id=timer_id, generation=generation)
    return CancelTimer(id=f"c-{timer_id}-{generation}", ordinal=2, payload=payload)


def open_state(turns: int, timer_id: str, generation: int, **options: Any) -> State:
    follow_up = FollowUp(generation=generation, fire_at=at(60), reason="look", **options)
    return State(turns=turns, follow_ups={timer_id: follow_up})


def planned(log: Log, timer_id: str = "tea", **options: Any) -> Cause:
    """Let Ann write, and the agent plan a follow-up in turn 1."""
    spoke = log.said_by_person("make tea")
    log.turn(
        spoke, "answered", state=open_state(1, timer_id, 1, **options),
        effects=(schedule(timer_id, 1),), ended=(spoke.id,),
    )  # fmt: skip
    return spoke


def of(log: Log, seq: int) -> WhyAnswer:
    """Return the story of whatever is at a sequence."""
    fact = log.fact(seq)
    assert fact is not None
    return log.why(stories.of_record(KEY, fact))


def texts(answer: WhyAnswer) -> str:
    return "\n".join(step.text for step in answer.steps)


def whats(answer: WhyAnswer) -> list[str]:
    return [step.what for step in answer.steps]


def webhook(log: Log) -> int:
    spoke = log.said_by_person()
    turn = log.turn(
        spoke, "answered", effects=(send(E, spoke.id, channel="ops"),), ended=(spoke.id,)
    )  # fmt: skip
    said = log.said(E, turn, channel="ops")
    log.dispatch(E, said)
    return said


def call_tool(effect_id: str, tool: str, **arguments: Any) -> CallTool:
    payload = CallToolPayload(
        service="memory", tool=tool, input=arguments, caused_by="m1", due_at=at(30)
    )
    return CallTool(id=effect_id, ordinal=1, payload=payload)


def remembering(log: Log) -> tuple[Cause, str, str]:
    """Let Ann tell something, and the agent ask memory to save it and to look for more."""
    spoke = log.said_by_person("my code is 4711")
    saving, looking = "5" * 32, "7" * 32
    effects = (
        call_tool(saving, "memory_save", content="Ann's code is 4711"),
        call_tool(looking, "memory_recall", query="code"),
        msgspec.structs.replace(
            schedule("_call", 1),
            payload=ScheduleTimerPayload(
                timer_id="_call", generation=1, fire_at=at(30), kind="deadline"
            ),
        ),
    )
    note = Note(code="recalled", text="2 memories (a, b)", subject=spoke.id)
    log.turn(spoke, "continued", effects=effects, notes=(note,))
    return spoke, saving, looking


def result_row(call_id: str = "x", *, is_error: bool = False) -> Row:
    block = ToolResultBlock(tool_use_id=call_id, content="Remembered.", is_error=is_error)
    return Row(role="user", source="tool", blocks=(block,), at=at(1))
