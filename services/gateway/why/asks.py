"""What a chain asks of the log, and is answered. Pure: values only."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from vigil.contracts import Turn
from vigil.subjects import SessionKey

from .facts import Fact

T = TypeVar("T")


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
    """The records on some subjects. Answer: `Found`."""

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

    Answer: `Found`.
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


class Letters(msgspec.Struct, frozen=True):
    """Dead letters of the session (about a send, about a record, or one), and their ends.

    Answer: `Found`.
    """

    effect_id: str | None = None
    seq: int | None = None
    letter_id: str | None = None


class Found(msgspec.Struct, frozen=True):
    """An answer of several records. `is_cut`: there may be more."""

    facts: tuple[Fact, ...] = ()
    is_cut: bool = False


class In(msgspec.Struct, frozen=True):
    """A question about another session. Answer: that of the question."""

    key: SessionKey
    ask: At | Newest | Next | All | FirstTurn | Turns | TurnWith | ResultOf | Letters


Ask = At | Newest | Next | All | FirstTurn | Turns | TurnWith | ResultOf | Letters | In
Asking = Generator[Ask, Any, T]


def within(key: SessionKey, asking: Asking[T]) -> Asking[T]:
    """Ask about another session whatever `asking` asks about its own."""
    answer: Any = None
    while True:
        try:
            ask = asking.send(answer)
        except StopIteration as end:
            told: T = end.value
            return told
        answer = yield ask if isinstance(ask, In) else In(key, ask)
