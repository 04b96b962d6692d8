"""The channels of the configuration, ready to be used; refuses what can't work."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

import msgspec

from vigil.backoff import Backoff
from vigil.board.mirror import open_approvals
from vigil.bus.bus import Bus
from vigil.channels import contract
from vigil.channels.answers import Answer
from vigil.channels.chats.files import named_in
from vigil.channels.contract import ChannelContext, Sender
from vigil.clock import Clock
from vigil.contracts import SOCKET, Approval, Said
from vigil.errors import ConfigError, InvalidInput
from vigil.settings.config import Settings
from vigil.settings.live.followed import POLL_S
from vigil.settings.live.renewal import read_now
from vigil.settings.live.stamps import Stamps, stamps_of
from vigil.subjects import SessionKey

from .config import DeliveryLimits
from .dispatch import Terms


class OpenChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A way out, and on what terms."""

    terms: Terms
    sender: Sender
    is_answering: bool = False
    """Whether what answers a message that came through it goes back through it."""
    is_announcing: bool = False
    """Whether what is asked in a conversation goes over it, too."""


class WithoutFiles:
    """The way out of a channel that carries none: of files it says that they are there."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.close = sender.close

    async def send(self, said: Said, seq: int) -> Answer:
        return await self._sender.send(named_in(said), seq)


class ComingChannels:
    """Channels that the configuration has by now, and delivery doesn't use yet: others took a
    change in a moment earlier, or it can't be used as it is and waits for somebody to mend it. What
    is ordered of them waits as well."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stamps: Stamps | None = None
        self._found: Mapping[str, contract.Channel] = {}
        self._looked_at = -math.inf
        """By the loop's clock, in seconds."""

    async def has(self, name: str) -> bool:
        """Return whether it is one."""
        if name in self._settings.config.channels:
            return False
        return name in await self._look()

    async def recent(self) -> Mapping[str, contract.Channel]:
        """Return them by name, as they were `POLL_S` ago at most: for what each message asks."""
        if asyncio.get_running_loop().time() - self._looked_at < POLL_S:
            return self._found
        return await self._look()

    async def _look(self) -> Mapping[str, contract.Channel]:
        self._looked_at = asyncio.get_running_loop().time()
        stamps = await asyncio.to_thread(stamps_of, self._settings.home)
        if stamps != self._stamps:
            read = await asyncio.to_thread(read_now, self._settings)
            used = self._settings.config.channels
            new = {name: one for name, one in read.config.channels.items() if name not in used}
            self._found, self._stamps = new, stamps
        return self._found


def build(
    channels: Mapping[str, contract.Channel],
    clock: Clock,
    limits: DeliveryLimits,
    *,
    home: Path,
    ports_never: Collection[int] = (),
    bus: Bus | None = None,
    console_url: str = "",
) -> dict[str, OpenChannel]:
    """Make every channel of the configuration.

    Args:
        home: where the path of a secret's file begins, unless it's absolute.
        ports_never: the broker's.
        bus: to look up what a message answers, and whom it is for.
        console_url: where people reach the console; empty: nobody said.

    Raises:
        ConfigError: with every mistake, one a line.
    """
    built: dict[str, OpenChannel] = {}
    problems: list[str] = []
    for name, one in channels.items():
        if name == SOCKET:
            problems.append(f"channels.{name}: this name is taken: it is the transcript itself")
            continue
        context = ChannelContext(
            name=name,
            home=home,
            clock=clock,
            ports_never=ports_never,
            bus=bus,
            console_url=console_url,
            request_of=None if bus is None else partial(_request_of, bus),
        )
        try:
            sender = one.sender(context)
            built[name] = OpenChannel(
                terms=_terms(one, limits),
                sender=sender if one.carries_files else WithoutFiles(sender),
                is_answering=one.is_answering,
                is_announcing=one.is_announcing,
            )
        except InvalidInput as error:
            problems.append(f"channels.{name}.{error.field}: {error.reason}")
    if problems:
        raise ConfigError("\n".join(problems))
    return built


async def _request_of(bus: Bus, key: SessionKey, name: str) -> Approval | None:
    """Return the one open request of that short name. Raises: Unavailable."""
    found = await open_approvals(bus, (key.scope,), name)
    return found[0] if len(found) == 1 else None


def _terms(one: contract.Channel, limits: DeliveryLimits) -> Terms:
    return Terms(
        is_idempotent=one.is_idempotent,
        attempts_max=one.attempts_max,
        backoff=Backoff(one.backoff_base_s, one.backoff_cap_s),
        patience_s=one.timeout_s + limits.attempt_grace_s,
    )
