"""A story in the making, records in order; and what is asked of the log for it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

import msgspec

from vigil.contracts import (
    Attempt,
    Dispatch,
    Receipt,
    Said,
    SendPayload,
    Turn,
)
from vigil.layout import name_of
from vigil.subjects import SessionKey

from .facts import SESSION_STREAMS, Fact

T = TypeVar("T")
HOPS_MAX: Final = 25
"""How far back a chain goes, from one cause to the one before."""


class SendStory(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one decided message."""

    id: str
    payload: SendPayload | None
    """None: the turn that decided it isn't there any more."""
    trail: tuple[Fact, ...]
    """Claim, orders, tries, receipt, dead letters: by sequence, dead letters last."""

    @property
    def said(self) -> Said | None:
        return next((f.body for f in self.trail if isinstance(f.body, Said)), None)

    @property
    def last(self) -> Receipt | Dispatch | Attempt | Said | None:
        """What counts now: the newest of them, a receipt after the tries it ends."""
        found = None
        for fact in self.trail:
            if isinstance(fact.body, Receipt | Dispatch | Attempt | Said):
                found = fact.body
        return found


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A chain of records, oldest first, and what to say of it at the end."""

    id: str
    kind: str
    """message, timer, event, turn, dead_letter or signal: what the id names."""
    facts: tuple[Fact, ...]
    focus: Fact | None = None
    """The record that the id names, or that decided about it."""
    sends: tuple[SendStory, ...] = ()
    timer_id: str | None = None
    is_cut: bool = False


class StoryRecords:
    """Collects the records of a story, each once, in the order of the log.

    What happened in a session that another one started is told where that one started it.
    """

    def __init__(self) -> None:
        self._facts: dict[tuple[str, int], Fact] = {}
        self._starts: dict[str, tuple[str, int]] = {}
        """Root of a session that was started -> that of the one that did, and the turn."""
        self.is_cut = False

    def place(self, child: SessionKey, parent: SessionKey, seq: int) -> bool:
        """Note where a session was started; False: that is noted already."""
        is_new = child.root not in self._starts
        self._starts.setdefault(child.root, (parent.root, seq))
        return is_new

    @property
    def sessions(self) -> int:
        """How many sessions are placed."""
        return len(self._starts)

    def add(self, *facts: Fact | None) -> None:
        for fact in facts:
            if fact is not None:
                self._facts[fact.stream, fact.seq] = fact

    def take(self, found: FoundFacts) -> tuple[Fact, ...]:
        self.add(*found.facts)
        self.is_cut = self.is_cut or found.is_cut
        return found.facts

    def facts(self) -> tuple[Fact, ...]:
        """Return them: those of sessions by sequence, each where it was started; dead letters."""
        return tuple(sorted(self._facts.values(), key=self._order))

    def of(self, key: SessionKey) -> tuple[Fact, ...]:
        """Return the records of one session."""
        return tuple(fact for fact in self.facts() if fact.subject.startswith(f"{key.root}."))

    def _order(self, fact: Fact) -> tuple[int, ...]:
        if name_of(fact.stream) not in SESSION_STREAMS:
            return (1, fact.seq)
        root, names = ".".join(fact.subject.split(".")[:4]), list(self._starts)
        path: tuple[int, ...] = (fact.seq,)
        while root in self._starts and len(path) < 2 * HOPS_MAX:
            parent, seq = self._starts[root]
            root, path = parent, (seq, names.index(root), *path)
        return (0, *path)


# ---------------------------------------------------------------- questions


class At(msgspec.Struct, frozen=True):
    """The record at a sequence. Answer: a `Fact`, or None if it isn't there or not of this
    session."""

    seq: int


class Newest(msgspec.Struct, frozen=True):
    """The newest record on a subject. Answer: a `Fact` or None."""

    subject: str


class Next(msgspec.Struct, frozen=True):
    """The first record on a subject after a sequence. Answer: a `Fact` or None."""

    subject: str
    after: int


class All(msgspec.Struct, frozen=True):
    """The records on some subjects. Answer: `FoundFacts`."""

    subjects: tuple[str, ...]


class FirstTurn(msgspec.Struct, frozen=True):
    """The first turn for which `test` holds, between two sequences (both excluded).

    `test` must stay true once it is: it's searched by halving. Answer: a `Fact` or None.
    """

    after: int
    before: int | None
    test: Callable[[Turn], bool]


class Turns(msgspec.Struct, frozen=True):
    """The turns for which `is_about` holds, up to the first for which `is_last` does.

    Answer: `FoundFacts`.
    """

    after: int
    before: int | None
    is_about: Callable[[Turn], bool]
    is_last: Callable[[Turn], bool]


class TurnWith(msgspec.Struct, frozen=True):
    """The turn that decided an effect, or began a request or a job, before a sequence.

    Answer: a `Fact` or None.
    """

    effect_id: str
    before: int


class ResultOf(msgspec.Struct, frozen=True):
    """The result of a call or a session, after a sequence. Answer: a `Fact` or None."""

    call_id: str
    after: int


class LettersAbout(msgspec.Struct, frozen=True):
    """Dead letters of the session (about a send, about a record, or one), and their ends.

    Answer: `FoundFacts`.
    """

    effect_id: str | None = None
    seq: int | None = None
    letter_id: str | None = None


class FoundFacts(msgspec.Struct, frozen=True):
    """An answer of several records. `is_cut`: there may be more."""

    facts: tuple[Fact, ...] = ()
    is_cut: bool = False


class In(msgspec.Struct, frozen=True):
    """A question about another session. Answer: that of the question."""

    key: SessionKey
    ask: At | Newest | Next | All | FirstTurn | Turns | TurnWith | ResultOf | LettersAbout


Ask = At | Newest | Next | All | FirstTurn | Turns | TurnWith | ResultOf | LettersAbout | In
Asking = Generator[Ask, Any, T]


def within(key: SessionKey, asking: Asking[T]) -> Asking[T]:
    """Ask about another session whatever `asking` asks about its own."""
    answer: Any = None
    while True:
        try:
            ask = asking.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = yield ask if isinstance(ask, In) else In(key, ask)


def turns_about(seq: int, event_id: str, *, before: int | None = None) -> Turns:
    """Ask for the turns about an event, up to the one that ends its exchange."""

    def is_about(turn: Turn) -> bool:
        if (turn.event is not None and turn.event.seq == seq) or event_id in turn.ended:
            return True
        return any(note.subject == event_id for note in turn.notes)

    def is_last(turn: Turn) -> bool:
        return event_id in turn.ended or (is_about(turn) and turn.outcome == "ignored")

    return Turns(seq, before, is_about, is_last)
