"""Hot switches in the bucket CONFIG: what can be changed while everything runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue, Watch
from ..contacts.kept import KnownContacts
from ..contacts.record import PREFIX
from ..contracts.base import NEVER
from ..errors import InvalidInput, WrongLastSequence
from ..marks import agent_pause, erasure, thread_mark
from ..marks.agent_pause import AgentPauses
from ..marks.erasure import Erasure
from ..marks.thread_mark import DeletedThreads, Deletion
from ..subjects import Scope, SessionKey
from ..trust import sources as trust
from ..trust.kept import TrustedSources
from . import own
from .config import Config
from .cortex import Cortex
from .hours import PAUSED as PAUSE_ON
from .models import raises
from .models.raises import Raise
from .own import OwnSettings
from .sections import Person

log = structlog.get_logger("vigil.switches")

PAUSED: Final = "paused"
CORTEX: Final = "cortex"
CAPS: Final = "caps"


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """Everything proactive is paused (`vigil pause`)."""

    at: datetime
    by: str


class CapsMark(msgspec.Struct, frozen=True, kw_only=True):
    """Which caps and prices hold, since when (`NEVER`: no others did). They stand in the
    configuration, which a process reads once: what a budget stopped is looked at again as they
    change (LOOPS L-21)."""

    digest: str
    at: datetime = NEVER


class CortexChange(msgspec.Struct, frozen=True, kw_only=True):
    """What of `[cortex]` holds otherwise than it is configured, by name."""

    values: dict[str, Any] = msgspec.field(default_factory=dict)
    at: datetime = NEVER
    by: str = ""

    def over(self, configured: Cortex) -> Cortex:
        """Return what holds. Raises: InvalidInput: a value can't be used, or has no name."""
        for name in self.values:
            if name not in Cortex.__struct_fields__:
                raise InvalidInput(name, "is no setting of [cortex]")
        try:
            return msgspec.convert(msgspec.structs.asdict(configured) | self.values, Cortex)
        except msgspec.ValidationError as error:
            reason, _, where = str(error).partition(" - at `$.")
            reason = reason.replace("Expected", "must be", 1)
            raise InvalidInput(where.rstrip("`") or "cortex", reason) from error


