"""Which changes of the configuration a running service takes in by beginning anew.

It ends as it would for good, and begins with the configuration of now, in the same process: what a
service is made of needn't know how to change. Some sections are followed by whoever uses them, and
some wait for the next start of all, since others than services go by them.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec
import structlog

from ...errors import ConfigError
from .. import config
from ..config import Config, Settings
from . import followed
from .followed import FollowedSettings, read_as
from .stamps import Stamp, stamp_of, stamps_of

log = structlog.get_logger("vigil.config")

_TALKING: Final = ("gateway", "cortex", "scheduler", "executor")
BEGIN_ANEW: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": (*_TALKING, "delivery"),
    "agents": (*_TALKING, "delivery"),
    "calendars": ("gateway", "cortex", "executor"),
    "channels": ("gateway", "cortex", "executor", "delivery"),
    "contacts": ("gateway", "cortex", "executor"),
    "grants": ("gateway",),
    "hooks": _TALKING,
    "mailboxes": ("gateway", "scheduler", "executor"),
    "people": (*_TALKING, "delivery"),
    "person": (*_TALKING, "delivery"),
    "search": ("executor",),
    "speech": ("gateway",),
    "sites": ("cortex", "executor"),
    "watch": ("executor",),
}
"""By section: the services that begin anew when it changes."""
MODELS: Final = ("model", "models")
"""Sections that say which models there are."""
FOLLOWED: Final = ("a2a", "mcp", *MODELS)
"""Sections that are taken in by those who use them, while they go on."""
AT_START: Final = (
    "approvals",
    "autonomy",
    "budget",
    "bulletin",
    "cortex",
    "executor",
    "gateway",
    "goals",
    "health",
    "jobs",
    "memory",
    "metrics",
    "mind",
    "nats",
    "preferences",
    "retention",
    "sessions",
    "tasks",
)
"""Sections that wait for the next start of all."""
CHANNELS: Final = "channels"
USING_CHANNELS: Final = ("gateway", "delivery")
"""Services that send or hear over channels; others go by what they are called."""
ENDS: Final = ("sender", "listener")
NOT_TAKEN_IN: Final = "see `vigil status`: what can't be used isn't taken in"
"""What to do where a service doesn't know a section that the file has."""
IDLE_POLL_S: Final = 0.1
IDLE_WAIT_S: Final = 60.0
"""How long a service goes on with what it has in hand, before it gives the rest back."""


def holds_at_once(section: str) -> bool:
    """Return whether a change of that section needs no start.

    >>> holds_at_once("channels"), holds_at_once("mcp"), holds_at_once("nats")
    (True, True, False)
    """
    return section in BEGIN_ANEW or section in FOLLOWED


def changed_for(service: str, before: Config, read: Config) -> tuple[str, ...]:
    """Return the sections for which a service has to begin anew."""
    # Who thinks is followed, also as an agent's section says it.
    was, now = thinking_as(before, Config()), thinking_as(read, Config())
    return tuple(
        section
        for section, services in BEGIN_ANEW.items()
        if service in services and getattr(was, section) != getattr(now, section)
    )


def taken_in(running: Settings, before: Settings, read: Settings) -> Settings:
    """Return settings with what changed of what holds at once, and all else as it was.

    Where prices or caps changed, who thinks waits with them: accounts are kept by them.

    Args:
        running: what a service runs with, by the file or by whoever started it.
        before: what the file said until now.
    """
    held, old, new = running.config, before.config, read.config
    changed = [one for one in (*BEGIN_ANEW, *FOLLOWED) if getattr(old, one) != getattr(new, one)]
    if held.caps_digest != new.caps_digest:
        changed = [one for one in changed if one not in MODELS]
        new = thinking_as(new, held)
    fields = {name: getattr(new, name) for name in changed}
    keys = {
        name: getattr(read, name)
        for name in ("anthropic_api_key", "openai_api_key")
        if getattr(before, name) != getattr(read, name)
    }
    return msgspec.structs.replace(running, config=msgspec.structs.replace(held, **fields), **keys)


def thinking_as(config: Config, other: Config) -> Config:
    """Return a configuration whose agents think with the models that another names for them."""
    agents = {
        name: msgspec.structs.replace(one, model=other.agent_of(name).model)
        for name, one in config.agents.items()
    }
    agent = msgspec.structs.replace(config.agent, model=other.agent.model)
    return msgspec.structs.replace(config, agent=agent, agents=agents)


def read_now(settings: Settings) -> Settings:
    """Return what the file says now; what is known, if it can't be read."""
    with contextlib.suppress(ConfigError, OSError):
        return config.load(os.environ, home=settings.home)
    return settings


