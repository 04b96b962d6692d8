"""What a kind of channel is: a section that makes its `Sender` and, where it hears, a `Receiver`.

A kind is one subclass of :class:`Channel` with a tag of its own, which is the `kind` of
``[channels.NAME]``. Delivery decides when something is sent, how often it is tried and what the log
says of it; a sender makes one try and tells how it ended. It must tell apart what the receiver
surely doesn't have from what it may have: on that rests that nothing is said twice
(:mod:`vigil.channels.answers`).

What a channel hears comes to the gateway as ``POST /channels/NAME``, without a token. The receiver
alone knows whether a request is genuine and who wrote it; what it returns is stored once. A channel
that has to look for itself has a `Listener` instead, which one replica of the gateway runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol

import msgspec

from ..checks import Check
from ..clock import Clock
from ..contracts import Approval, Said
from ..contracts.events import Attachment
from ..contracts.mail.heads import ChatHead, MailHead
from ..errors import InvalidInput, VigilError
from ..fields.section import PositiveS, Section
from ..subjects import SessionKey
from .answers import Answer
from .asked import AskedField

if TYPE_CHECKING:
    from ..bus.bus import Bus


FindRequest = Callable[[SessionKey, str], Awaitable[Approval | None]]
"""(a session of whom is asked, short name) -> the request; None: there is none, or several."""


class ChannelContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel stands on in the service that uses it."""

    name: str
    """Of the channel: NAME of ``[channels.NAME]``."""
    home: Path
    """Where the path of a file begins, unless it's absolute."""
    clock: Clock
    ports_never: Collection[int] = ()
    """The broker's: nothing may be sent there."""
    bus: Bus | None = None
    """Of the service, with its rights; None: it is looked at alone."""
    console_url: str = ""
    """Where people reach the console, as `gateway.public_url` says; empty: nobody said."""
    request_of: FindRequest | None = None
    """Finds the one open request of a short name; None: this service doesn't look on the board."""


class Sender(Protocol):
    """One channel's way out."""

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once to hand a message over, within `timeout_s`; never raises but when cancelled.

        Args:
            said: whom it is for is in `session_key`. Its `id` is the same in each try of one
                message, and so must be what is sent: it's what a receiver knows a repeat by.
            seq: its place in the log.
        """
        ...

    async def close(self) -> None:
        """Let go of what is open. Nothing is sent after it."""
        ...


class NotAuthentic(VigilError):
    """Nothing proves that a request comes from whom the channel hears."""


class ChannelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the gateway, as it came."""

    headers: Mapping[str, str]
    """Names in lower case. One that came twice isn't there: neither of two may be picked."""
    body: bytes
    """At most `gateway.body_bytes_max`."""
    at: datetime
    """Aware UTC, by the gateway's clock."""