class Switches:
    """The switches as they are now, kept up to date by a watch."""

    def __init__(self) -> None:
        self.paused: Paused | None = None
        self._erasing: frozenset[str] = frozenset()
        self._own: dict[str, OwnSettings] = {}
        self.agents = AgentPauses()
        self.threads = DeletedThreads()
        self.trusted = TrustedSources()
        self.contacts = KnownContacts()
        self._caps: CapsMark | None = None
        self._raises: dict[str, Raise] = {}
        self._cortex = CortexChange()
        self._bus: Bus | None = None
        self._watch: Watch | None = None
        self._listeners: list[Callable[[], None]] = []

    @classmethod
    async def watch(cls, bus: Bus) -> Switches:
        switches = cls()
        switches._bus = bus
        switches._watch = await KeyValue(bus, "CONFIG").watch(switches._on_change)
        return switches

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a switch changed."""
        self._listeners.append(listener)

    @property
    def is_erasing_anybody(self) -> bool:
        return bool(self._erasing)

    def is_erasing(self, user: str) -> bool:
        """Whether that person is being erased: nothing of theirs is touched any more."""
        return bool(self._erasing) and erasure.hash_of(user) in self._erasing

    def is_gone(self, key: SessionKey) -> bool:
        """Whether a session is being deleted, or its person erased: it is not touched any more."""
        return key in self.threads or self.is_erasing(key.user)

    def learn_thread(self, deletion: Deletion) -> None:
        """Know a mark that was set just now, before the broker tells of it."""
        key = thread_mark.key_of(SessionKey.parse(deletion.session))
        self.threads.take(key, msgspec.json.encode(deletion))
        self._notify()

    def person(self, user: str, configured: Person, agent: str = "") -> Person:
        """Return what holds for a person now.

        Args:
            agent: with which; one that is paused is as if they had paused all.
        """
        found = own.over(configured, self._own.get(own.hash_of(user))) if self._own else configured
        is_paused = agent and self.agents.of(Scope(agent, user)) is not None
        return msgspec.structs.replace(found, pause=PAUSE_ON) if is_paused else found

    def cortex(self, configured: Cortex) -> Cortex:
        """Return what of `[cortex]` holds now; what can't be used is as configured."""
        try:
            return self._cortex.over(configured)
        except InvalidInput as error:
            log.error("switch unreadable", action="switches.unreadable", error=str(error))
            return configured

    def changed_at(self, whose: Scope) -> datetime:
        """Return when what may put off an agent's work for a person was last changed, by them or,
        of the agent or the caps, for all; `NEVER`: it's as configured."""
        found = self._own.get(own.hash_of(whose.owner)) if self._own else None
        named = raises.accounts_of(whose) if self._raises else ()
        at = self.agents.changed_at(whose)
        for one in (found, self._caps, *map(self._raises.get, named)):
            if one is not None and one.at > at:
                at = one.at
        return at

    def raised(self, account: str, day: str) -> int:
        """Return by how much an account's caps are raised on a day."""
        return raises.times_on(self._raises.get(account), day)

    def has_caps(self, digest: str) -> bool:
        """Whether no others are known to hold."""
        return self._caps is None or self._caps.digest == digest

    async def refresh(self, whose: Scope) -> None:
        """Know what a person set by now, for an agent, too, and the caps: another service may have
        seen it already.

        Raises: Unavailable.
        """
        if self._bus is None:
            raise AssertionError("nothing is watched")
        entry = await KeyValue(self._bus, "CONFIG").get(CAPS)
        self._caps = _read_caps(None if entry is None else entry.value)
        await agent_pause.refresh(self._bus, self.agents, whose)
        for account in raises.accounts_of(whose):
            entry = await KeyValue(self._bus, "CONFIG").get(raises.PREFIX + account)
            self._take_in_raise(account, None if entry is None else entry.value)
        with contextlib.suppress(InvalidInput):
            found = (await own.find(self._bus, whose.owner)).own
            if found is not None:
                self._take_in(own.hash_of(whose.owner), found)

    def _on_change(self, key: str, value: bytes | None) -> None:
        if key.startswith(own.PREFIX):
            self._on_person(key.removeprefix(own.PREFIX), value)
            return
        if key.startswith(erasure.PREFIX):
            self._on_erasure(key.removeprefix(erasure.PREFIX), value)
            return
        known = {
            agent_pause.PREFIX: self.agents.take,
            thread_mark.PREFIX: self.threads.take,
            trust.PREFIX: self.trusted.take,
            PREFIX: self.contacts.take,
        }
        if take := next((one for start, one in known.items() if key.startswith(start)), None):
            take(key, value)
            self._notify()
            return
        if key == CAPS or key.startswith(raises.PREFIX):
            self._on_limits(key, value)
            return
        if key == CORTEX:
            self._cortex = _read_cortex(value)
            self._notify()
            return
        if key != PAUSED:
            return
        try:
            self.paused = None if value is None else msgspec.json.decode(value, type=Paused)
        except msgspec.MsgspecError as error:
            # Fail closed: somebody wanted a pause, whatever they wrote.
            log.error("switch unreadable", action="switches.unreadable", error=str(error))
            self.paused = Paused(at=datetime.fromtimestamp(0, UTC), by="unreadable")
        self._notify()

    def _on_person(self, hash_: str, value: bytes | None) -> None:
        try:
            found = own.read(value) if value else None
        except InvalidInput as error:
            log.error("settings unreadable", action="switches.person", error=str(error))
            found = None
        if found is None:
            self._own.pop(hash_, None)
        else:
            self._take_in(hash_, found)
        self._notify()

    def _take_in(self, hash_: str, found: OwnSettings) -> None:
        known = self._own.get(hash_)
        if known is None or known.at < found.at:
            self._own[hash_] = found

    def _on_limits(self, key: str, value: bytes | None) -> None:
        if key == CAPS:
            self._caps = _read_caps(value)
        else:
            self._take_in_raise(key.removeprefix(raises.PREFIX), value)
        self._notify()

    def _take_in_raise(self, account: str, value: bytes | None) -> None:
        found = raises.read(value)
        if found is None:
            self._raises.pop(account, None)
        else:
            self._raises[account] = found

    def _on_erasure(self, hash_: str, value: bytes | None) -> None:
        is_open = False
        if value is not None:
            try:
                is_open = msgspec.json.decode(value, type=Erasure).is_open
            except (msgspec.MsgspecError, ValueError) as error:
                # Fail closed: somebody is to be erased, however far that is.
                log.error("switch unreadable", action="switches.unreadable", error=str(error))
                is_open = True
        before = self._erasing
        self._erasing = before | {hash_} if is_open else before - {hash_}
        if self._erasing != before:
            self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()


