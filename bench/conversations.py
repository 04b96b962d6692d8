"""Long conversations of two people over many months, and questions about them with their evidence.

Everything follows from a seed. What makes them hard is what makes real ones hard: the same kinds of
events come back with other people, days and objects; a detail is told a turn after what it is about
was named, and without naming it; the other one repeats the words of what was told; questions use
other words than the turns; and some can only be answered from turns of several sessions.

The families of topics share no phrase: weights are chosen on one and judged on the other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

from bench import topics, topics_held_out
from bench.topics import Detail, Topic

Kind = Literal["single", "multi", "temporal", "similar"]
Family = Literal["tuning", "held_out"]

SESSIONS: Final = 22
TURNS_A_SESSION: Final = 28
FIRST_DAY: Final = datetime(2022, 11, 3, 14, tzinfo=UTC)
NAMES: Final = (
    ("Nora", "Felix"), ("Ines", "Gil"), ("Tamsin", "Rahul"), ("Odette", "Marcus"),
    ("Priya", "Stellan"), ("Wanda", "Idris"), ("Bea", "Joaquin"), ("Leila", "Hugh"),
    ("Mei", "Anders"), ("Carla", "Dmitri"), ("Ruth", "Kofi"), ("Yara", "Callum"),
)  # fmt: skip
_AGO: Final = ("yesterday", "last week", "two days ago", "on Saturday", "this morning", "recently",
               "a while back", "last night", "the other day", "last weekend")  # fmt: skip
_ABOUT: Final = ("About", "As for", "Oh,", "Well,", "You asked about", "Speaking of")
AT_ONCE: Final = 0.45
"""Of the details, how many are told in the same turn as the event."""
NAMED: Final = 0.6
"""Of the others, how many name again what they are about."""


class Turn(NamedTuple):
    """What one of them said. `number` counts within the conversation."""

    number: int
    thread: str
    at: datetime
    text: str


class Question(NamedTuple):
    """A question, and the numbers of the turns that answer it."""

    kind: Kind
    text: str
    evidence: tuple[int, ...]


class Conversation(NamedTuple):
    """Two people's, whole."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


class _Event(NamedTuple):
    """Something that one of them told: who, what of, and in which turns."""

    who: str
    topic: Topic
    slots: dict[str, tuple[str, str]]
    """Name -> (as said, as asked)."""
    at: datetime
    told: int
    details: tuple[tuple[Detail, int], ...]

    def asked(self, template: str) -> str:
        return template.format(
            x=self.who, **{name: asked for name, (_, asked) in self.slots.items()}
        )


class _Phrases(NamedTuple):
    topics: tuple[Topic, ...]
    small_talk: tuple[str, ...]
    openers: tuple[str, ...]
    closers: tuple[str, ...]


FAMILIES: Final[dict[Family, _Phrases]] = {
    "tuning": _Phrases(topics.TOPICS, topics.SMALL_TALK, topics.OPENERS, topics.CLOSERS),
    "held_out": _Phrases(
        topics_held_out.TOPICS,
        topics_held_out.SMALL_TALK,
        topics_held_out.OPENERS,
        topics_held_out.CLOSERS,
    ),
}


def build(seed: int, family: Family, *, sessions: int = SESSIONS) -> Conversation:
    """Build the conversation of a seed: some 600 turns and 130 questions."""
    dice, name = random.Random(f"{family}/{seed}"), f"{family}-{seed}"
    return _Builder(dice, FAMILIES[family], seed, name).build(sessions)


