"""What a service adds to the worker: which part of a turn is its own, and how that is done."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from ..backoff import Backoff
from ..bus.bus import Message
from ..subjects import SessionKey
from .lanes import Lanes

E = TypeVar("E")
Tasks = list[asyncio.Task[None]]


class InHand:
    """A message that is being worked on.

    Args:
        lanes: where it has its turn; None: a person asked for it once more.
    """

    __slots__ = ("_lanes", "is_requeued", "key", "lane", "message")

    def __init__(
        self, key: SessionKey, message: Message, lanes: Lanes[Message] | None, lane: str = ""
    ) -> None:
        self.key = key
        self.message = message
        self.lane = lane
        self.is_requeued = lanes is None
        """Whether a person asked for it: nothing remembered counts, and nobody waits for long."""
        self._lanes = lanes

    @property
    def is_overtaken(self) -> bool:
        """Whether an older message of its lane waits behind it."""
        return self._lanes is not None and self._lanes.has_older(self.lane, self.message.seq)

    @property
    def is_stopping(self) -> bool:
        """Whether the service ends: nothing long should be begun."""
        return self._lanes is not None and self._lanes.is_stopping


class Effects(Protocol[E]):
    """Carries out one kind of thing, whatever replica it is and however often it comes."""

    @property
    def service(self) -> str: ...

    @property
    def name(self) -> str:
        """What its crash points begin with: ``memory.turn``."""

    @property
    def letter(self) -> str | None:
        """The service's in the subjects of turns; None: every message is for it."""

    @property
    def tags(self) -> tuple[bytes, ...]:
        """Of which a turn that doesn't name its letters has one, if it may be for the service."""

    def lane_of(self, message: Message) -> str:
        """Return what it is done in the order of."""

    def wanted(self, message: Message) -> Sequence[E]:
        """Return what of it the service has to do, in order. Raises: InvalidInput."""

    async def carry_out(self, turn: InHand, effect: E) -> Tasks:
        """Do one effect; may be repeated. Return what of it goes on beside the lane: the message
        is acknowledged when that has ended, and what it raised counts as raised here.

        Raises: as in :mod:`.outcomes`. What can't be used keeps nothing else of the message from
            being done.
        """

    async def give_up(self, turn: InHand, effect: E, cause: str) -> None:
        """Tell whoever waits for it that no try could do it.

        Raises:
            VigilError: it can't be given up yet; it comes again.
        """


class WorkLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a worker has in hand, and when what it didn't finish comes again."""

    in_hand_max: int
    """Messages waiting in lanes or worked on; beyond, nothing more is taken."""
    slots: int | None = None
    """Messages worked on at once; None: one of each lane, or `abreast`."""
    abreast: int = 1
    """Messages of one lane worked on at once. More than one have no order."""
    lane_max: int | None = None
    """Messages of one lane in hand; beyond, they come again..."""
    overflow_delay_s: float = 2.0
    """...after this."""
    hold_every_s: float | None = None
    """How often the broker is told that a message is in hand; None: never."""
    give_back_delay_s: float = 1.0
    """When a message that was given back comes again."""
    after_refusal: Backoff = Backoff(1.0, 1.0)
    """When a message that the broker refused comes again."""
    refusals_max: int | None = None
    """Refusals of a message after which it is given up; None: it never is."""
    stop_grace_s: float
    """How long what was begun may take to finish when the service ends."""
    stop_delay_s: float = 0.0
    """When what was not begun comes to another replica."""