async def pause(bus: Bus, *, at: datetime, by: str) -> None:
    """Pause everything proactive, on every replica."""
    await KeyValue(bus, "CONFIG").put(PAUSED, msgspec.json.encode(Paused(at=at, by=by)))


def _read_caps(value: bytes | None) -> CapsMark | None:
    try:
        return msgspec.json.decode(value, type=CapsMark) if value else None
    except msgspec.MsgspecError:
        return None  # it is marked anew


async def mark_caps(bus: Bus, digest: str, now: datetime) -> None:
    """Note which caps hold from now on, unless it's known. Raises: Unavailable, BusError."""
    bucket = KeyValue(bus, "CONFIG")
    value, revision = await bucket.last(CAPS)
    known = _read_caps(value)
    if known is not None and known.digest == digest:
        return
    mark = CapsMark(digest=digest, at=NEVER if value is None else now)
    with contextlib.suppress(WrongLastSequence):  # whoever is active by now does the same
        await bucket.put(CAPS, msgspec.json.encode(mark), expect=revision)


def _read_cortex(value: bytes | None) -> CortexChange:
    try:
        return msgspec.json.decode(value, type=CortexChange) if value else CortexChange()
    except msgspec.MsgspecError as error:
        log.error("switch unreadable", action="switches.unreadable", error=str(error))
        return CortexChange()


async def find_cortex(bus: Bus) -> tuple[CortexChange, int]:
    """Return what of `[cortex]` was changed, and the revision; 0: nothing ever. Raises:
    Unavailable."""
    value, revision = await KeyValue(bus, "CONFIG").last(CORTEX)
    return _read_cortex(value), revision


async def change_cortex(bus: Bus, change: CortexChange, *, expect: int) -> None:
    """Have that hold from now on. Raises: WrongLastSequence, it was changed meanwhile."""
    await KeyValue(bus, "CONFIG").put(CORTEX, msgspec.json.encode(change), expect=expect)


async def find_raise(bus: Bus, account: str, day: str) -> int:
    """Return by how much an account's caps are raised on a day. Raises: Unavailable."""
    entry = await KeyValue(bus, "CONFIG").get(raises.PREFIX + account)
    return raises.times_on(None if entry is None else raises.read(entry.value), day)


async def put_raise(bus: Bus, account: str, wanted: Raise, *, is_least: bool = False) -> Raise:
    """Have that hold at once; return what holds then.

    Args:
        is_least: whether more stays: a word that comes again takes nothing back.

    Raises:
        Unavailable: no answer from the broker, or others were always faster.
    """
    holds = wanted

    def joined(value: bytes | None) -> bytes:
        nonlocal holds
        found = raises.read(value)
        holds = raises.joined(found, wanted, is_least=is_least)
        return value if value is not None and holds is found else msgspec.json.encode(holds)

    await KeyValue(bus, "CONFIG").revise(raises.PREFIX + account, joined)
    return holds


async def forget_raise(bus: Bus, user: str) -> None:
    """Remove what a person raised."""
    bucket, key = KeyValue(bus, "CONFIG"), raises.PREFIX + raises.of_person(user)
    if await bucket.get(key) is not None:
        await bucket.delete(key)


async def resume(bus: Bus) -> None:
    """End the pause."""
    await KeyValue(bus, "CONFIG").delete(PAUSED)


def has_mind(config: Config, agent: str) -> bool:
    """Whether an agent thinks between conversations, as configured."""
    may = "off" not in (config.agent_of(agent).authority, config.autonomy.authority_max)
    return config.autonomy.enabled and config.mind.enabled and may