class Renewal:
    """Follows the configuration for a service, through all of its beginnings."""

    def __init__(self, service: str, settings: Settings) -> None:
        self._service = service
        self.settings = settings
        """What it runs with."""
        is_newest = read_as(settings) in (None, stamps_of(settings.home))
        self._before = self._read = read_now(settings) if is_newest else settings
        self._is_wanted = asyncio.Event()
        self._followed = FollowedSettings(settings, self._take)
        self._good: tuple[Settings, Settings] | None = None
        self.refused = ""
        """Why it can't begin with what the file says now; empty: it did."""
        self._named: Mapping[str, Stamp | None] = {}
        """Of the files that were named as it was refused."""
        self._was_refused = asyncio.Event()
        """Set until it begins anew: as long as nothing was refused, nobody looks for those."""

    def unusable(self) -> str:
        """Return why the file as it is now isn't read; empty: it was, as far as anybody looked."""
        return self._followed.unusable

    async def follow(self) -> None:
        """Look until cancelled."""
        await asyncio.gather(self._followed.follow(), self._try_again())

    async def wait(self, in_hand: Callable[[], int]) -> None:
        """Wait until the service has to begin anew, has nothing in hand or has had its time; it's
        to begin with `settings` then."""
        await self._is_wanted.wait()
        left_s = IDLE_WAIT_S
        while in_hand() and left_s > 0:
            await asyncio.sleep(IDLE_POLL_S)
            left_s -= IDLE_POLL_S
        self._begin()

    def catch_up(self) -> None:
        """Take in what changed while nobody followed: it failed, or waited to begin."""
        read = read_now(self.settings)
        if changed_for(self._service, self._before.config, read.config):
            self._read = read
            self._begin()

    def _begin(self) -> None:
        self._is_wanted.clear()
        self._was_refused.clear()
        self._good, self.refused = (self.settings, self._before), ""
        self.settings = taken_in(self.settings, self._before, self._read)
        self._before = self._read

    def refuse(self, why: str) -> bool:
        """Go back to what it ran with before; return whether there is that.

        What the file says next is compared with what it said then: more may have changed than what
        was refused.
        """
        if self._good is None:
            return False
        (self.settings, self._before), self._good = self._good, None
        self.refused = f"{self.settings.file} as it is now can't be used: {why}"
        self._named = _stamps_of_named(self._read)
        self._was_refused.set()
        return True

    async def _try_again(self) -> None:
        """Where it was refused, begin anew once a file that the configuration names is otherwise:
        often a secret was missing."""
        while True:
            await self._was_refused.wait()
            await asyncio.sleep(followed.POLL_S)
            if self.refused and (named := _stamps_of_named(self._read)) != self._named:
                self._named = named
                self._is_wanted.set()

    async def _take(self, read: Settings) -> None:
        self._read = read
        sections = changed_for(self._service, self._before.config, read.config)
        if CHANNELS in sections and self._service in USING_CHANNELS:
            await asyncio.to_thread(import_ends, read.config.channels.values())
        if sections or self.refused:
            fields = {"service": self._service, "sections": sections}
            log.info("the service begins anew", action="service.anew", **fields)
            self._is_wanted.set()


def import_ends(channels: Iterable[object]) -> None:
    """Import what channels send and hear with: the modules `sender` and `listener` beside the
    section of each. In a thread, so that all else of a process goes on: aiogram, Telegram's
    library, takes a second.

    What can't be imported, for whatever reason, is told by who uses it. A kind that is a module
    outside all packages has all in that.
    """
    packages = {type(one).__module__.rpartition(".")[0] for one in channels} - {""}
    for package in packages:
        for name in ENDS:
            with contextlib.suppress(Exception):
                importlib.import_module(f"{package}.{name}")


def _stamps_of_named(settings: Settings) -> dict[str, Stamp | None]:
    sections = {name: getattr(settings.config, name) for name in BEGIN_ANEW}
    names = set(_named_in(msgspec.to_builtins(sections, enc_hook=str)))
    return {name: stamp_of(settings.home / name) for name in names}


def _named_in(found: object) -> Iterator[str]:
    """Yield the files that sections name.

    >>> list(_named_in({"a": [{"token_file": "a.token", "ca_file": "", "user": "ann"}]}))
    ['a.token']
    """
    if isinstance(found, dict):
        for key, one in found.items():
            if key.endswith("_file") and isinstance(one, str) and one:
                yield one
            yield from _named_in(one)
    elif isinstance(found, list):
        for one in found:
            yield from _named_in(one)
