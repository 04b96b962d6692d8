"""Every subject on the bus is built and parsed here, and nowhere else. Pure.

A session is a subject tree, so the session key decides what may reach a subject. Its parts
are checked once, at the edge, against ``[A-Za-z0-9_-]{1,64}``; any other id that a person, a
model or a tool chose enters a subject only as a hash (:func:`token_of`). The broker itself
accepts and stores subjects with a literal ``*`` or ``>`` in them, which would let one user's
name match another's records.

    session.{agent}.{user}.{thread}          {K}, the root of a conversation
    system.{agent}.{user}._{thread}          {K}, the root of a session of the cortex itself
      {K}.in.said.user                       what the person said     } together,
      {K}.out.said.{effect}                  what the agent said      } the transcript
      {K}.past.said.{user,agent}             both, before it was imported
      {K}.in.{timer,tool_result,tick,external,control,told.{effect}}
      {K}.turn-{letters}                     commits: "turn-sm" is for delivery and memory
      {K}.turn                               commits of older versions, for anybody
      {K}.receipt.{effect}                   outcomes of sends
      {K}.call.{effect}                      claims of tool calls
      {K}.{send,attempt}.{effect}            orders to carry it over another channel, and tries
    timer.{K}.{hash}, due.{K}.{hash}         schedules, and what the broker fired
    {live,doing}.{agent}.{user}.{thread}     tokens of an answer, and a tool's steps (not stored)
    dead.{service}.{agent}.{user}.{thread}   dead letters; of `ended`: what a person did with one
    memory.{agent}.{owner}.{op}              what an agent knows of its owner
    board.{agent}.{user}.{kind}.{id}         approvals, jobs, grants, uses, tasks, rows, circuits
    slot.{agent}.{owner}.{row}               what became of each instant of a row of the timetable
    mail.{agent}.{owner}.{mailbox}           mails that came to a mailbox of the owner's
    rpc.executor.cancel                      a call that is to end (not stored)
    rpc.memory.{op}.{agent}.{owner}          questions about that
    event.{user}.{credential}                what outside programs publish
    signal.{agent}.{owner}.{kind}.{thread}   signals; a kind has two tokens ("message.sent")
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from .addressees import NOBODY, is_turn
from .errors import InvalidInput

PART: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_PART: Final = "[A-Za-z0-9_-]{1,64}"
PartText = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{_PART}$"})]
"""A part of a session key, for schemas; :func:`check_part` checks it, and says more."""
KeyText = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{_PART}:{_PART}:{_PART}$"})]
"""A session key, for schemas; :meth:`SessionKey.parse` checks it."""

IN_ALL_SESSIONS: Final = "session.*.*.*.in.>"
IN_ALL_SYSTEM: Final = "system.*.*.*.in.>"
TURNS_OF_ALL_SESSIONS: Final = "session.*.*.*.*"
TURNS_OF_ALL_SYSTEM: Final = "system.*.*.*.*"
"""Nothing else has one token after {K}, so these match every turn, whomever it is for."""
BOARD_ALL: Final = "board.*.*.*.*"
EXECUTOR_CANCEL: Final = "rpc.executor.cancel"
"""Tells every replica of the executor, at once and at most once, that nobody waits for a call."""
CLAIMS_OF_ALL_SESSIONS: Final = "session.*.*.*.out.said.*"
RECEIPTS_OF_ALL_SESSIONS: Final = "session.*.*.*.receipt.*"
SENDS_OF_ALL_SESSIONS: Final = "session.*.*.*.send.*"
OUTSIDE_ALL: Final = "event.*.*"
SIGNALS_ALL: Final = "signal.>"
MEMORIES_ALL: Final = "memory.*.*.*"
MEMORY_THREAD: Final = "_memory"
"""In the subject of a signal that is about a memory, and of no session."""
ENDED: Final = "ended"
"""In the place of a service under ``dead.``: what became of dead letters."""
TIMERS_ALL: Final = "timer.>"
DUE_ALL: Final = "due.>"


def check_part(field: str, value: object) -> str:
    """Return `value` if it may be a part of a session key.

    Raises:
        InvalidInput: naming `field` and the rule it broke.
    """
    if not isinstance(value, str):
        raise InvalidInput(field, "must be a string")
    if PART.fullmatch(value):
        return value
    if not value:
        raise InvalidInput(field, "must not be empty")
    if len(value) > 64:
        raise InvalidInput(field, f"must have at most 64 characters, has {len(value)}")
    raise InvalidInput(field, "may contain only letters A-Z a-z, digits, '_' and '-'")


class SessionKey(msgspec.Struct, frozen=True, order=True):
    """One thread of thought: ``userId:agentId:threadId``.

    >>> key = SessionKey.parse("ann:vigil:t1")
    >>> key.root
    'session.vigil.ann.t1'
    >>> str(SessionKey.of_subject("session.vigil.ann.t1.in.said.user"))
    'ann:vigil:t1'
    """

    user: str
    agent: str
    thread: str

    @classmethod
    def of(cls, user: object, agent: object, thread: object) -> SessionKey:
        """Build a key from parts that came from outside. Raises: InvalidInput, naming the part."""
        user, agent = check_part("userId", user), check_part("agentId", agent)
        return cls(user, agent, check_part("threadId", thread))

    @classmethod
    def parse(cls, text: object) -> SessionKey:
        """Parse ``userId:agentId:threadId`` from outside. Raises: InvalidInput, naming the part."""
        if not isinstance(text, str):
            raise InvalidInput("session_key", "must be a string")
        return _parsed(text)

    @classmethod
    def of_subject(cls, subject: str) -> SessionKey:
        """Return the session that a subject of SESSIONS, SYSTEM, TIMERS or DEAD belongs to."""
        tokens = subject.split(".")
        if tokens[0] in ("timer", "due", "dead"):
            tokens = tokens[1:]
        _, agent, user, thread = tokens[:4]
        return cls(user, agent, thread)

    def __str__(self) -> str:
        return f"{self.user}:{self.agent}:{self.thread}"

    @property
    def is_system(self) -> bool:
        """Whether this is a session of the cortex itself; no client may use its thread."""
        return self.thread[:1] == "_"

    @property
    def kind(self) -> str:
        """What the session is, by its thread: ``channel``, or what is between ``_`` and ``-``.

        >>> SessionKey("ann", "vigil", "_worker-1f").kind, SessionKey("ann", "vigil", "t1").kind
        ('worker', 'channel')
        """
        return self.thread[1:].partition("-")[0] if self.is_system else "channel"

    def of_kind(self, kind: str, id_: str) -> SessionKey:
        """Return the session of the same person and agent that is named by `id_`: the effect that
        starts it, or a job (both are ours: hex digits).

        >>> str(SessionKey("ann", "vigil", "t1").of_kind("worker", "1f"))
        'ann:vigil:_worker-1f'
        """
        return SessionKey(self.user, self.agent, f"_{kind}-{id_}")

    @property
    def scope(self) -> Scope:
        """Whose this session is, and what it knows."""
        return Scope(self.agent, self.user)

    @property
    def stream(self) -> str:
        """The stream that holds this session."""
        return "SYSTEM" if self.is_system else "SESSIONS"

    @property
    def root(self) -> str:
        """{K}, the first four tokens of every subject of this session."""
        kind = "system" if self.is_system else "session"
        return f"{kind}.{self.agent}.{self.user}.{self.thread}"

    @property
    def kv_key(self) -> str:
        """The key of this session in a key-value bucket."""
        return f"{self.agent}.{self.user}.{self.thread}"

    @property
    def in_user(self) -> str:
        return f"{self.root}.in.said.user"

    @property
    def in_all(self) -> str:
        return f"{self.root}.in.>"

    @property
    def turn(self) -> str:
        """Where older versions stored turns: every service is brought these."""
        return f"{self.root}.turn"

    @property
    def turns(self) -> str:
        """Matches the turns of this session, whomever they are for, and nothing else."""
        return f"{self.root}.*"

    def turn_for(self, letters: str) -> str:
        """Where a turn is stored; `letters` of whom it is for are in the order of LETTERS.

        >>> SessionKey("ann", "vigil", "t1").turn_for("st")
        'session.vigil.ann.t1.turn-st'
        """
        return f"{self.root}.turn-{letters or NOBODY}"

    def is_turn(self, subject: str) -> bool:
        """Whether that is where turns of this session are."""
        return subject.rpartition(".")[0] == self.root and is_turn(subject)

    @property
    def transcript(self) -> str:
        """Matches what the person said and what the agent said, and nothing else."""
        return f"{self.root}.*.said.*"

    @property
    def out_all(self) -> str:
        return f"{self.root}.out.said.*"

    @property
    def receipts(self) -> str:
        return f"{self.root}.receipt.*"

    @property
    def everything(self) -> str:
        return f"{self.root}.>"

    @property
    def live(self) -> str:
        """Tokens of an answer in the making: plain NATS, never stored."""
        return f"live.{self.agent}.{self.user}.{self.thread}"

    @property
    def doing(self) -> str:
        """How far calls of tools are: plain NATS, never stored."""
        return f"doing.{self.agent}.{self.user}.{self.thread}"

    def in_event(self, event_type: str) -> str:
        """Where events other than user messages enter (`event_type` is one of ours)."""
        return f"{self.root}.in.{event_type}"

    def out_said(self, effect_id: str) -> str:
        return f"{self.root}.out.said.{effect_id}"

    def receipt(self, effect_id: str) -> str:
        return f"{self.root}.receipt.{effect_id}"

    def send(self, effect_id: str) -> str:
        return f"{self.root}.send.{effect_id}"

    def attempt(self, effect_id: str) -> str:
        return f"{self.root}.attempt.{effect_id}"

    def call(self, effect_id: str) -> str:
        return f"{self.root}.call.{effect_id}"

    def board(self, kind: str, id_: str) -> str:
        """Where an entity of this person and agent is on the board.

        Args:
            id_: of the entity: letters, digits, ``_`` and ``-``.
        """
        return f"board.{self.agent}.{self.user}.{kind}.{id_}"

    def signal(self, kind: str) -> str:
        """Where a signal of this session is published (`kind` is one of ours: two tokens)."""
        return f"signal.{self.agent}.{self.user}.{kind}.{self.thread}"

    def timer(self, timer_id: str, generation: int) -> str:
        return f"timer.{self.root}.{token_of(timer_id, str(generation))}"

    def due(self, timer_id: str, generation: int) -> str:
        return f"due.{self.root}.{token_of(timer_id, str(generation))}"

    def dead(self, service: str) -> str:
        return f"dead.{service}.{self.agent}.{self.user}.{self.thread}"


class Scope(msgspec.Struct, frozen=True, order=True):
    """Whose it is: an agent's, of one owner. Memory is never read or written across scopes.

    The owner is a user, or ``team`` for the agent of a team. In a filter either part may be ``*``.

    >>> Scope("vigil", "ann").record("save"), Scope("vigil", "ann").question("recall")
    ('memory.vigil.ann.save', 'rpc.memory.recall.vigil.ann')
    >>> Scope.of_subject("rpc.memory.recall.vigil.ann")
    Scope(agent='vigil', owner='ann')
    """

    agent: str
    owner: str

    @classmethod
    def of(cls, agent: object, owner: object) -> Scope:
        """Build a scope from parts that came from outside. Raises: InvalidInput."""
        return cls(check_part("agentId", agent), check_part("userId", owner))

    @classmethod
    def of_subject(cls, subject: str) -> Scope:
        """Return the scope of a record's or question's subject. Raises: InvalidInput."""
        match subject.split("."):
            case ["memory", agent, owner, _] | ["rpc", "memory", _, agent, owner]:
                return cls.of(agent, owner)
            case _:
                raise InvalidInput("subject", f"{subject!r} is not one of a memory")

    def covers(self, key: SessionKey) -> bool:
        """Whether that session's things are among these.

        >>> Scope("*", "ann").covers(SessionKey("ann", "vigil", "t1"))
        True
        """
        return self.owner in ("*", key.user) and self.agent in ("*", key.agent)

    @property
    def everything(self) -> str:
        """Matches every record of this scope."""
        return f"memory.{self.agent}.{self.owner}.*"

    def record(self, op: str) -> str:
        """Where records of that operation are stored (`op` is one of ours)."""
        return f"memory.{self.agent}.{self.owner}.{op}"

    def signal(self, kind: str) -> str:
        """Where a signal about this memory is published (`kind` is one of ours: two tokens)."""
        return f"signal.{self.agent}.{self.owner}.{kind}.{MEMORY_THREAD}"

    def slot(self, row: str = "*") -> str:
        """Where the ledger of a row of the timetable is; of them all if none is named."""
        return f"slot.{self.agent}.{self.owner}.{row}"

    def mail(self, mailbox: str = "*") -> str:
        """Where what came to a mailbox is; of them all if none is named."""
        return f"mail.{self.agent}.{self.owner}.{mailbox}"

    def question(self, op: str) -> str:
        """Where the memory service is asked (`op` is one of ours)."""
        return f"rpc.memory.{op}.{self.agent}.{self.owner}"


ANYBODY: Final = Scope("*", "*")
"""In a filter: whoever it is, and with whichever agent."""


def memories_of_all(op: str) -> str:
    """Match the records of one operation in every memory (`op` is one of ours)."""
    return Scope("*", "*").record(op)


def outside(user: str, credential: str) -> str:
    """Return the one subject that an outside credential may publish to; both parts are checked."""
    return f"event.{user}.{credential}"


@lru_cache(maxsize=4096)  # that of a message is read several times
def _parsed(text: str) -> SessionKey:
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidInput("session_key", "must be userId:agentId:threadId")
    return SessionKey.of(*parts)


def signals_of(user: str, *, agent: str = "*", kind: str = ">") -> str:
    """Return the filter of a person's signals; `kind` may be one, or ``message.*``.

    >>> signals_of("ann")
    'signal.*.ann.>'
    >>> signals_of("ann", kind="message.*")
    'signal.*.ann.message.*.*'
    """
    return f"signal.{agent}.{user}.{kind if kind == '>' else f'{kind}.*'}"


def board_of(whose: Scope, kind: str = "*") -> str:
    """Return the filter of an owner's entities on the board.

    >>> board_of(Scope("*", "ann"), "job"), board_of(ANYBODY)
    ('board.*.ann.job.*', 'board.*.*.*.*')
    """
    return f"board.{whose.agent}.{whose.owner}.{kind}.*"


def dead_of(whose: Scope) -> str:
    """Return the filter of an owner's dead letters, and of what became of them.

    >>> dead_of(Scope("*", "ann")), dead_of(ANYBODY)
    ('dead.*.*.ann.*', 'dead.*.*.*.*')
    """
    return f"dead.*.{whose.agent}.{whose.owner}.*"


def token_of(*parts: str) -> str:
    """Turn free text into one subject token: 32 hex digits of SHA-256 over the parts.

    Parts are length-prefixed, so that ("a", "bc") and ("ab", "c") differ.

    >>> token_of("a", "bc") == token_of("ab", "c")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]