class _Builder:
    """Talks: keeps the turns and events of one conversation in the making."""

    def __init__(self, dice: random.Random, phrases: _Phrases, seed: int, name: str) -> None:
        self._dice = dice
        self._phrases = phrases
        self._names = NAMES[seed % len(NAMES)]
        self._name = name
        self._turns: list[Turn] = []
        self._events: list[_Event] = []
        self._thread = ""
        self._at = FIRST_DAY

    def build(self, sessions: int) -> Conversation:
        day = FIRST_DAY
        for number in range(sessions):
            day += timedelta(days=self._dice.randint(4, 24), minutes=self._dice.randint(-90, 90))
            self._talk(f"{self._name}-{number}", day)
        questions = tuple(_questions(self._events, self._dice))
        return Conversation(self._name, tuple(self._turns), questions)

    def _talk(self, thread: str, at: datetime) -> None:
        self._thread, self._at = thread, at
        until = len(self._turns) + TURNS_A_SESSION + self._dice.randint(-6, 6)
        self._chat(2)
        while len(self._turns) < until - 3:
            self._tell(self._dice.choice(self._names))
            self._chat(self._dice.randint(0, 3))
        self._chat(2)

    def _say(self, who: str, text: str) -> int:
        number = len(self._turns)
        other = self._other(who)
        said = text.replace("{y}", other).replace("{x}", who)
        self._turns.append(
            Turn(number, self._thread, self._at, f"{who}: {said[:1].upper()}{said[1:]}")
        )
        self._at += timedelta(seconds=self._dice.randint(15, 90))
        return number

    def _other(self, who: str) -> str:
        return self._names[self._names[0] == who]

    def _chat(self, count: int) -> None:
        who = self._dice.choice(self._names)
        for _ in range(count):
            self._say(who, self._dice.choice(self._phrases.small_talk))
            who = self._other(who)

    def _tell(self, who: str) -> None:
        """Tell of an event: the event, an answer, then details, each perhaps after a question."""
        topic = self._dice.choice(self._phrases.topics)
        slots = {name: _picked(self._dice, values) for name, values in topic.slots.items()}
        said = {"x": who, "y": "{y}", **{name: value for name, (value, _) in slots.items()}}
        at = self._at
        more = self._dice.sample(topic.details, self._dice.randint(0, len(topic.details)))
        at_once = [detail for detail in more if self._dice.random() < AT_ONCE]
        texts = [self._phrase(one, said) for one in (topic.told, *(d.said for d in at_once))]
        told = self._say(who, self._dressed(". ".join(texts)))
        details = [(detail, told) for detail in at_once]
        self._say(self._other(who), self._dice.choice(topic.answered).format(**said))
        for detail in more:
            if detail in at_once:
                continue
            text = self._phrase(detail.said, said)
            if self._dice.random() < NAMED:
                text = f"{self._dice.choice(_ABOUT)} {topic.about.format(**said)}: {text}"
            details.append((detail, self._say(who, self._dressed(text))))
            if self._dice.random() < 0.7:
                self._say(self._other(who), self._dice.choice(self._phrases.small_talk))
        self._events.append(_Event(who, topic, slots, at, told, tuple(details)))

    def _phrase(self, templates: Sequence[str], slots: dict[str, str]) -> str:
        return self._dice.choice(templates).format(**slots, ago=self._dice.choice(_AGO))

    def _dressed(self, text: str) -> str:
        opener, closer = (
            self._dice.choice(some) for some in (self._phrases.openers, self._phrases.closers)
        )
        return f"{opener}{text}{closer}"


def _picked(dice: random.Random, values: str) -> tuple[str, str]:
    said, _, asked = dice.choice(values.split(",")).strip().partition("/")
    return said, asked or said


def _questions(events: Sequence[_Event], dice: random.Random) -> Iterator[Question]:
    """Yield questions about events; the same words are asked once, with all that answers them."""
    found: dict[tuple[Kind, str], set[int]] = {}
    for event in events:
        for kind, text, evidence in _asked(event, events, dice):
            found.setdefault((kind, text), set()).update(evidence)
    for (kind, text), numbers in found.items():
        yield Question(kind, text, tuple(sorted(numbers)))


def _asked(
    event: _Event, events: Sequence[_Event], dice: random.Random
) -> Iterator[tuple[Kind, str, tuple[int, ...]]]:
    for detail, number in event.details:
        rival = any(other.who != event.who and other.topic is event.topic for other in events)
        kind: Kind = "similar" if rival else "single"
        yield kind, event.asked(dice.choice(detail.asked)), (number,)
    if dice.random() < 0.5:
        yield "temporal", f"When did {event.asked(dice.choice(event.topic.when))}?", (event.told,)
    if dice.random() < 0.15:
        yield "temporal", *_of_month(event, events)
    same = [other for other in events if other.who == event.who and other.topic is event.topic]
    if 2 <= len(same) <= 4 and same[0] is event:
        yield "multi", event.asked(dice.choice(event.topic.gathered)), tuple(e.told for e in same)


def _of_month(event: _Event, events: Sequence[_Event]) -> tuple[str, tuple[int, ...]]:
    """Return a question for everything of one kind that somebody told in a month."""
    month = f"{event.at:%B %Y}"
    same = (o for o in events if (o.who, o.topic) == (event.who, event.topic))
    evidence = tuple(other.told for other in same if f"{other.at:%B %Y}" == month)
    what = event.topic.gathered[0].rstrip("?").replace("{x}", event.who)
    return f"{what} in {month}?", evidence