class Inbound(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote: the message of a person, or the event of a system.

    A message counts as the person's own word, and nobody asks again: `user` must be proven. An
    event is untrusted, whoever sent it.
    """

    id: str
    """The sender's own, at most 200 characters: what comes again under it is stored once."""
    user: str
    thread: str = ""
    """Empty: the person's home."""
    agent: str = "vigil"
    text: str
    is_event: bool = False
    kind: str = ""
    """Of an event: what happened."""
    occurred_at: datetime | None = None
    """Of an event; aware."""
    files: tuple[tuple[Attachment, bytes], ...] = ()
    """Of a message: what is attached, examined, with its bytes."""
    reply_to: str | None = None
    """Of a message: the id of what the agent said that it replies to; one that isn't there counts
    as none."""
    replied_mark: str = ""
    """Of a message: instead, what a sender of the channel told of it in `Taken.sent`."""
    replied_at: datetime | None = None
    """When that was sent, by the network's clock; aware."""
    mail: MailHead | None = None
    """Of a message that came as a mail."""
    chat: ChatHead | None = None
    """Of a message that came through a chat network."""


class Receiver(Protocol):
    """One channel's way in."""

    async def receive(self, request: ChannelRequest) -> Inbound | None:
        """Return what a request says; None: nothing that anybody waits for.

        Raises:
            NotAuthentic: it could be from anybody; the gateway answers 401.
            InvalidInput: it's genuine and can't be used; the gateway answers 422.
        """
        ...


class DeliveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel's server tells of a message later."""

    is_delivered: bool
    """False: it can't be, for good."""
    reason: str = ""


class Ear(Protocol):
    """What a listener tells what it hears."""

    text_bytes_max: int
    """Of a message."""
    file_bytes_max: int
    """Of a file that comes with one."""
    hears_speech: bool
    """Whether voice messages are understood."""

    async def hear(self, heard: Inbound) -> None:
        """Have it stored, once. When this returns it is, or was before.

        Raises:
            InvalidInput: it can't be used, whenever it comes.
            Unavailable: it can't be stored now: tell it again later, and nothing after it before.
        """
        ...

    def writing(self, user: str, agent: str, thread: str) -> AsyncGenerator[str]:
        """Yield how the answer to somebody's newest message stands, whenever it has more words and
        the last state was taken, until it's said; nothing, if it may not be shown. None of it is
        said yet, and nobody may take it for that.

        Raises:
            Unavailable, BusError: the broker can't be asked.
        """
        ...

    async def check_file(self, user: str, file: Attachment) -> None:
        """Check that a person may have one more file, before it's heard.

        Raises:
            InvalidInput: why they may not.
            Unavailable, BusError: it can't be told now.
        """
        ...

    async def words_of(self, user: str, sound: bytes) -> str:
        """Return what a person says in a voice message of theirs, as it's understood.

        Raises:
            InvalidInput: why it isn't.
        """
        ...

    async def settle(
        self, user: str, agent: str, thread: str, effect_id: str, delivery: DeliveryReport
    ) -> None:
        """Have it known what became of a message that was sent; may be repeated.

        Raises:
            Unavailable: it can't be stored now.
        """
        ...

    def show(self, state: str, problem: str, counts: Mapping[str, int]) -> None:
        """Say how it is, for `vigil mail list`, `vigil doctor` and the console's health."""
        ...


class Listener(Protocol):
    """One channel's way in, where nobody calls us."""

    async def listen(self, ear: Ear) -> None:
        """Hear until cancelled: one replica at a time does, as long as it has the lease. It may be
        ended anywhere, and another may begin before it noticed.

        Raises:
            Unavailable, BusError: the broker is away; it is called again.
        """
        ...


class Channel(Section, frozen=True, kw_only=True, tag_field="kind"):
    """``[channels.NAME]``: what all kinds have, with the terms on which delivery tries."""

    asked: ClassVar[tuple[AskedField, ...] | None] = None
    """What somebody is asked who adds one in the console or by a command; None: it takes an
    editor."""
    is_idempotent: bool = False
    """The receiver drops repeated ids, so unknown outcomes are retried; false: they end as
    `ambiguous`."""
    is_ordered: bool = False
    """Messages of a conversation are handed over in order: one that fails holds up those behind it,
    until it's taken or given up."""
    timeout_s: PositiveS = 10.0
    """Per attempt, including name resolution."""
    attempts_max: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    """Then it failed."""
    backoff_base_s: PositiveS = 5.0
    """First delay; doubles, randomly shortened by up to half."""
    backoff_cap_s: PositiveS = 6 * 3600.0
    """Longest delay, also for `Retry-After`."""

    def sender(self, context: ChannelContext) -> Sender:
        """Make its way out.

        Raises:
            InvalidInput: naming the field that can't work and the reason, never a secret.
        """
        raise NotImplementedError

    def receiver(self, context: ChannelContext) -> Receiver | None:
        """Make its way in; None: it doesn't hear.

        Raises:
            InvalidInput: naming the field that can't work and the reason, never a secret.
        """
        return None

    def listener(self, context: ChannelContext) -> Listener | None:
        """Make its way in that looks for itself; None: it has none.

        Raises:
            InvalidInput: naming the field that can't work and the reason, never a secret.
        """
        return None

    @property
    def carries_files(self) -> bool:
        """Whether its sender takes files along; else the text says that they are there."""
        return False

    @property
    def is_answering(self) -> bool:
        """Whether what answers a message that came through it goes back through it."""
        return False

    @property
    def is_announcing(self) -> bool:
        """Whether what asks for leave in the conversation itself goes over it, too, if its person
        has unasked messages come this way: they may have gone."""
        return False

    def examine(self, home: Path) -> Check | None:
        """Check for `vigil doctor` what can be told without calling anybody; None: nothing.

        Args:
            home: where the path of a file begins, unless it's absolute.
        """
        return None

    @property
    def paired_at(self) -> str:
        """Return the address of its own where a code is sent to pair one; empty: nobody is paired
        with it."""
        return ""

    @property
    def agent_id(self) -> str:
        """Return which agent is talked to through it."""
        return "vigil"

    @property
    def is_code_for_anybody(self) -> bool:
        """Whether a code may be for whichever address brings it, since nobody knows theirs."""
        return False

    def check_may_pair(self, address: str) -> None:
        """Check that an address can become somebody's. Raises: InvalidInput."""
        raise InvalidInput("kind", "is one with which nobody is paired")

    def __repr__(self) -> str:
        # Addresses and secrets may let somebody in.
        return f"{type(self).__name__}(<hidden>)"
